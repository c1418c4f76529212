"""Rows of use as measurements in whole numbers, so that no sum depends on their order."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.tables.faults import Faults, FileFault
from analysis.traces.cells import names, numbers
from analysis.traces.files import TraceBlock, blocks
from analysis.traces.layouts import Format, TraceTable
from models.arrays import Bools, Floats

LEAST_CPI, MOST_CPI = 0.1, 100.0
"""What no processor does is a mistake of measurement: more than 10 instructions a cycle, less than one in 100."""
LONGEST_US = 86_400_000_000
"""A measurement is of a day at most."""
SCHEMA = pa.schema(
    [
        ("period", pa.int64()),
        ("start_us", pa.int64()),
        ("cpu", pa.string()),
        ("job", pa.string()),
        ("machine", pa.string()),
        ("instance", pa.string()),
        ("present_us", pa.int64()),
        ("cpu_ns", pa.int64()),
        ("counted_ns", pa.int64()),
        ("work_ns", pa.int64()),
        ("cycles", pa.int64()),
        ("misses", pa.int64()),
    ]
)
"""Of measurements: number of the period; when they begin, and the logical processor, "" where rows do not say; time
present; CPU time, and that of which cycles and instructions were counted; the latter over its CPI, which is
instructions in units of cycles. Where use is a share of the request, CPU times are of one requested CPU. Of a trace of
counters CPU times are reference cycles, the work is instructions, cycles and cache misses are those of the rows that
are counted, and an instance is present for the whole period; elsewhere the last two are null."""
REQUESTS = pa.schema([("instance", pa.string()), ("job", pa.string()), ("request_n", pa.int64())])
"""Of requests: what an instance asked for, in billionths of a CPU; null if it does not say."""
_NO_MACHINE = ("", "0", "-1")
_ALLOC_SET = ("1", "ALLOC_SET")


@dataclass(slots=True)
class RowTally:
    """How many rows were read, how many are of no use and why, and from when to when the others are.

    Examples
    --------
    >>> tally = RowTally()
    >>> tally.leave_out("no CPI", np.array([True, False]))
    >>> tally.left_out
    {'no CPI': 1}
    """

    rows: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    first_us: int = np.iinfo(np.int64).max
    last_us: int = 0

    def leave_out(self, why: str, rows: Bools) -> None:
        """Count rows that are of no use."""
        if count := int(np.count_nonzero(rows)):
            self.left_out[why] = self.left_out.get(why, 0) + count


def measurements(path: Path, form: Format, period_us: int, faults: Faults, tally: RowTally) -> Iterator[pa.RecordBatch]:
    """Yield the measurements of a file of use, in `SCHEMA`, row by row in the order of the file.

    A row without cycles per instruction still says that its instance was there and used CPU time. A measurement belongs
    to the period in which it begins.

    Parameters
    ----------
    path : as `analysis.traces.files.blocks`
    form : the trace's format
    period_us : length of periods in microseconds
    faults, tally : take what is wrong, and what is left out

    Raises
    ------
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> from analysis.traces.layouts import FORMATS
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = Path(file.name).write_text("600000000,900000000,3,0,m," + "0.1," * 10 + "2,,,,\\n")
    ...     (batch,) = measurements(Path(file.name), FORMATS["google2011"], 3_600_000_000, Faults(), RowTally())
    >>> batch.to_pylist()[0]["cpu_ns"], batch.to_pylist()[0]["work_ns"]
    (30000000000, 15000000000)
    """
    measured = _counters if form.counted else _measured
    for block in blocks(path, form.usage, faults):
        yield measured(block, form, period_us, faults, tally)


def requests(path: Path, form: Format, faults: Faults) -> Iterator[pa.RecordBatch]:
    """Yield what the instances of a file asked for, in `REQUESTS`.

    Raises
    ------
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> from analysis.traces.layouts import FORMATS
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = Path(file.name).write_text("c_1,m_9,0,app_7,started,400,800,3.1\\n")
    ...     (batch,) = requests(Path(file.name), FORMATS["alibaba2018"], Faults())
    >>> batch.to_pylist()
    [{'instance': 'c_1', 'job': 'app_7', 'request_n': 4000000000}]
    """
    for block in blocks(path, form.requests, faults):
        texts, amounts, wrong = _cells(block, form.requests, faults)
        request = amounts.get("request", np.zeros(len(wrong)))
        requested = np.round(request * form.requested_cpus * 1e9)
        billionths = pa.array(np.nan_to_num(requested).astype(np.int64), mask=~(requested > 0))
        columns = [_instance(texts, form), _job(texts), billionths]
        yield pa.record_batch(columns, REQUESTS).filter(pa.array(~wrong))


def _measured(block: TraceBlock, form: Format, period_us: int, faults: Faults, tally: RowTally) -> pa.RecordBatch:
    texts, amounts, wrong = _cells(block, form.usage, faults)
    start_us = amounts["start"] * form.tick_us
    present_us = np.full(len(start_us), float(form.sample_us)) if form.sample_us else amounts["end"] - start_us
    wrong |= _misplaced(block, form, present_us, faults)
    tally.rows += len(start_us)
    counts = ~wrong & _placed(texts, start_us, form, wrong, tally)
    cpus = amounts["cpus"] * (form.use_of_request or 1.0)
    cpu_ns: Floats = np.round(np.nan_to_num(np.where(counts, cpus * present_us, 0.0) * 1e3)).astype(np.float64)
    counted = counts & _counted(amounts["cpi"], cpu_ns, counts, tally)
    cpi = np.where(counted, amounts["cpi"], 1.0)
    tally.first_us = int(min(tally.first_us, start_us[counts].min(initial=tally.first_us)))
    tally.last_us = int(max(tally.last_us, (start_us + present_us)[counts].max(initial=tally.last_us)))
    columns = [
        _whole(np.floor(np.where(counts, start_us, 0.0) / period_us)),
        _whole(np.where(counts, start_us, 0.0)),
        texts.get("cpu", pa.array([""] * len(counts), pa.string())),
        _job(texts),
        texts["machine"],
        _instance(texts, form),
        _whole(np.where(counts, present_us, 0.0)),
        _whole(cpu_ns),
        _whole(np.where(counted, cpu_ns, 0.0)),
        _whole(np.where(counted, np.round(cpu_ns / cpi), 0.0)),
        *[pa.nulls(len(counts), pa.int64())] * 2,
    ]
    return pa.record_batch(columns, SCHEMA).filter(pa.array(counts))


def _counters(block: TraceBlock, form: Format, period_us: int, faults: Faults, tally: RowTally) -> pa.RecordBatch:
    """Return rows of counts; those of an instance that ran on several CPUs at a time are several rows of one stay."""
    texts, amounts, wrong = _cells(block, form.usage, faults)
    start_us = amounts["start"] * form.tick_us
    tally.rows += len(start_us)
    counts = ~wrong & _placed(texts, start_us, form, wrong, tally)
    reference = np.where(counts, np.nan_to_num(amounts["reference"]), 0.0)
    missing = counts & (np.isnan(amounts["instructions"]) | np.isnan(amounts["cycles"]) | np.isnan(amounts["misses"]))
    tally.leave_out("count missing", missing & (reference > 0))
    instructions = np.where(counts & ~missing, amounts["instructions"], 1.0)
    cpi = np.where(missing, 1.0, np.nan_to_num(amounts["cycles"]) / np.where(instructions > 0, instructions, np.inf))
    counted = counts & ~missing & _counted(cpi, reference, counts, tally)
    tally.first_us = int(min(tally.first_us, start_us[counts].min(initial=tally.first_us)))
    tally.last_us = int(max(tally.last_us, start_us[counts].max(initial=tally.last_us)))
    columns = [
        _whole(np.floor(np.where(counts, start_us, 0.0) / period_us)),
        _whole(np.where(counts, start_us, 0.0)),
        texts.get("cpu", pa.array([""] * len(counts), pa.string())),
        _job(texts),
        texts["machine"],
        _instance(texts, form),
        _whole(np.where(counts, float(period_us), 0.0)),
        _whole(reference),
        _whole(np.where(counted, reference, 0.0)),
        _whole(np.where(counted, amounts["instructions"], 0.0)),
        _whole(np.where(counted, amounts["cycles"], 0.0)),
        _whole(np.where(counted, amounts["misses"], 0.0)),
    ]
    return pa.record_batch(columns, SCHEMA).filter(pa.array(counts))


def _cells(
    block: TraceBlock, layout: TraceTable, faults: Faults
) -> tuple[dict[str, pa.Array], dict[str, Floats], Bools]:
    """Return names, numbers, and which rows have a fault."""
    texts, amounts = dict[str, pa.Array](), dict[str, Floats]()
    wrong = np.zeros(len(block.lines), dtype=bool)
    for column in layout.columns:
        if column.kind in {"name", "maybe_name"}:
            texts[column.field], broken = names(block, column, faults)
        else:
            amounts[column.field], broken = numbers(block, column, faults)
        wrong |= broken
    return texts, amounts, wrong


def _misplaced(block: TraceBlock, form: Format, present_us: Floats, faults: Faults) -> Bools:
    """Return which rows end before they begin, or are too long."""
    if form.sample_us:
        return np.zeros(len(present_us), dtype=bool)
    backwards, long = present_us < 0, present_us > LONGEST_US
    name, place = next(
        (column.names[0], block.places[column.field]) for column in form.usage.columns if column.field == "end"
    )
    for wrong, problem in ((backwards, "should be at least the start"), (long, "should be within a day of the start")):
        for row in np.flatnonzero(wrong):
            got = str(block.columns["end"][int(row)].as_py())
            faults.add(FileFault(int(block.lines[row]), place, name, problem, got))
    return np.asarray(backwards | long)


def _placed(texts: dict[str, pa.Array], start_us: Floats, form: Format, wrong: Bools, tally: RowTally) -> Bools:
    """Return which rows are of a job's instance on a machine within the trace."""
    nowhere = ~wrong & _among(texts["machine"], _NO_MACHINE)
    tally.leave_out("no machine", nowhere)
    good = ~nowhere
    if "collection" in texts:
        of_set = ~wrong & good & _among(texts["collection"], _ALLOC_SET)
        tally.leave_out("alloc set, whose tasks have rows of their own", of_set)
        good &= ~of_set
    if form.sample_us:
        outside = ~wrong & good & (start_us == 0)
        tally.leave_out("time 0, which is outside of the trace", outside)
        good &= ~outside
    return np.asarray(good)


