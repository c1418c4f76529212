"""Whether a run's tables are those that its manifest lists: faults where unreadable, notes where changed."""

from collections.abc import Iterator
from pathlib import Path

from scenarios.files.faults import Fault, FaultsError
from scenarios.report.subject import composed
from scenarios.runs import verify as run_tables
from scenarios.runs.rundir import Run
from scenarios.views.section import Section, Verdict, table

_TRUTH = "truth_"


def listed(run: Run) -> Section:
    """Return what tables a run has, and which of them are not as they were written.

    Parameters
    ----------
    run : a finished run
    """
    faults = [*(fault for file, _ in run.files() for fault in _lost(file, run)), *run_tables.faults(run)]
    if faults:
        raise FaultsError(faults)
    changed = run_tables.changed(run)
    present = {name: entry for name, entry in run.listed.items() if run.has(name)}
    absent = [name for name in run.listed if name not in present]
    rows = [(name, f"{entry['rows']:,}", f"{_bytes(run, name):,}") for name, entry in present.items()]
    says = [f"{len(rows)} tables."]
    says += [f"Not there: {', '.join(absent)}."] if absent else []
    says += [f"Changed since the run was made: {', '.join(changed)}."] if changed else []
    told = f"changed since the run was made: {', '.join(changed)}"
    verdicts = (Verdict("The tables", told, False),) if changed else ()
    return composed(
        "The run's tables", tuple(says), (table(("table", "rows", "bytes"), rows),) if rows else (), verdicts=verdicts
    )


def _bytes(run: Run, name: str) -> int:
    """Return the size of a table, of all its cells' parts together."""
    entry = run.listed[name]
    parts = entry.get("partitions", {"": entry}).values()
    return sum(int(part["file_bytes"]) for part in parts)


def _lost(file: Path, run: Run) -> Iterator[Fault]:
    """Yield that a file which is listed is not there."""
    if not file.is_file() and not str(file.relative_to(run.path)).startswith(_TRUTH):
        yield Fault(str(file), 0, 0, "", "is not there, though the run lists it")
