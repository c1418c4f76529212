"""What a fleet of many cells costs: measured at several sizes, fitted, and extrapolated to a million machines.

    python benchmarks/cells.py [--machines 3000] [--cells 2,4,6] [--check 12] [--fleet 1000000]

A cell is `cpu_upgrade` with that many machines, simulated three times: with the feature on half of them, nowhere and
everywhere. Each fleet is simulated by one worker of one thread, in a process of its own, and analysed as `wsc run`
does. Core-seconds are the processor time of all processes, so they hardly depend on what else the machine does;
memory is the most that a worker, and the process that hands out the work, ever held. Straight lines in the number of
cells are fitted to all but the last fleet, which is there to be predicted, then to all of them; a worker's memory is
taken to be the same for any number of cells. Linux alone says what other processes hold.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SIMULATE = """
import sys
from pathlib import Path
from scenarios.runs.execution import Workers
from scenarios.runs.execution import measure, obtain
from scenarios.files.loader import load
from scenarios.files.loader import settings
cells, machines, out = sys.argv[1:]
asked = [f"cells={cells}", f"fleet.machines={machines}", "recording.loop=null", "analyses.wsmeter.machines=[25]"]
scenario = load("cpu_upgrade", settings(asked))
obtain(scenario, Path(out), False, lambda what, share: None, workers=Workers(processes=1))
"""
ANALYSE = """
import sys
from pathlib import Path
from scenarios.runs.execution import reopen
folder = next(Path(sys.argv[3]).glob("cpu_upgrade-*"))
measure(*reopen(folder), Path(sys.argv[3]), lambda what, share: None)
"""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
WATCH_S = 0.2
COLUMNS = {
    "simulated": "core-seconds simulated",
    "worker": "MB of a worker",
    "driver": "MB of the process that hands out",
    "written": "MB written",
    "analysed": "core-seconds analysed",
    "reader": "MB of the analysis",
}


@dataclass(frozen=True, slots=True)
class Watched:
    """What a process and those that it started took: core-seconds together, and the most memory of each kind in MB."""

    core_s: float
    own_mb: float
    workers_mb: float


def watched(script: str, arguments: Iterable[str]) -> Watched:
    """Run a script in a process of its own, and watch all that it starts until it ends."""
    environment = os.environ | dict.fromkeys(THREADS, "1")
    child = os.posix_spawn(sys.executable, [sys.executable, "-c", script, *arguments], environment)
    core_s, most_mb = dict[int, float](), dict[int, float]()
    while True:
        for process in below(child):
            core_s[process], most_mb[process] = taken(process, core_s.get(process, 0.0), most_mb.get(process, 0.0))
        ended, status, _ = os.wait4(child, os.WNOHANG)
        if ended:
            break
        time.sleep(WATCH_S)
    if status:
        raise SystemExit("a fleet failed")
    workers = [held for process, held in most_mb.items() if process != child]
    return Watched(sum(core_s.values()), most_mb[child], max(workers, default=0.0))


def below(root: int) -> list[int]:
    """Return a process and all that it started, and those started, as far as they run."""
    parent = dict[int, int]()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = [root]
    for process in found:
        found += [child for child, above in parent.items() if above == process]
    return found


def taken(process: int, core_s: float, most_mb: float) -> tuple[float, float]:
    """Return core-seconds and peak memory of a process; what was known before if it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return core_s, most_mb
    peak = [line for line in status.splitlines() if line.startswith("VmHWM")]
    held = float(peak[0].split()[1]) / 1024 if peak else most_mb
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), held


