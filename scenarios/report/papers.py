"""What papers printed of the fleet, server or service that a run is of, and how to set ours beside it."""

import math
from collections.abc import Iterator

import pandas as pd

from analysis.figures.criteria import printed as numbers
from scenarios.papers.rows import published
from scenarios.report.subject import Subject, composed
from scenarios.views.section import Section, table
from scenarios.views.terminal import Progress

_MOST = 6
"""Numbers told of one figure or table."""


def printed(subject: Subject, _progress: Progress) -> Iterator[Section]:
    """Yield the printed numbers of the figures and tables that the run's scenario stands for, if any."""
    from scenarios.papers.catalogue import ROWS

    name = subject.scenario.name
    chosen = [row for row in ROWS.values() if name in row.scenarios]
    lines = [line for row in chosen for line in _lines(row.id, row.what, numbers(published(row.id), inputs=False))]
    if not lines:
        return
    yield composed(
        "What the papers printed",
        (f"{len(chosen)} figures and tables rest on scenario {name}; the commands set ours beside what was printed.",),
        (table(("figure or table", "what it shows", "number", "printed"), lines, words=3),),
        commands=tuple(f"wsc reproduce {row.id}" for row in chosen),
    )


def _lines(row: str, what: str, paper: pd.DataFrame) -> Iterator[tuple[str, ...]]:
    """Yield the first numbers of a figure or table, and how many more there are."""
    for i, (series, x, value) in enumerate(zip(paper["series"], paper["x"], paper["value"], strict=True)):
        if i == _MOST:
            yield "", "", f"and {len(paper) - _MOST} more", ""
            return
        at = "" if math.isnan(x) else f" at {x:g}"
        yield row if i == 0 else "", what if i == 0 else "", f"{series.replace('_', ' ')}{at}", f"{value:.4g}"
