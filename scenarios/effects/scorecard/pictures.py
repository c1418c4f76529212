"""The scorecard's pictures: a heat map of coverage for every design, and curves of margin and power."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.figures.world.scorecard import coverage_map, curves
from scenarios.runs.pictures import save


def pictures(card: Mapping[str, Any], out: Path) -> list[Path]:
    """Write the pictures of a scorecard into a folder that is there and return the files.

    Parameters
    ----------
    card : as `card.summary` returns it
    out : folder; ``coverage-DESIGN`` and ``curves`` go into it, as PNG and SVG

    Examples
    --------
    >>> import tempfile
    >>> row = {"design": "day", "estimator": "cuped", "machines": 25, "covered": 9, "draws": 10, "margin": 0.02}
    >>> rows = [row | {"corner": "base", "power": 0.5}]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [file.name for file in pictures({"corners": rows, "overall": rows}, Path(folder))]
    ['coverage-day.png', 'coverage-day.svg', 'curves.png', 'curves.svg']
    """
    corners = pd.DataFrame(card["corners"])
    written = []
    for design, of in corners.groupby("design", sort=False):
        written += save(coverage_map(of), out / f"coverage-{design}")
    return written + save(curves(pd.DataFrame(card["overall"])), out / "curves")
