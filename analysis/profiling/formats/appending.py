"""Profiles that are added to a folder of imported ones: what is there stays, and what is there already is left out."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq

from analysis.profiling.formats.tables import NAMES
from analysis.profiling.storage import TAKEN
from models.errors import WscError

_FILE = "import.json"
_SHIFTED = {
    "visits": ("visit", "machine"),
    "processes": ("process", "visit", "build"),
    "builds": ("build",),
    "samples": ("process", "location", "stack"),
    "locations": ("location", "build"),
    "stacks": ("stack", "location"),
    "labels": ("process",),
}
"""Columns that number what earlier imports numbered, too; −1 stays what it is."""


class ImportFolderError(WscError):
    """A folder is not one that files were imported into."""


@dataclass(frozen=True, slots=True)
class ImportRecord:
    """What a folder of imported files says of how it was made."""

    files: dict[str, str] = field(default_factory=dict)
    """Digest of each file's content to its collection."""
    machines: dict[str, int] = field(default_factory=dict)
    """Name of each machine that has one to its number."""
    origin_s: float | None = None
    """From when times count, in seconds since 1970; none: no file said when it was taken."""
    drawn_from: int | None = None
    equal_lengths: bool = False
    spans: bool = False
    links: dict[str, str] = field(default_factory=dict)
    """Prefix of source files to the template of their addresses in a repository."""

    def linked(self, links: Mapping[str, str]) -> "ImportRecord":
        """Return it with other links beside its own, of which those with an empty template are left out."""
        return replace(self, links={prefix: url for prefix, url in (self.links | dict(links)).items() if url})

    def write(self, folder: Path) -> None:
        """Write it into a folder."""
        (folder / _FILE).write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> "ImportRecord":
        """Return that of a folder.

        Raises
        ------
        ImportFolderError
            If there is none.
        """
        try:
            content: Any = json.loads((folder / _FILE).read_text(encoding="utf-8"))
            return cls(**content)
        except (OSError, ValueError, TypeError):
            raise ImportFolderError(f"is no folder that files were imported into: {folder}") from None


def digest_of(path: Path) -> str:
    """Return the SHA-256 digest of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tables_of(folder: Path) -> dict[str, pd.DataFrame]:
    """Return the tables of a folder that files were imported into."""
    names = [*NAMES, *(name for name in ("labels", "sources") if (folder / f"{name}.parquet").is_file())]
    return {name: pq.read_table(folder / f"{name}.parquet").to_pandas() for name in names}


def appended(
    before: Mapping[str, pd.DataFrame], added: Mapping[str, pd.DataFrame], machines: Mapping[int, int]
) -> dict[str, pd.DataFrame]:
    """Return two imports' tables as one; numbers of the later are shifted past those of the earlier.

    Parameters
    ----------
    before, added : as `to_tables` returns them
    machines : of machines of `added` that were there before, their numbers to those in `before`

    Examples
    --------
    >>> from analysis.profiling.formats.foreign import ForeignProfile, Frame, Measure, Sample
    >>> from analysis.profiling.formats.tables import to_tables
    >>> one = to_tables([ForeignProfile((Measure("cpu"),), (Frame("f"),), (Sample((0,), (3,)),))])
    >>> both = appended(one, one, {})
    >>> both["visits"]["visit"].tolist(), both["samples"]["process"].tolist()
    ([0, 1], [0, 1])
    """
    keys = {"visits": "visit", "processes": "process", "builds": "build", "locations": "location", "stacks": "stack"}
    shift = {key: int(before[table][key].max()) + 1 if len(before[table]) else 0 for table, key in keys.items()}
    shift["machine"] = int(before["visits"]["machine"].max()) + 1 if len(before["visits"]) else 0
    joined = {}
    for table in dict.fromkeys([*before, *added]):
        parts = [before[table]] if table in before else []
        if table in added:
            parts.append(_shifted(added[table], _SHIFTED.get(table, ()), shift, machines))
        if any(TAKEN in part for part in parts):
            parts = [part if TAKEN in part else part.assign(**{TAKEN: part["count"]}) for part in parts]
        whole = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
        joined[table] = whole.astype(parts[0].dtypes.to_dict())
    return joined


def _shifted(
    table: pd.DataFrame, columns: tuple[str, ...], shift: Mapping[str, int], machines: Mapping[int, int]
) -> pd.DataFrame:
    moved = {name: (table[name] + shift[name]).where(table[name] >= 0, table[name]) for name in columns}
    if "machine" in moved and machines:
        moved["machine"] = table["machine"].map(machines).fillna(moved["machine"])
    return table.assign(**{name: column.astype(table[name].dtype) for name, column in moved.items()})