def fleet(cells: int, machines: int) -> dict[str, float]:
    """Return what one fleet costs, by the names of `COLUMNS`."""
    with tempfile.TemporaryDirectory() as out:
        arguments = [str(cells), str(machines), out]
        simulated = watched(SIMULATE, arguments)
        written = sum(file.stat().st_size for file in Path(out).rglob("*.parquet"))
        analysed = watched(ANALYSE, arguments)
    return {
        "simulated": simulated.core_s,
        "worker": simulated.workers_mb,
        "driver": simulated.own_mb,
        "written": written / 1e6,
        "analysed": analysed.core_s,
        "reader": analysed.own_mb,
    }


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line in the number of cells, and by how much it was off at most, relative."""

    at_none: float
    each: float
    off: float

    @classmethod
    def of(cls, cells: np.ndarray, values: np.ndarray) -> "Line":
        """Return the line of least squares; one that falls is taken for level, since nothing gets cheaper by more."""
        each, at_none = np.polyfit(cells, values, 1)
        if each < 0:
            return cls.level(values)
        off = np.max(np.abs(at_none + each * cells - values) / values)
        return cls(float(at_none), float(each), float(off))

    def __call__(self, cells: int) -> float:
        return self.at_none + self.each * cells

    @classmethod
    def level(cls, values: np.ndarray) -> "Line":
        """Return the line that does not rise, through the largest."""
        return cls(float(values.max()), 0.0, float(1.0 - values.min() / values.max()))

    def __str__(self) -> str:
        return f"{self.at_none:.1f}" + (f" + {self.each:.3f} × cells" if self.each else "")


def lines(rows: Mapping[int, Mapping[str, float]]) -> dict[str, Line]:
    """Return the line of each cost over the fleets measured."""
    cells, values = np.array(list(rows), dtype=float), dict[str, np.ndarray]()
    for name in COLUMNS:
        values[name] = np.array([row[name] for row in rows.values()])
    return {name: Line.level(each) if name == "worker" else Line.of(cells, each) for name, each in values.items()}


def told(cells: int, machines: int, row: Mapping[str, float], note: str = "") -> str:
    """Return a line of the table."""
    costs = f"{row['simulated']:>12.1f} {row['worker']:>10.0f} {row['driver']:>10.0f} {row['written']:>10.1f}"
    return (
        f"{cells:>6,} {cells * machines:>10,} {costs} {row['analysed']:>10.1f} {row['reader']:>10.0f}  {note}".rstrip()
    )


def main() -> None:
    """Print what was measured, the lines, how right they were of the last fleet, and what they say of a large one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, default=3000, help="of each cell")
    parser.add_argument("--cells", default="2,4,6", help="numbers of cells that lines are fitted to, two at least")
    parser.add_argument("--check", type=int, default=12, help="cells of the fleet that is to be predicted")
    parser.add_argument("--fleet", type=int, default=1_000_000, help="machines to extrapolate to")
    asked = parser.parse_args()
    machines, sizes = asked.machines, sorted({*map(int, asked.cells.split(","))})
    if len(sizes) < 2 or sizes[0] < 2:
        parser.error("--cells: should be two numbers or more, of at least 2")
    fleet(2, 100)
    print(f"cells of {machines:,} machines; one worker of one thread")
    print(f"{'cells':>6} {'machines':>10} {'simulated':>12} {'worker':>10} {'driver':>10} {'written':>10}", end="")
    print(f" {'analysed':>10} {'reader':>10}")
    print(f"{'':>17} {'core-s':>12} {'MB':>10} {'MB':>10} {'MB':>10} {'core-s':>10} {'MB':>10}")
    rows = dict[int, dict[str, float]]()
    for cells in sizes:
        rows[cells] = fleet(cells, machines)
        print(told(cells, machines, rows[cells]))
    fitted = lines(rows)
    for name, line in fitted.items():
        print(f"  {COLUMNS[name]} = {line}, off by at most {line.off:.1%}")
    measured, predicted = fleet(asked.check, machines), {name: line(asked.check) for name, line in fitted.items()}
    print(told(asked.check, machines, predicted, "predicted"))
    print(told(asked.check, machines, measured, "measured"))
    print("  " + ", ".join(f"{COLUMNS[name]} {predicted[name] / measured[name] - 1:+.1%}" for name in COLUMNS))
    cells = -(-asked.fleet // machines)
    large = {name: line(cells) for name, line in lines(rows | {asked.check: measured}).items()}
    print(told(cells, machines, large, "extrapolated"))
    print(
        f"  {large['simulated'] / 3600:.2f} core-hours to simulate and {large['analysed'] / 60:.1f} core-minutes to "
        f"analyse, {large['worker']:.0f} MB a worker, {large['written'] / 1e3:.1f} GB written"
    )


if __name__ == "__main__":
    main()