def _counted(cpi: Floats, cpu_ns: Floats, counts: Bools, tally: RowTally) -> Bools:
    """Return which rows say how many cycles an instruction took."""
    idle = counts & (cpu_ns == 0)
    none = counts & ~idle & ~(cpi > 0)
    beyond = counts & ~idle & (cpi > 0) & ((cpi < LEAST_CPI) | (cpi > MOST_CPI))
    tally.leave_out("no CPU time", idle)
    tally.leave_out("no CPI", none)
    tally.leave_out(f"CPI not within {LEAST_CPI:g} and {MOST_CPI:g}", beyond)
    return np.asarray(~idle & ~none & ~beyond)


def _among(text: pa.Array, values: tuple[str, ...]) -> Bools:
    return np.asarray(pc.is_in(text, pa.array(values)).to_numpy(zero_copy_only=False))


def _instance(texts: dict[str, pa.Array], form: Format) -> pa.Array:
    """Return the names of instances, with their job's where that is needed to tell them apart."""
    return pc.binary_join_element_wise(texts["job"], texts["index"], "/") if form.numbered else texts["index"]


def _job(texts: dict[str, pa.Array]) -> pa.Array:
    """Return the names of jobs, null where there is none, with the role of an instance where the trace has roles."""
    if "job" not in texts:
        return pa.nulls(len(texts["index"]), pa.string())
    job = texts["job"]
    if "role" in texts:
        with_role = pc.binary_join_element_wise(job, texts["role"], "/")
        job = pc.if_else(pc.equal(texts["role"], ""), job, with_role)
    return pc.if_else(pc.equal(texts["job"], ""), pa.scalar(None, pa.string()), job)


def _whole(value: Floats) -> pa.Array:
    return pa.array(np.nan_to_num(value).astype(np.int64))
