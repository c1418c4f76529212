"""What a folder of imported profiles says of the files: their machines' names, from when times count."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from models.errors import WscError

FILE = "import.json"


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
    machine_from: str | None = None
    """What says a file's machine, as `origins.reader_of` takes it; none: the file itself."""
    service_from: str | None = None

    def linked(self, links: Mapping[str, str]) -> "ImportRecord":
        """Return it with other links beside its own, of which those with an empty template are left out."""
        return replace(self, links={prefix: url for prefix, url in (self.links | dict(links)).items() if url})

    def write(self, folder: Path) -> None:
        """Write it into a folder."""
        (folder / FILE).write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @property
    def names(self) -> dict[int, str]:
        """Number of each machine that has a name to that."""
        return {number: name for name, number in self.machines.items()}

    @classmethod
    def read(cls, folder: Path) -> "ImportRecord":
        """Return that of a folder.

        Raises
        ------
        ImportFolderError
            If there is none, or it is damaged.
        """
        try:
            content: Any = json.loads((folder / FILE).read_text(encoding="utf-8"))
            record = cls(**content)
        except (OSError, ValueError, TypeError):
            raise ImportFolderError(f"is no folder that files were imported into: {folder}") from None
        whole = isinstance(record.machines, dict) and all(type(number) is int for number in record.machines.values())
        since_1970 = record.origin_s is None or isinstance(record.origin_s, int | float)
        if not (whole and since_1970):
            problem = "machines should have numbers" if since_1970 else "origin_s should be a number of seconds"
            raise ImportFolderError(f"{folder / FILE}: {problem}")
        return record
