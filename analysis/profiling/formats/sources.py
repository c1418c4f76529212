"""Source files of imported profiles, from a folder in which they lie: the text beside which lines' costs are shown."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd

from analysis.tables.faults import plain

MOST_BYTES = 4 << 20
"""A longer file is no source that somebody reads."""
MOST_FILES = 20_000
_LISTED = 3


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A source file: its name in the profile, the signature of its content, and its lines."""

    file: str
    file_hash: str
    lines: tuple[str, ...]


def with_sources(tables: Mapping[str, pd.DataFrame], root: Path) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Return the tables of a profile with the sources that lie below a folder, and notes on them.

    A file is found by the longest end of its path that is there: `/build/src/net/a.c` as `ROOT/src/net/a.c` if that is
    a file, else as `ROOT/net/a.c`, else as `ROOT/a.c`. Files whose content is known already stay as they are.

    Parameters
    ----------
    tables : as `analysis.profiling.formats.tables.to_tables` returns them, perhaps with `sources`
    root : a folder
    """
    locations = tables["locations"]
    lacking = locations["file"].astype(str).ne("") & locations["file_hash"].astype(str).eq("")
    names = sorted(set(locations.loc[lacking, "file"].astype(str)))
    sources = [source for name in names[:MOST_FILES] if (source := _read(root, name)) is not None]
    hashes = {source.file: source.file_hash for source in sources}
    known = locations["file"].astype(str).map(hashes)
    file_hash = locations["file_hash"].astype(str).where(~lacking | known.isna(), known)
    added = _table(sources)
    whole = pd.concat([tables["sources"], added], ignore_index=True) if "sources" in tables else added
    whole = whole.drop_duplicates(["file", "file_hash", "line"], ignore_index=True)
    result = {**tables, "locations": locations.assign(file_hash=file_hash)}
    return (result | {"sources": whole} if len(whole) else result), list(_notes(root, names, hashes))


def _read(root: Path, name: str) -> SourceFile | None:
    """Return a file below the folder; nothing if it is not there, is no text, or is too long."""
    for path in _places(root, name):
        try:
            if not path.is_file() or path.stat().st_size > MOST_BYTES:
                continue
            content = path.read_bytes()
        except OSError:
            continue
        if b"\0" not in content:
            text = tuple(plain(line) for line in content.decode(errors="replace").splitlines())
            return SourceFile(name, blake2b(content, digest_size=6).hexdigest(), text)
    return None


def _places(root: Path, name: str) -> Iterator[Path]:
    """Yield where a file of a profile may lie, the longest end of its path first; never outside of the folder."""
    parts = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in ("/", ".")]
    if ".." not in parts:
        for start in range(len(parts)):
            yield root.joinpath(*parts[start:])


def _table(sources: Iterable[SourceFile]) -> pd.DataFrame:
    rows = [
        (source.file, source.file_hash, number, text)
        for source in sources
        for number, text in enumerate(source.lines, 1)
    ]
    return pd.DataFrame(rows, columns=["file", "file_hash", "line", "text"]).astype({"line": np.int32})


def _notes(root: Path, names: list[str], hashes: Mapping[str, str]) -> Iterator[str]:
    """Yield how many files are there, and which are not."""
    if not names:
        yield f"{root}: no place of the profile says its source file"
        return
    missing = [name for name in names if name not in hashes]
    others = f"; not there: {', '.join(missing[:_LISTED])}" if missing else ""
    more = f" and {len(missing) - _LISTED} more" if len(missing) > _LISTED else ""
    yield f"{root}: has {len(hashes)} of {len(names)} source files{others}{more}"
