"""Figures become files: PNG to look at, SVG to print, the same bytes for the same figure."""

from pathlib import Path
from typing import Final, Literal

from matplotlib.figure import Figure

from analysis.figures.style import write
from scenarios.runs.unfinished import whole

_KINDS: Final[tuple[Literal["png", "svg"], ...]] = ("png", "svg")


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write a figure as ``stem.png`` and ``stem.svg`` and return the files.

    Where its parts stand is found once, for the first file, which is half of the work; nothing is drawn into it later.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [file.name for file in save(Figure(), Path(folder) / "empty")]
    ['empty.png', 'empty.svg']
    """
    written = []
    for kind in _KINDS:
        file = stem.with_name(f"{stem.name}.{kind}")
        with whole(file) as partial:
            write(figure, partial, kind)
        figure.set_layout_engine("none")
        written.append(file)
    return written
