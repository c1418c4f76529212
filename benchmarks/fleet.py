"""How long a fleet's day takes: one arm, from the start of the process to the manifest, and its peak memory.

    python benchmarks/fleet.py [--machines 6000,100000] [--repeats 3]

Every size runs in a process of its own, with compiled kernels cached. The last lines compare one instance-epoch of the
compiled kernel, on one thread, with its readable twin in plain Python, `tests/helpers/reference_day.py`, which solves
the same physics and shares no code with it. The twin finds the fixed point by nested root finding and not by iteration,
so most of the ratio is the method's and not the compiler's.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

CHILD = """
import sys
from pathlib import Path
from scenarios.runs.execution import obtain
from scenarios.files.loader import load
from scenarios.files.loader import settings
scenario = load("today", settings(["fleet.machines=" + sys.argv[1]]))
run = obtain(scenario, Path(sys.argv[2]), True, lambda what, share: None)
"""


def timed(machines: int) -> tuple[float, float, float]:
    """Return seconds from process start to exit, peak resident megabytes and megabytes written."""
    with tempfile.TemporaryDirectory() as out:
        start = time.perf_counter()
        child = os.posix_spawn(sys.executable, [sys.executable, "-c", CHILD, str(machines), out], os.environ)
        _, status, usage = os.wait4(child, 0)
        seconds = time.perf_counter() - start
        if status:
            raise SystemExit(f"the fleet of {machines} machines failed")
        written = sum(file.stat().st_size for file in Path(out).rglob("*.parquet"))
    return seconds, usage.ru_maxrss / 1024, written / 1e6


def microseconds(machines: int, epochs: int, simulate: str) -> float:
    """Return microseconds of one instance-epoch of a small fleet without a feature, the least of three.

    What it needs is imported here: Linux counts what a process's parent held as its own peak memory.
    """
    from scenarios.files.loader import load, settings
    from sim.fleet.arms import nowhere, run_arm
    from sim.fleet.day import prepare
    from tests.helpers.reference_day import ReferenceDay

    jobs = ["population.jobs=300", "population.common_jobs=40"]
    day = prepare(load("today", settings([f"fleet.machines={machines}", f"horizon_s={300.0 * epochs}", *jobs])))
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        if simulate == "compiled":
            deque(run_arm(day, nowhere(day), threads=1), maxlen=0)
        else:
            ReferenceDay(day, nowhere(day))
        seconds.append(time.perf_counter() - start)
    return 1e6 * min(seconds) / int((day.timeline.end_epoch - day.timeline.start_epoch).sum())


def compare() -> None:
    """Print what an instance-epoch takes in the compiled kernel and in its readable twin."""
    compiled, readable = microseconds(400, 288, "compiled"), microseconds(4, 3, "readable")
    print(f"one instance-epoch: compiled {compiled:.3f} µs, readable twin {readable:,.0f} µs")
    print(f"the twin takes {readable / compiled:,.0f} times as long")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", default="1500,3000,6000,12000,24000")
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    timed(200)
    print(f"{'machines':>9} {'seconds (median)':>17} {'peak MB':>8} {'written MB':>11} {'ms/machine':>11}")
    for machines in map(int, asked.machines.split(",")):
        runs = sorted(timed(machines) for _ in range(asked.repeats))
        seconds, peak, written = runs[len(runs) // 2]
        print(f"{machines:>9,} {seconds:>17.2f} {peak:>8.0f} {written:>11.1f} {1e3 * seconds / machines:>11.3f}")
    compare()


if __name__ == "__main__":
    main()
