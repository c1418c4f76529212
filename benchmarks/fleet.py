"""How long a fleet's day takes: one arm, from the start of the process to the manifest, and its peak memory.

    python benchmarks/fleet.py [--machines 6000,100000] [--repeats 3]

Every size runs in a process of its own, with compiled kernels cached. The last line compares one instance-epoch with
the readable twin of the kernel in plain Python, which is what one would write without a compiler.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

CHILD = """
import sys
from pathlib import Path
from scenarios.execution import obtain
from scenarios.loader import load
from scenarios.source import settings
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


if __name__ == "__main__":
    main()
