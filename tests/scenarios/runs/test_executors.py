"""Where pieces are worked on: here or on a cluster, the answers are the same; what cannot work is told plainly."""

import math
from concurrent.futures import ThreadPoolExecutor

import pytest

from scenarios.files.faults import FaultsError
from scenarios.runs import executors
from scenarios.runs.executors import ExecutorError, checked, executor
from scenarios.runs.parallel import through
from scenarios.runs.rundir import RunError


def test_processes_work_on_what_they_are_given():
    with executor("processes", 2) as pool:
        assert sorted(through(pool, math.factorial, [3, 4, 5])) == [6, 24, 120]


@pytest.mark.parametrize(
    "where",
    ["threads", "dask", "dask:", "", "dask:nowhere://x", "dask:foo", "dask:tcp://foo:abc", "dask:nowhere://x:1"],
)
def test_another_place_is_refused(where):
    with pytest.raises(FaultsError, match="--executor: should be processes, or dask: and a scheduler"):
        checked(where)


def test_without_dask_it_is_told_how_to_install_it(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(executors, "import_module", missing)
    with pytest.raises(ExecutorError, match=r"pip install 'dask\[distributed\]'"), executor("dask:tcp://127.0.0.1:1"):
        pass


class Cluster:
    """What Dask is asked: one cluster's threads and what its workers are made of."""

    KilledWorker = type("KilledWorker", (Exception,), {})

    def __init__(self, threads, answers):
        self.threads, self.answers = threads, answers
        self.Client = lambda address, timeout, set_as_default: self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def nthreads(self):
        return self.threads

    def run(self, function, on_error):
        return self.answers

    def get_executor(self):
        return ThreadPoolExecutor(1)


def dask(monkeypatch, threads, answers=None):
    cluster = Cluster(threads, answers or dict.fromkeys(threads, executors.made_by()))
    monkeypatch.setattr(executors, "import_module", lambda _name: cluster)
    return cluster


@pytest.mark.parametrize(
    ("threads", "answers", "told"),
    [
        ({}, None, "has no workers"),
        ({"tcp://a": 1, "tcp://b": 4}, None, r"one thread each .* not so tcp://b"),
        ({"tcp://a": 1}, {"tcp://a": {"source": "another"}}, "same code and versions, but not so tcp://a"),
        ({"tcp://a": 1}, {"tcp://a": ImportError("scenarios")}, "same code and versions"),
    ],
)
def test_workers_that_would_answer_otherwise_are_refused(monkeypatch, threads, answers, told):
    dask(monkeypatch, threads, answers)
    with pytest.raises(ExecutorError, match=told), executor("dask:tcp://s:1"):
        pass


def test_a_cluster_that_agrees_is_used_and_what_it_loses_is_told(monkeypatch):
    cluster = dask(monkeypatch, {"tcp://a": 1})
    with executor("dask:tcp://s:1") as pool:
        assert list(through(pool, abs, [-1])) == [1]
    with pytest.raises(RunError, match="workers at tcp://s:1 ended"), executor("dask:tcp://s:1"):
        raise cluster.KilledWorker


def test_a_scheduler_that_is_not_there_is_told(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(executors, "_PATIENCE_S", 0.2)
    told = pytest.raises(ExecutorError, match="there is no Dask scheduler at tcp://127")
    with told, executor("dask:tcp://127.0.0.1:1"):
        pass
