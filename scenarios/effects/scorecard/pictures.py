"""The scorecard's pictures: a heat map of coverage for every design, and curves of margin and power."""

from pathlib import Path

from analysis.figures.world.scorecard import coverage_map, curves
from scenarios.effects.scorecard.card import Card
from scenarios.runs.disk import save


def pictures(card: Card, out: Path) -> list[Path]:
    """Write the pictures of a scorecard into a folder that is there and return the files.

    They are ``coverage-DESIGN`` and ``curves``, as PNG and SVG.
    """
    written = list[Path]()
    for design, of in card.corners.groupby("design", sort=False):
        written += save(coverage_map(of), out / f"coverage-{design}")
    return written + save(curves(card.overall), out / "curves")
