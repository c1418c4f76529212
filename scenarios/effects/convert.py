"""Files of public traces made into a table of observations: `wsc convert`."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from scenarios.files.faults import Fault, FaultsError
from scenarios.runs.unfinished import hidden, unwritable
from scenarios.views.output import Progress
from scenarios.wsmeter.own import faults_in

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from rich.console import Console

    from analysis.tables.faults import Faults
    from analysis.traces.layouts import Format
    from analysis.traces.measurements import Tally
    from analysis.traces.totals import Totals

"""What a table may be written as."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Which files of a trace are made into which tables.

    Examples
    --------
    >>> Asked("google2011", (Path("part-00000-of-00500.csv.gz"),), Path("observations.parquet")).period_s
    3600.0
    """

    form: str
    """A name in `analysis.traces.layouts.FORMATS`."""
    usage: tuple[Path, ...]
    out: Path
    requests: tuple[Path, ...] = ()
    """Tables of what instances asked for."""
    machines: Path | None = None
    """What the fleet's owner knows of machines: machine, treated and others."""
    jobs_out: Path | None = None
    period_s: float = 3600.0


class Converted(TypedDict):
    """What `wsc convert` says."""

    kind: str
    format: str
    out: str
    jobs_out: str | None
    rows: int
    """Rows of use that were read."""
    left_out: dict[str, int]
    """Rows that say nothing of performance, by why."""
    set_aside: dict[str, int]
    """Stays that are in no observation although their rows were read, by why."""
    doubts: dict[str, int]
    observations: int
    periods: int
    jobs: int
    machines: int
    machines_treated: int
    instances: int
    first_s: float
    last_s: float
    """When the measurements begin and end, in seconds of the trace."""
    notes: list[str]


def convert(asked: Asked, progress: Progress | None = None) -> Converted:
    """Make files of a trace into a table of observations, written when it is complete.

    Memory does not grow with the files: rows are read in blocks, and sums that do not fit go to a hidden folder beside
    the table.

    Raises
    ------
    FaultsError
        With the faults of all files; if files are missing, or nothing is left of them.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     usage = Path(folder) / "part-00000-of-00500.csv"
    ...     _ = usage.write_text("600000000,900000000,3,0,m,0.2" + "," * 10 + "1.6,,,,\\n")
    ...     convert(Asked("google2011", (usage,), Path(folder) / "made.csv"))["observations"]
    1
    """
    from analysis.traces.layouts import FORMATS
    from analysis.traces.measurements import Tally
    from analysis.traces.totals import Totals

    form = FORMATS[asked.form]
    _check(asked, form)
    period_us = round(asked.period_s * 1e6)
    found, tally = list[Fault](), Tally()
    machines = _machines(asked.machines, found)
    with _hidden(asked.out) as folder, Totals(form, period_us, folder) as totals:
        totals.take(
            _measured(asked, form, (period_us, tally, found, progress)),
            _requested(asked, form, found) if asked.requests else None,
            machines,
        )
        if found:
            raise FaultsError(found)
        counts = totals.counts()
        if not counts["observations"]:
            raise FaultsError([Fault(str(asked.usage[0]), 0, 0, "", _nothing(tally, totals))])
        _write(totals.observations(), asked.out, folder)
        if asked.jobs_out is not None:
            _write(_jobs(totals, tally), asked.jobs_out, folder)
        return Converted(
            kind="convert",
            format=form.name,
            out=str(asked.out),
            jobs_out=None if asked.jobs_out is None else str(asked.jobs_out),
            rows=tally.rows,
            left_out=dict(sorted(tally.left_out.items())),
            set_aside=totals.set_aside(),
            doubts=totals.doubts(),
            observations=counts["observations"],
            periods=counts["periods"],
            jobs=counts["jobs"],
            machines=counts["machines"],
            machines_treated=counts["machines_treated"],
            instances=counts["instances"],
            first_s=tally.first_us / 1e6,
            last_s=tally.last_us / 1e6,
            notes=list(_notes(asked, form)),
        )


def show(payload: Converted, console: "Console") -> None:
    """Print what was made of how many rows, what was left out and what is to be known.

    Examples
    --------
    >>> from rich.console import Console
    >>> said = Converted(
    ...     kind="convert", format="google2011", out="made.csv", jobs_out=None, rows=9, left_out={"no CPI": 2},
    ...     set_aside={}, doubts={}, observations=3, periods=1, jobs=2, machines=3, machines_treated=0, instances=3,
    ...     first_s=600.0, last_s=4200.0, notes=[],
    ... )
    >>> show(said, Console())
    9 rows of google2011, from 600 s to 4,200 s
      2 left out: no CPI
    made.csv: 3 observations in 1 period: 2 jobs, 3 instances, 3 machines, none with the feature
    """
    from scenarios.views.numbers import plural

    def say(text: str) -> None:
        console.print(text, soft_wrap=True, markup=False, highlight=False)

    span = f"from {payload['first_s']:,.0f} s to {payload['last_s']:,.0f} s"
    say(f"{plural(payload['rows'], 'row')} of {payload['format']}, {span}")
    for why, count in payload["left_out"].items():
        say(f"  {count:,} left out: {why}")
    for why, count in payload["set_aside"].items():
        say(f"  {plural(count, 'stay')} left out: {why}")
    treated = f"{payload['machines_treated']:,}" if payload["machines_treated"] else "none"
    made = f"{plural(payload['observations'], 'observation')} in {plural(payload['periods'], 'period')}"
    say(
        f"{payload['out']}: {made}: {plural(payload['jobs'], 'job')}, {plural(payload['instances'], 'instance')}, "
        f"{plural(payload['machines'], 'machine')}, {treated} with the feature"
    )
    for what, count in payload["doubts"].items():
        say(f"note: {count:,} {what}")
    for note in payload["notes"]:
        say(f"note: {note}")


