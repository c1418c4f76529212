"""What is written takes its place whole or not at all: until then it has a hidden name, which names its process."""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from scenarios.files.faults import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIX = ".partial"
TABLES = (".parquet", ".csv")
"""What files of tables end in."""
_HIDDEN = re.compile(r"\..+\.(?P<process>[1-9][0-9]*)\.[0-9a-f]{8}\.partial")


def hidden(place: Path) -> Path:
    """Return a hidden name beside a place that belongs to this process and to this caller alone.

    Examples
    --------
    >>> folder = hidden(Path("runs/small"))
    >>> folder.parent == Path("runs"), folder.name.startswith(f".small.{os.getpid()}.")
    (True, True)
    """
    return place.with_name(f".{place.name}.{os.getpid()}.{secrets.token_hex(4)}{SUFFIX}")


def unwritable(file: Path) -> str:
    """Return why a table cannot be written there; empty: it may be.

    Examples
    --------
    >>> unwritable(Path("plan.xls"))
    'should end in .parquet or .csv, got "plan.xls"'
    """
    if file.suffix not in TABLES:
        return f"should end in {' or '.join(TABLES)}, got {shown(file.name)}"
    if file.is_dir():
        return "is a folder"
    return "" if file.parent.is_dir() else f"no folder {file.parent}"


@contextmanager
def whole(file: Path) -> Iterator[Path]:
    """Yield a hidden name for what becomes a file: it takes its place at the end, whole, or nothing does.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole(Path(folder, "a")) as partial:
    ...         partial.write_bytes(b"text")
    ...     [file.name for file in Path(folder).iterdir()]
    4
    ['a']
    """
    partial = hidden(file)
    try:
        yield partial
        partial.replace(file)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def abandoned(folder: Path) -> Iterator[Path]:
    """Yield what processes that are no more left unfinished in a folder."""
    for path in folder.iterdir():
        made_by = _HIDDEN.fullmatch(path.name)
        if made_by and not alive(int(made_by["process"])):
            yield path


def alive(process: int) -> bool:
    """Return whether there is a process of this number."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


_KINDS: Final[tuple[Literal["png", "svg"], ...]] = ("png", "svg")


def save(figure: "Figure", stem: Path) -> list[Path]:
    """Write a figure as ``stem.png`` to look at and ``stem.svg`` to print, and return the files.

    Where its parts stand is found once, for the first file, which is half of the work; nothing is drawn into it later.

    Examples
    --------
    >>> import tempfile
    >>> from matplotlib.figure import Figure
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [file.name for file in save(Figure(), Path(folder) / "empty")]
    ['empty.png', 'empty.svg']
    """
    from analysis.figures.style import write

    written = []
    for kind in _KINDS:
        file = stem.with_name(f"{stem.name}.{kind}")
        with whole(file) as partial:
            write(figure, partial, kind)
        figure.set_layout_engine("none")
        written.append(file)
    return written
