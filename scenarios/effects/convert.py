"""Files of public traces made into a table of observations: `wsc convert`."""

import shutil
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from scenarios.files.faults import Fault, FaultsError, faults_in
from scenarios.runs.disk import hidden, unwritable
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import closest, plural
from scenarios.views.section import Section, says
from scenarios.views.terminal import Progress

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from analysis.tables.faults import Faults
    from analysis.traces.layouts import Format
    from analysis.traces.measurements import RowTally
    from analysis.traces.totals import TraceTotals
    from models.arrays import Ints

_NEAR = 0.8
"""How alike an unknown column is to one that is absent, from which it is taken for that, misspelt."""
CLOCKS_HZ = (1e8, 1e11)
"""Clocks that machines may have."""
_WRITTEN = {
    "out": ("period", "job", "machine", "weight", "value", "treated", "instance"),
    "jobs_out": ("job", "quota", "instances"),
}
"""How the tables begin that are written: a former one may be replaced, and no other file."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """Which files of a trace are made into which tables."""

    form: str
    """A name in `analysis.traces.layouts.FORMATS`."""
    usage: tuple[Path, ...]
    out: Path
    requests: tuple[Path, ...] = ()
    """Tables of what instances conversion for."""
    machines: Path | None = None
    """What the fleet's owner knows of machines: machine, treated and others."""
    jobs_out: Path | None = None
    period_s: float = 3600.0
    hosts: Path | None = None
    """The trace's own table of its machines."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Converted(Conclusion):
    """What was made of a trace."""

    format: str
    out: Path
    jobs_out: Path | None
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
    notes: tuple[str, ...]

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        fields = asdict(self) | {"out": str(self.out), "notes": list(self.notes)}
        return {"kind": "convert"} | fields | {"jobs_out": None if self.jobs_out is None else str(self.jobs_out)}

    def frame(self) -> "pd.DataFrame":
        """Return the counts, one row."""
        import pandas as pd

        counts = ("rows", "observations", "periods", "jobs", "machines", "machines_treated", "instances")
        return pd.DataFrame([{name: getattr(self, name) for name in counts}])

    def section(self) -> Section:
        """Return what people see: what was made of how many rows, what was left out and what is to be known."""
        return Section("", tuple(says(*self._lines())))

    def _lines(self) -> Iterator[str]:
        span = f"from {self.first_s:,.0f} s to {self.last_s:,.0f} s"
        yield f"{plural(self.rows, 'row')} of {self.format}, {span}"
        for why, count in self.left_out.items():
            yield f"  {count:,} left out: {why}"
        for why, count in self.set_aside.items():
            yield f"  {plural(count, 'stay')} left out: {why}"
        treated = f"{self.machines_treated:,}" if self.machines_treated else "none"
        observed = f"{plural(self.observations, 'observation')} in {plural(self.periods, 'period')}"
        yield (
            f"{self.out}: {observed}: {plural(self.jobs, 'job')}, {plural(self.instances, 'instance')}, "
            f"{plural(self.machines, 'machine')}, {treated} with the feature"
        )
        for what, count in self.doubts.items():
            yield f"note: {what}: {count:,}"
        for note in self.notes:
            yield f"note: {note}"


def convert(conversion: Conversion, progress: Progress | None = None) -> Converted:
    """Make files of a trace into a table of observations, written when it is complete.

    Memory does not grow with the files: rows are read in blocks, and sums that do not fit go to a hidden folder beside
    the table.

    Raises
    ------
    FaultsError
        With the faults of all files; if files are missing, or nothing is left of them.
    """
    from analysis.traces.layouts import FORMATS
    from analysis.traces.measurements import RowTally
    from analysis.traces.totals import TraceTotals

    form = FORMATS[conversion.form]
    _check(conversion, form)
    period_us = round(conversion.period_s * 1e6)
    faults, tally, notes = list[Fault](), RowTally(), list[str]()
    machines = _known(_machines(conversion.machines, faults, notes), _hosts(conversion, form, faults))
    with _hidden(conversion.out) as folder, TraceTotals(form, period_us, folder) as totals:
        totals.take(
            _measured(conversion, form, period_us=period_us, tally=tally, faults=faults, progress=progress),
            _requested(conversion, form, faults) if conversion.requests else None,
            machines,
        )
        if faults:
            raise FaultsError(faults)
        counts = totals.counts()
        if not counts["observations"]:
            raise FaultsError([Fault(str(conversion.usage[0]), 0, 0, "", _nothing(tally, totals))])
        _write(totals.observations(), conversion.out, folder)
        if conversion.jobs_out is not None:
            _write(_jobs(totals, tally), conversion.jobs_out, folder)
        return Converted(
            format=form.name,
            out=conversion.out,
            jobs_out=conversion.jobs_out,
            rows=tally.rows,
            left_out=dict(sorted(tally.left_out.items())) | _copies(totals.copies),
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
            notes=(
                *notes,
                *_never(machines, tally),
                *_notes(conversion, form, clocked=totals.clocked),
            ),
        )


def _copies(count: int) -> dict[str, int]:
    return {"copies of rows of the same instance, machine and time": count} if count else {}


def _check(conversion: Conversion, form: "Format") -> None:
    """Raise the faults of what is asked, before anything is read."""
    faults = [
        Fault(str(path), 0, 0, "", "is a folder" if path.is_dir() else "is not there")
        for path in _given(conversion)
        if not path.is_file()
    ]
    given = [path.resolve() for path in _given(conversion)]
    faults += [Fault(str(path), 0, 0, "", "is given twice") for path in {p for p in given if given.count(p) > 1}]
    if not form.numbered and not conversion.requests:
        what = "job and request are" if form.requested else "job is"
        problem = f"is needed: {form.name} says only in {form.requests.table} what an instance's {what}"
        faults.append(Fault("", 0, 0, "requests", problem))
    if conversion.hosts is not None and form.hosts is None:
        faults.append(Fault("", 0, 0, "hosts", f"is of no use: {form.name} has no table of its machines' clocks"))
    for name, path in (("out", conversion.out), ("jobs_out", conversion.jobs_out)):
        if path is not None and (problem := unwritable(path)):
            faults.append(Fault("", 0, 0, name, problem))
    faults += _overwritten(conversion)
    if faults:
        raise FaultsError(faults)


def _given(conversion: Conversion) -> tuple[Path, ...]:
    """Return the files of the trace."""
    hosts = () if conversion.hosts is None else (conversion.hosts,)
    return (*conversion.usage, *conversion.requests, *hosts)


def _overwritten(conversion: Conversion) -> Iterator[Fault]:
    """Yield the outputs that would take the place of what is read, or of each other."""
    read = {path.resolve() for path in (*_given(conversion), conversion.machines) if path is not None}
    for name, path in (("out", conversion.out), ("jobs_out", conversion.jobs_out)):
        if path is None:
            continue
        if path.resolve() in read:
            yield Fault("", 0, 0, name, "would overwrite a file that is read", str(path))
        elif path.is_file() and path.stat().st_size and not _former(path, _WRITTEN[name]):
            problem = f"is there and holds no former table ({', '.join(_WRITTEN[name])}); give another file"
            yield Fault("", 0, 0, name, problem, str(path))
    if conversion.jobs_out is not None and conversion.jobs_out.resolve() == conversion.out.resolve():
        problem = "would overwrite the observations: should be another file than --out"
        yield Fault("", 0, 0, "jobs_out", problem, str(conversion.jobs_out))


def _former(path: Path, columns: Sequence[str]) -> bool:
    """Return whether a file is a table that a conversion wrote, by its first columns."""
    from analysis.tables.cells import header_of

    return tuple(header_of(path)[: len(columns)]) == tuple(columns)


def _machines(path: Path | None, faults: list[Fault], notes: list[str]) -> "pd.DataFrame | None":
    """Return what is known of machines; its faults and notes go to the lists."""
    if path is None:
        return None
    from analysis.tables.columns import not_used, read_rows
    from analysis.traces.totals import MACHINES

    known = [field.name for field in MACHINES]
    try:
        with faults_in(path):
            rows = read_rows(path, MACHINES, lambda _: ["machine"])
    except FaultsError as error:
        faults += error.faults
        return None
    table, columns = rows.table, list(rows.table.columns)
    absent = [name for name in known if name not in columns]
    misspelt = [name for name in columns if name not in known and get_close_matches(name.lower(), absent, 1, _NEAR)]
    for name in misspelt:
        faults.append(Fault(str(path), 1, columns.index(name) + 1, name, f"unknown column ({closest(name, absent)})"))
    if "clock_hz" in table:
        faults += _impossible(path, table["clock_hz"], rows.lines, columns.index("clock_hz") + 1)
    notes += [f"{path}: {note}" for note in not_used(table, [*known, *misspelt])]
    return table[[name for name in known if name in table]]


def _impossible(path: Path, clock_hz: "pd.Series", lines: "Ints", column: int) -> Iterator[Fault]:
    """Yield the fault of clocks that no machine has, as numbers in other units are."""
    wrong = ((clock_hz < CLOCKS_HZ[0]) | (clock_hz > CLOCKS_HZ[1])).to_numpy()
    if wrong.any():
        first = int(wrong.argmax())
        more = f" and {wrong.sum() - 1:,} more" if wrong.sum() > 1 else ""
        problem = f"should be in Hz, from {CLOCKS_HZ[0]:.0e} to {CLOCKS_HZ[1]:.0e}".replace("e+", "e")
        yield Fault(str(path), int(lines[first]), column, "clock_hz", problem, f"{clock_hz.iloc[first]:g}{more}")


def _hosts(conversion: Conversion, form: "Format", faults: list[Fault]) -> "pd.DataFrame | None":
    """Return what the trace says of its machines; its faults go to the list."""
    if conversion.hosts is None or form.hosts is None:
        return None
    from analysis.tables.faults import Faults
    from analysis.traces.hosts import hosts

    in_file, table = Faults(), None
    with faults_in(conversion.hosts):
        table = hosts(conversion.hosts, form.hosts, in_file)
    faults += _located(conversion.hosts, in_file)
    return table


def _known(machines: "pd.DataFrame | None", hosts: "pd.DataFrame | None") -> "pd.DataFrame | None":
    """Return what is known of machines from both tables; what the owner says comes first."""
    if machines is None or hosts is None:
        return hosts if machines is None else machines
    return machines.set_index("machine").combine_first(hosts.set_index("machine")).reset_index()


def _measured(
    conversion: Conversion,
    form: "Format",
    *,
    period_us: int,
    tally: "RowTally",
    faults: list[Fault],
    progress: Progress | None,
) -> Iterator["pa.RecordBatch"]:
    """Yield the measurements of all files of use; faults go to the list."""
    from analysis.tables.faults import Faults
    from analysis.traces.measurements import measurements

    for number, path in enumerate(conversion.usage):
        if progress is not None:
            progress("reading", number / len(conversion.usage))
        in_file = Faults()
        with faults_in(path):
            yield from measurements(path, form, period_us, in_file, tally)
        faults += _located(path, in_file)


def _requested(conversion: Conversion, form: "Format", faults: list[Fault]) -> Iterator["pa.RecordBatch"]:
    """Yield what instances asked for in all files of requests; faults go to the list."""
    from analysis.tables.faults import Faults
    from analysis.traces.measurements import requests

    for path in conversion.requests:
        in_file = Faults()
        with faults_in(path):
            yield from requests(path, form, in_file)
        faults += _located(path, in_file)


def _located(path: Path, faults: "Faults") -> Iterator[Fault]:
    for fault in faults.printed():
        yield Fault(str(path), *fault[:5])
    if more := faults.unprinted():
        count, first = more
        yield Fault(str(path), first.line, first.column, "", f"and {plural(count, 'more fault')} from here on")


def _nothing(tally: "RowTally", totals: "TraceTotals") -> str:
    """Return why no observation is left."""
    why = [f"{count:,} {what}" for what, count in tally.left_out.items()]
    why += [f"{count:,} stays {what}" for what, count in totals.set_aside().items()]
    return f"holds no observation: {tally.rows:,} rows, of them {', '.join(why) or 'none of use'}"


def _jobs(totals: "TraceTotals", tally: "RowTally") -> "pa.RecordBatchReader":
    import pyarrow as pa

    return pa.Table.from_pandas(totals.jobs(tally.last_us - tally.first_us), preserve_index=False).to_reader()


def _never(machines: "pd.DataFrame | None", tally: "RowTally") -> Iterator[str]:
    """Yield how many machines are listed with the feature, but for times outside of the trace."""
    if machines is None or "treated" not in machines:
        return
    listed = machines[machines["treated"] == 1]
    last_s, first_s = tally.last_us / 1e6, tally.first_us / 1e6
    outside = {
        "since_s": (listed["since_s"] >= last_s if "since_s" in listed else None, "after the trace ends", last_s),
        "until_s": (listed["until_s"] <= first_s if "until_s" in listed else None, "before the trace begins", first_s),
    }
    for name, (rows, end, at_s) in outside.items():
        if rows is not None and (count := int(rows.sum())):
            units = f"{name} should be in seconds of the trace, which {end.rpartition(' ')[2]} at {at_s:,.0f} s"
            yield f"{plural(count, 'machine')} listed with the feature only {end}: {units}"


def _notes(conversion: Conversion, form: "Format", *, clocked: bool) -> Iterator[str]:
    if not (conversion.requests and form.requested):
        of_pods = f"{form.requests.table} has requests of pods, not of containers"
        lacking = "no table of requests" if form.requested else of_pods
        yield f"{lacking}: instances weigh by the CPU time that they use"
    by_clock = "value is instructions per CPU second, which takes different clocks into account"
    if form.counted and clocked:
        yield by_clock
        return
    if form.cpu != "CPUs":
        yield f"CPU time is in {form.cpu}" + (": give --hosts for seconds" if form.hosts else "")
    per_cycle = (
        "value is instructions per cycle, which a slower clock raises: give clock_hz of machines if clocks differ"
    )
    yield by_clock if clocked else per_cycle


@contextmanager
def _hidden(out: Path) -> Generator[Path]:
    """Yield a new hidden folder beside a file, which is removed at the end."""
    folder = hidden(out)
    try:
        folder.mkdir()
    except OSError as error:
        problem = f"cannot write {out}: {error.strerror or error}"
        raise FaultsError([Fault("", 0, 0, "out", problem)]) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write(batches: "pa.RecordBatchReader", out: Path, folder: Path) -> None:
    """Write a table batch by batch under another name, and give it its own when it is whole."""
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    partial = folder / out.name
    try:
        opened = pq.ParquetWriter if out.suffix == ".parquet" else pacsv.CSVWriter
        with opened(partial, batches.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        partial.replace(out)
    except OSError as error:
        problem = f"cannot write {out}: {error.strerror or error}"
        raise FaultsError([Fault("", 0, 0, "out", problem)]) from None
