"""Request logs of any format that is known: the beginning of a file tells which it is."""

from pathlib import Path

from analysis.occupancy.logs.access_logs import is_access_log, read_access_log
from analysis.occupancy.logs.columns import PER_SECOND
from analysis.occupancy.logs.sources import Log
from analysis.occupancy.logs.swf import is_swf, read_swf
from analysis.occupancy.logs.table_logs import read_table_log
from analysis.tables.bytes import head_of
from analysis.tables.faults import FileError, FileFault
from models.errors import InputError


def read_log(
    path: Path,
    arrival: str | None = None,
    departure: str | None = None,
    duration: str | None = None,
    unit: str | None = None,
    *,
    priority: str | None = None,
) -> Log:
    """Read a request log: CSV, Parquet, an access log of a web server or proxy, or the Standard Workload Format.

    Parameters
    ----------
    path : the file, plain or gzipped
    arrival, departure, duration : columns of a table; those not given are found by their names. Of an access log one
        of the first two may be `time`, to say what its stamp is, and the last the number or the name of its field
    unit : s, ms, us or ns of numbers that do not say it themselves
    priority : column of a table with the class of each request, 0 served first

    Raises
    ------
    FileError
        With every fault of the file.
    ValueError
        If the unit is none of these, or a column is named that the format does not have.
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = Path(file.name).write_text("arr_ms,dep_ms\\n0,39\\n383,388\\n")
    ...     read_log(Path(file.name)).table
       arrival_s  departure_s
    0      0.000        0.039
    1      0.383        0.388
    """
    if unit is not None and unit not in PER_SECOND:
        raise InputError(f"a unit is one of {', '.join(PER_SECOND)}, got {unit}")
    head = head_of(path)
    if priority and (is_access_log(head) or is_swf(head)):
        raise FileError([FileFault(1, 1, priority, "should be a column", "a format without such columns")])
    if is_access_log(head):
        return read_access_log(path, _stamp(arrival, departure), unit, duration)
    if is_swf(head):
        if arrival or departure or duration or unit:
            raise FileError(
                [FileFault(1, 1, "file", "has its columns and units from its format", "Standard Workload Format")]
            )
        return read_swf(path)
    return read_table_log(path, arrival, departure, duration, unit, priority=priority)


def _stamp(arrival: str | None, departure: str | None) -> str | None:
    """Return whether the stamp of an access log was said to be the arrival or the departure."""
    columns = [name for name in (arrival, departure) if name is not None]
    if len(columns) > 1 or any(name != "time" for name in columns):
        raise InputError(
            f"an access log has one stamp, time, which is an arrival or a departure, got {', '.join(columns)}"
        )
    return "arrival" if arrival else "departure" if departure else None