def _check(asked: Asked, form: "Format") -> None:
    """Raise the faults of what is asked, before anything is read."""
    found = [
        Fault(str(path), 0, 0, "", "is a folder" if path.is_dir() else "is not there")
        for path in (*asked.usage, *asked.requests)
        if not path.is_file()
    ]
    given = [path.resolve() for path in (*asked.usage, *asked.requests)]
    found += [Fault(str(path), 0, 0, "", "is given twice") for path in {p for p in given if given.count(p) > 1}]
    if form.use_of_request and not asked.requests:
        problem = f"is needed: {form.name} says only in {form.requests.table} what an instance's job and request are"
        found.append(Fault("--requests", 0, 0, "", problem))
    for option, path in (("--out", asked.out), ("--jobs-out", asked.jobs_out)):
        if path is not None and (problem := unwritable(path)):
            found.append(Fault(option, 0, 0, "", problem))
    found += _overwritten(asked)
    if found:
        raise FaultsError(found)


def _overwritten(asked: Asked) -> Iterator[Fault]:
    """Yield the outputs that would take the place of what is read, or of each other."""
    read = {path.resolve() for path in (*asked.usage, *asked.requests, asked.machines) if path is not None}
    for option, path in (("--out", asked.out), ("--jobs-out", asked.jobs_out)):
        if path is None:
            continue
        if path.resolve() in read:
            yield Fault(option, 0, 0, "", "would overwrite what is read", str(path))
        read.add(path.resolve())


def _machines(path: Path | None, found: list[Fault]) -> "pd.DataFrame | None":
    """Return what is known of machines; its faults go to `found`."""
    if path is None:
        return None
    from analysis.tables.columns import read_table
    from analysis.traces.totals import MACHINES

    try:
        with faults_in(path):
            table = read_table(path, MACHINES, lambda _: ["machine"])
        return table[[field.name for field in MACHINES if field.name in table]]
    except FaultsError as error:
        found += error.faults
        return None


def _measured(
    asked: Asked, form: "Format", state: tuple[int, "Tally", list[Fault], Progress | None]
) -> Iterator["pa.RecordBatch"]:
    """Yield the measurements of all files of use; faults go to the list."""
    from analysis.tables.faults import Faults
    from analysis.traces.measurements import measurements

    period_us, tally, found, progress = state
    for number, path in enumerate(asked.usage):
        if progress is not None:
            progress("reading", number / len(asked.usage))
        faults = Faults()
        with faults_in(path):
            yield from measurements(path, form, period_us, faults, tally)
        found += _located(path, faults)


def _requested(asked: Asked, form: "Format", found: list[Fault]) -> Iterator["pa.RecordBatch"]:
    """Yield what instances asked for in all files of requests; faults go to the list."""
    from analysis.tables.faults import Faults
    from analysis.traces.measurements import requests

    for path in asked.requests:
        faults = Faults()
        with faults_in(path):
            yield from requests(path, form, faults)
        found += _located(path, faults)


def _located(path: Path, faults: "Faults") -> Iterator[Fault]:
    for fault in faults.printed():
        yield Fault(str(path), *fault[:5])
    if more := faults.unprinted():
        count, first = more
        yield Fault(str(path), first.line, first.column, "", f"and {count:,} more faults from here on")


def _nothing(tally: "Tally", totals: "Totals") -> str:
    """Return why no observation is left."""
    why = [f"{count:,} {what}" for what, count in tally.left_out.items()]
    why += [f"{count:,} stays {what}" for what, count in totals.set_aside().items()]
    return f"holds no observation: {tally.rows:,} rows, of them {', '.join(why) or 'none of use'}"


def _jobs(totals: "Totals", tally: "Tally") -> "pa.RecordBatchReader":
    import pyarrow as pa

    return pa.Table.from_pandas(totals.jobs(tally.last_us - tally.first_us), preserve_index=False).to_reader()


def _notes(asked: Asked, form: "Format") -> Iterator[str]:
    if not asked.requests:
        yield "no table of requests: instances weigh by the CPU time that they use"
    if form.cpu != "CPUs":
        yield f"CPU time is in {form.cpu}"
    yield "value is instructions per cycle, which a slower clock raises: say clock_hz of machines if clocks differ"


@contextmanager
def _hidden(out: Path) -> Iterator[Path]:
    """Yield a new hidden folder beside a file, which is removed at the end."""
    folder = hidden(out)
    try:
        folder.mkdir()
    except OSError as error:
        problem = f"cannot write {out}: {error.strerror or error}"
        raise FaultsError([Fault("--out", 0, 0, "", problem)]) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write(batches: "pa.RecordBatchReader", out: Path, folder: Path) -> None:
    """Write a table batch by batch under another name, and give it its own when it is whole."""
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    made = folder / out.name
    try:
        opened = pq.ParquetWriter if out.suffix == ".parquet" else pacsv.CSVWriter
        with opened(made, batches.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        made.replace(out)
    except OSError as error:
        problem = f"cannot write {out}: {error.strerror or error}"
        raise FaultsError([Fault("--out", 0, 0, "", problem)]) from None
