"""Figures inside a page: SVG as addresses that hold all of it."""

import base64
import re
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Final

from matplotlib import figure as drawing

from analysis.figures.style import write
from scenarios.views.section import Figure

_WIDTH: Final = re.compile(rb'<svg[^>]* width="([0-9.]+)pt"')
_COMMON_REM: Final = 46.0
_REM_PER_POINT: Final = 0.112
"""So that letters of 8 points are some 14 pixels high."""


def drawn(figure: drawing.Figure, says: str) -> Figure:
    """Return a figure as it stands in a page."""
    file = BytesIO()
    write(figure, file, "svg")
    return _figure(file.getvalue(), says)


def saved(files: Iterable[str], says: Mapping[str, str]) -> tuple[Figure, ...]:
    """Return the SVG files among a command's figures as they stand in a page.

    Parameters
    ----------
    files : paths, as payloads list them
    says : what is to be seen in each, by the file's name without its ending; the name itself if not said
    """
    chosen = [Path(file) for file in files if file.endswith(".svg")]
    return tuple(_figure(file.read_bytes(), says.get(file.stem, file.stem)) for file in chosen)


def _figure(svg: bytes, says: str) -> Figure:
    points = _WIDTH.search(svg)
    width_rem = _REM_PER_POINT * float(points[1]) if points else _COMMON_REM
    return Figure(f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}", says, round(width_rem, 2))
