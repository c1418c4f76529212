"""What is timed does what it says, on few worlds and requests; nothing here looks at the times."""

import sys

import pytest

from analysis.crossplatform.logs import read
from benchmarks import crossplatform as benchmark
from models.queues.dispatch import ROUTERS


@pytest.mark.parametrize("router", ROUTERS)
def test_the_compiled_router_and_its_twin_serve_the_same_requests(router):
    (_, fast), (_, slow) = benchmark.routed(router, 300, 1), benchmark.twin(router, 300)
    assert fast == pytest.approx(slow, rel=1e-9)


def test_the_log_that_is_predicted_from_is_one_that_can_be_read(tmp_path):
    log = read(benchmark.ten_hours(tmp_path, horizon_s=900.0))
    assert log.start_s.size == 30
    assert log.counts.sum() > 100
    assert 0 < log.utilisation.mean() < 1


def test_all_applications_are_judged_and_a_hundred_worlds_are_in_proportion(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(benchmark, "judged", lambda name, worlds: asked.append((name, worlds)) or (2.0, worlds))
    assert benchmark.many_worlds(4) == pytest.approx(3 * 2.0 * 100 / 4)
    assert asked == [(name, 4) for name in benchmark.APPLICATIONS]
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_a_process_that_fails_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(benchmark, "BINARY", "/bin/false")
    with pytest.raises(SystemExit, match="wsc predict failed"):
        benchmark.predicted(tmp_path / "nothing.csv", ["pres"])


def test_without_worlds_the_rest_is_printed(monkeypatch, capsys):
    words = ["crossplatform.py", "--worlds", "0", "--requests", "100", "--twin", "30", "--repeats", "1"]
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setattr(benchmark, "one_prediction", lambda repeats: 0.0)
    benchmark.main()
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines()[2:-1]] == list(ROUTERS)
    assert "the SimPy twin takes at least" in printed
