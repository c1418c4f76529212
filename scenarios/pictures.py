"""Figures become files: PNG to look at, SVG to print, the same bytes for the same figure."""

from pathlib import Path

from matplotlib.figure import Figure

from analysis.figures.style import repeatable
from scenarios.unfinished import whole

_FORMATS = (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None}))


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write a figure as ``stem.png`` and ``stem.svg`` and return the files.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [file.name for file in save(Figure(), Path(folder) / "empty")]
    ['empty.png', 'empty.svg']
    """
    written = []
    for suffix, metadata in _FORMATS:
        file = stem.with_name(f"{stem.name}.{suffix}")
        with whole(file) as partial, repeatable():
            figure.savefig(partial, format=suffix, metadata=metadata)
        written.append(file)
    return written
