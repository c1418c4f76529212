"""Columns of a service log in the form of table 1 (Stewart et al. 2008): what each holds, and in which unit.

========================= ====================================================================================
column                    what it holds, a row for each interval
========================= ====================================================================================
``start_s``               start of the interval in seconds, or
``timestamp``             the same as ISO 8601 with its date, or as a number since 1970
``requests_TYPE``         requests of the type that arrived; one column for each type
``instructions``          retired instructions
``l1_misses``             data misses of the first cache level; ``l2_misses``, and so on up to ``l9_misses``
``response_time_s``       mean response time; may be missing or have empty cells
``utilisation``           busy logical processors over all, 0 to 1; may be missing or have empty cells
========================= ====================================================================================

Times may end in ``_ms`` or ``_us`` instead, and counters in ``_1e3``, ``_1e4`` and so on where they count thousands.
A recipe makes them of somebody else's columns.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from analysis.tables.columns import BY_EXPRESSION, remedied
from analysis.tables.faults import FileFault

REQUESTS = "requests_"
_PATTERN = re.compile(
    r"(?P<time>start|response_time)_(?P<unit>s|ms|us)"
    r"|(?P<counter>instructions|l[1-9]_misses)(?:_1e(?P<power>\d))?"
    r"|(?P<plain>timestamp|utilisation)"
    rf"|(?P<type>{REQUESTS}.+)"
)
_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
_SPELLED = ("start_s", "timestamp", "instructions", "l1_misses", "l2_misses", "response_time_s", "utilisation")
_REQUIRED = ("instructions", "l1_misses", "l2_misses")


@dataclass(frozen=True, slots=True)
class LogColumn:
    """A column of a file: its name there, what it holds, and the factor to seconds or single events."""

    name: str
    holds: str
    """start, timestamp, response_time, utilisation, instructions, l1_misses, … or requests_TYPE."""
    factor: float = 1.0


def log_columns(names: Sequence[str], *, others: bool = False) -> tuple[dict[str, LogColumn], list[FileFault]]:
    """Return what the columns of a file hold, by that, and faults: unknown, twice in two units, missing columns.

    Parameters
    ----------
    others : whether columns that are none of a service log are left aside
    """
    columns, faults = dict[str, LogColumn](), list[FileFault]()
    for position, name in enumerate(names, 1):
        column = _column(name)
        if column is None:
            if not others:
                faults.append(FileFault(1, position, name, not_of_log(name), ""))
        elif column.holds in columns and columns[column.holds].name != name:
            already = columns[column.holds].name
            faults.append(FileFault(1, position, name, f"should not be there beside {already}", "both"))
        else:
            columns[column.holds] = column
    return columns, faults + list(_missing(names, columns))


def not_of_log(name: str) -> str:
    """Return what is wrong with a name that should be of a column of a service log; nothing if it is one.

    Examples
    --------
    >>> not_of_log("requests_buy"), not_of_log("response_ms")
    ('', 'is no column of a service log; perhaps response_time_s')
    """
    return "" if _column(name) else f"is no column of a service log{_hint(name)}"


def _column(name: str) -> LogColumn | None:
    """Return what a column holds by its name; nothing if it is none of a service log."""
    match = _PATTERN.fullmatch(name)
    if match is None:
        return None
    if match["time"]:
        return LogColumn(name, match["time"], _UNITS[match["unit"]])
    if match["counter"]:
        return LogColumn(name, match["counter"], 10.0 ** int(match["power"] or 0))
    return LogColumn(name, name)


def _hint(name: str) -> str:
    """Return the known column whose name is nearest, to be said after a fault."""
    snake = re.sub(r"\W+", "_", name.lower())
    near = get_close_matches(snake, _SPELLED, 1)
    if not near and snake.startswith(("request", "type")):
        near = [f"{REQUESTS}TYPE"]
    return f"; perhaps {near[0]}" if near else f"; those are {', '.join(_SPELLED)} and {REQUESTS}TYPE"


def _missing(names: Sequence[str], columns: dict[str, LogColumn]) -> Iterator[FileFault]:
    """Yield a fault for each column that a log must have and this one has not."""
    got = f"columns {', '.join(names)}"
    times = [columns[name].name for name in ("start", "timestamp") if name in columns]
    if not times:
        yield FileFault(1, 1, "start_s", f"or timestamp should be there{remedied(BY_EXPRESSION, 'start_s')}", got)
    if len(times) == 2:
        yield FileFault(1, names.index(times[1]) + 1, times[1], f"should not be there beside {times[0]}", "both")
    if not any(name.startswith(REQUESTS) for name in columns):
        problem = f"should be there for at least one type{remedied(BY_EXPRESSION, f'{REQUESTS}TYPE')}"
        yield FileFault(1, 1, f"{REQUESTS}TYPE", problem, got)
    levels = [level for level in range(3, 10) if f"l{level}_misses" in columns]
    between = [f"l{level}_misses" for level in range(3, max(levels, default=0))]
    for name in (*_REQUIRED, *between):
        if name not in columns:
            yield FileFault(1, 1, name, f"column is missing{remedied(BY_EXPRESSION, name)}", got)
