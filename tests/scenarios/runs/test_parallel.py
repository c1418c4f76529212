"""Work in several processes: all of it is done once, in its own process, and errors come back."""

import gc
import math
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from scenarios.runs import parallel
from scenarios.runs.parallel import processes, spread, through
from scenarios.runs.rundir import RunError


def where(number):
    return number, os.getpid()


def refused(bound, number):
    if number > bound:
        raise ValueError(f"{number} is above {bound}")
    return number


def test_every_item_is_done_once_by_other_processes_of_one_thread_each(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert list(spread(os.getenv, ["OMP_NUM_THREADS", "NUMBA_NUM_THREADS"], workers=2)) == ["1", "1"]
    assert sorted(spread(math.factorial, [3, 4, 5], workers=2)) == [6, 24, 120]
    assert os.environ["OMP_NUM_THREADS"] == "7"


def test_processes_look_for_garbage_as_seldom_as_the_one_that_starts_them():
    usual = gc.get_threshold()
    gc.set_threshold(12_345, 6, 7)
    try:
        assert list(spread(eval, ["__import__('gc').get_threshold()"] * 2, workers=2)) == [(12_345, 6, 7)] * 2
    finally:
        gc.set_threshold(*usual)


def test_one_worker_is_this_process():
    assert [process for _, process in spread(where, [1, 2], workers=1)] == [os.getpid()] * 2
    assert [process for _, process in spread(where, [1], workers=4)] == [os.getpid()]
    assert list(spread(where, [])) == []


def test_an_error_of_an_item_comes_back_and_ends_the_work():
    with pytest.raises(ValueError, match="5 is above 2"):
        list(spread(partial(refused, 2), [1, 2, 5, 1], workers=1))
    with pytest.raises(ValueError, match="factorial"):
        list(spread(math.factorial, [1, 2, -1, 3], workers=2))


def test_a_process_that_is_lost_is_told():
    with pytest.raises(RunError, match="a process ended without an answer"):
        list(spread(os._exit, [3, 3, 3], workers=2))


@pytest.mark.parametrize("error", [BrokenExecutor("a child died"), OSError("handle is closed")])
def test_a_process_that_is_lost_before_all_items_are_handed_out_is_told(error):
    class Dying(ThreadPoolExecutor):
        def submit(self, *_):
            raise error

    with Dying(1) as pool, pytest.raises(RunError, match="a process ended without an answer"):
        list(through(pool, abs, [-1, 2]))


def test_a_reader_may_stop_early_and_leaves_no_process():
    done = spread(math.factorial, [3, 3, 3, 3, 3], workers=2)
    assert next(done) == 6
    assert len(multiprocessing.active_children()) >= 2
    done.close()
    assert multiprocessing.active_children() == []


def test_an_executor_of_ones_own_does_all_items_and_begins_none_after_an_error():
    with ThreadPoolExecutor(1) as pool:
        assert sorted(through(pool, abs, [-1, 2, -3])) == [1, 2, 3]
        begun = []
        with pytest.raises(ValueError, match="5 is above 2"):
            list(through(pool, partial(noted, begun), [5, *[1] * 1000]))
    assert len(begun) < 1000


def noted(begun, number):
    """Take a moment over all that would be done after the error, so that whoever waits for it gets a turn."""
    begun.append(number)
    time.sleep(0.005 if number == 1 else 0)
    return refused(2, number)


def refused_at_last(bound, number):
    time.sleep(number if number > 100 else 0.0)
    return refused(bound, number)


def test_processes_end_at_once_with_an_error_and_of_themselves_without():
    with pytest.raises(ValueError, match="5 is above 2"), processes(2) as pool:
        list(through(pool, partial(refused_at_last, 2), [600.0, 5]))
    assert multiprocessing.active_children() == []
    with processes(1) as pool:
        asked = pool.submit(math.factorial, 3)
    assert asked.result() == 6
    assert multiprocessing.active_children() == []


def test_ctrl_c_does_not_reach_the_fork_server_while_it_loads(tmp_path):
    """Nor does a temporary folder with a long name keep it from being started, though a socket takes 107 bytes."""
    (scratch := tmp_path / ("job-of-a-cluster-" * 6)).mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", "from scenarios.runs.parallel import processes\nwith processes(1): input()"],
        stdin=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(scratch)},
    ) as begun:
        until(lambda: servers(begun.pid))
        (server,) = servers(begun.pid)
        masks = dict(re.findall(r"^(Sig\w+):\t(\w+)$", Path(f"/proc/{server}/status").read_text(), re.MULTILINE))
        loads_ours = b"'scenarios.runs.rundir'" in Path(f"/proc/{server}/cmdline").read_bytes()
        begun.communicate(b"\n")
    assert loads_ours
    assert (int(masks["SigBlk"], 16) | int(masks["SigIgn"], 16)) >> (signal.SIGINT - 1) & 1


_SAYS = """
import os, sys
import models, sim.recorder
from scenarios.runs.parallel import processes
os.chdir(sys.argv[1])
modules = "__import__('sys').modules"
code = f"[{modules}['models'].__file__, {modules}['sim.recorder'].__file__]"
code = f"[*{code}, *map(__import__('os').environ.get, ['PYTHONPATH', 'PYTHONSAFEPATH'])]"
if __name__ == "__main__":
    with processes(1) as pool:
        print(pool.submit(eval, code).result() == eval(code))
"""


def test_processes_have_our_modules_whatever_stands_where_they_are_started(tmp_path):
    """The fork server loads them once for all; found as Python does for it, `models.py` there would be one of them."""
    (here := tmp_path / "here").mkdir()
    (here / "models.py").write_text("")
    (script := tmp_path / "script.py").write_text(_SAYS)
    places = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    (script.parent / "empty").mkdir()
    for begins, goes_to in ((here, here), (script.parent / "empty", here)):
        words = [sys.executable, script, goes_to]
        done = subprocess.run(words, capture_output=True, text=True, cwd=begins, env=places, check=False)
        assert (done.stdout, done.stderr) == ("True\n", "")
    code = "import os, sys\nsys.path.insert(0, '')\n" + _SAYS.replace("__name__ ==", "True or __name__ ==")
    words = [sys.executable, "-c", code, here]
    done = subprocess.run(words, capture_output=True, text=True, cwd=script.parent / "empty", env=places, check=False)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_nothing_is_loaded_for_processes_where_paths_cannot_be_told(monkeypatch):
    assert "scenarios.runs.parallel" in parallel._loaded()
    monkeypatch.syspath_prepend(f"one{os.pathsep}path")
    assert parallel._loaded() == []


def servers(parent):
    """The fork servers that a process has started."""
    children = Path(f"/proc/{parent}/task/{parent}/children")
    started = children.read_text().split() if children.is_file() else []
    return [child for child in started if b"forkserver" in Path(f"/proc/{child}/cmdline").read_bytes()]


def until(done, seconds=60.0):
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.005)
