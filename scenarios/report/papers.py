"""What papers printed of the fleet, server or service that a run is of, and how to set ours beside it."""

import math
from collections.abc import Iterator

import pandas as pd

from analysis.figures.criteria import printed as numbers
from scenarios.papers.evidence import published
from scenarios.report.subject import Subject, composed
from scenarios.views.output import Progress
from scenarios.views.section import Section, table

_MOST = 6
"""Numbers told of one figure or table."""


def printed(subject: Subject, _progress: Progress) -> Iterator[Section]:
    """Yield the printed numbers of the figures and tables that the run's scenario stands for, if any.

    Examples
    --------
    >>> from scenarios.report.subject import example
    >>> next(printed(example("queue_sessions"), lambda what, share: None)).blocks[-1]
    Command(text='wsc reproduce occupancy/fig6')
    """
    from scenarios.papers.reproduce import ROWS

    name = subject.scenario.name
    chosen = {row: ROWS[row].what for row in ROWS if name in ROWS[row].scenarios}
    each = {row: list(_lines(row, what, numbers(published(row), inputs=False))) for row, what in chosen.items()}
    told = [line for lines in each.values() for line in lines]
    if not told:
        return
    yield composed(
        "What the papers printed",
        (f"{len(each)} figures and tables rest on scenario {name}; the commands set ours beside what was printed.",),
        (table(("figure or table", "what it shows", "number", "printed"), told, words=3),),
        commands=tuple(f"wsc reproduce {row}" for row in each),
    )


def _lines(row: str, what: str, printed_: pd.DataFrame) -> Iterator[tuple[str, ...]]:
    """Yield the first numbers of a figure or table, and how many more there are."""
    for i, one in enumerate(printed_.to_dict("records")):
        if i == _MOST:
            yield "", "", f"and {len(printed_) - _MOST} more", ""
            return
        at = "" if math.isnan(one["x"]) else f" at {one['x']:g}"
        yield (
            row if i == 0 else "",
            what if i == 0 else "",
            f"{one['series'].replace('_', ' ')}{at}",
            f"{one['value']:.4g}",
        )
