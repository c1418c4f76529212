"""Files on disk: written whole or not at all, read as the JSON that they hold or refused, and their digests.

Until it takes its place, what is written has a hidden name, which names its process.
"""

import fcntl
import json
import os
import re
import secrets
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from models.errors import WscError
from scenarios.files.faults import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A value that JSON holds."""
SUFFIX = ".partial"
TABLES = (".parquet", ".csv")
"""What files of tables end in."""
_HIDDEN = re.compile(r"\..+\.(?P<process>[1-9][0-9]*)\.[0-9a-f]{8}\.partial")


class JsonError(WscError):
    """A file is no JSON that can be read."""


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
def whole(file: Path) -> Generator[Path]:
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


@contextmanager
def alone(place: Path, waits: Callable[[str, float], object] | None = None) -> Generator[bool]:
    """Let one process at a time, and one thread, change a place: others wait at its lock, a hidden file beside it.

    The lock is released when its holder ends, however that ends. It yields whether there is a lock: file systems may
    have none, and where no file can be made there is none either.

    Parameters
    ----------
    place : a file or folder, there or not
    waits : called as progress is if another holds the lock

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with alone(Path(folder, "a")) as locked:
    ...         print(locked, *(file.name for file in Path(folder).iterdir()))
    ...     list(Path(folder).iterdir())
    True .a.lock
    []
    """
    lock = place.absolute().with_name(f".{place.name}.lock")
    absent = [folder for folder in lock.parents if not folder.exists()]
    file = None
    with suppress(OSError):
        file = _locked(lock, waits)
    try:
        yield file is not None
    finally:
        if file is not None:
            with suppress(OSError):
                lock.unlink()
            os.close(file)
        with suppress(OSError):
            for folder in absent:
                folder.rmdir()


def _locked(lock: Path, waits: Callable[[str, float], object] | None) -> int:
    """Return the open lock; one that its holder has removed meanwhile is none any more."""
    while True:
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(lock, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)  # of another user it can be read
        try:
            _wait(file, waits)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file), lock.stat()):
                    return file
        except BaseException as error:
            os.close(file)
            if isinstance(error, OSError):  # there are no locks, so it is nobody's
                lock.unlink(missing_ok=True)
            raise
        os.close(file)


def _wait(file: int, waits: Callable[[str, float], object] | None) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if waits is not None:
            waits("waiting for another import", 0.0)
        fcntl.flock(file, fcntl.LOCK_EX)


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


def json_of(file: Path, object_hook: Callable[[dict[str, Json]], object] | None = None) -> object:
    """Return what a JSON file holds.

    Raises
    ------
    JsonError
        If it is no UTF-8 text, no JSON, nested too deeply, or has a number of thousands of digits.
    OSError
        If it cannot be opened.
    """
    try:
        return json.loads(file.read_text(encoding="utf-8"), object_hook=object_hook)
    except RecursionError:
        raise JsonError("is nested too deeply") from None
    except ValueError as error:
        raise JsonError(str(error)) from error


def file_digest(file: Path) -> str:
    """Return the BLAKE2b digest (RFC 7693, 16 bytes) of a file's bytes, read in pieces of 1 MiB.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    """
    digest = blake2b(digest_size=16)
    with file.open("rb") as content:
        while piece := content.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def save(figure: "Figure", stem: Path) -> list[Path]:
    """Write a figure as PNG to look at, PDF to print and SVG for pages, and return the files.

    Where its parts stand is found once, for the first file, which is half of the work; nothing is drawn into it later.

    Examples
    --------
    >>> import tempfile
    >>> from matplotlib.figure import Figure
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [file.name for file in save(Figure(), Path(folder) / "empty")]
    ['empty.png', 'empty.pdf', 'empty.svg']
    """
    from analysis.figures import style

    written = []
    for kind in style.KINDS:
        file = stem.with_name(f"{stem.name}.{kind}")
        with whole(file) as partial:
            style.write(figure, partial, kind)
        figure.set_layout_engine("none")
        written.append(file)
    return written
