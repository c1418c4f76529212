"""What scenario files and the library hold: their faults without a simulation, and the shipped scenarios."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from scenarios.files.faults import Fault, FaultsError
from scenarios.files.loader import Override, kind_of, library, load_each, read
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import listed, plural
from scenarios.views.section import Section, says, table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A scenario file, the names of the scenarios that it holds, and all its faults."""

    file: str
    scenarios: tuple[str, ...]
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Checked(Conclusion):
    """What is wrong with scenario files, file by file."""

    files: tuple[CheckedFile, ...]

    @property
    def faults(self) -> list[Fault]:
        """All faults of all files."""
        return [fault for file in self.files for fault in file.faults]

    def section(self) -> Section:
        """Return a line for each file without faults; those of others are told as an error."""
        counts = [f" in {len(row.scenarios)} scenarios" if len(row.scenarios) > 1 else "" for row in self.files]
        lines = [
            f"{row.file}: no faults{count}" for row, count in zip(self.files, counts, strict=True) if not row.faults
        ]
        return Section("", tuple(says(*lines)))

    def payload(self) -> Payload:
        """Return kind and files: file, scenarios, faults."""
        return {"kind": "check", "files": [asdict(row) for row in self.files]}

    def frame(self) -> "pd.DataFrame":
        """Return a row a fault: file, line, column, field, problem, got."""
        import pandas as pd

        return pd.DataFrame([asdict(fault) for fault in self.faults])


def checked(files: Iterable[str], overrides: Sequence[Override]) -> Checked:
    """Return what is wrong with scenario files, or with scenarios of the library; nothing is simulated."""
    rows = list[CheckedFile]()
    for file in files:
        try:
            names, faults = [scenario.name for scenario in load_each(file, overrides)], list[Fault]()
        except FaultsError as error:
            names, faults = [], error.faults
        rows.append(CheckedFile(file, tuple(names), tuple(faults)))
    return Checked(tuple(rows))


@dataclass(frozen=True, slots=True, repr=False)
class Shipped(Conclusion):
    """Name, kind and description of every library scenario, in alphabetical order."""

    entries: tuple[Mapping[str, str], ...]

    def brief(self) -> str:
        """Return how many scenarios there are, and the first."""
        return f"{plural(len(self.entries), 'scenario')}: {listed(entry['name'] for entry in self.entries)}"

    def section(self) -> Section:
        """Return a row a scenario."""
        rows = [(entry["name"], entry["kind"], entry["description"]) for entry in self.entries]
        return Section("", (table(("scenario", "kind", "what it shows"), rows, words=3),))

    def payload(self) -> list[Payload]:
        """Return name, kind and description of each."""
        return [dict(entry) for entry in self.entries]

    def frame(self) -> "pd.DataFrame":
        """Return a row a scenario: name, kind, description."""
        import pandas as pd

        return pd.DataFrame(self.payload())


def shipped() -> Shipped:
    """Return what scenarios there are in the library.

    Examples
    --------
    >>> [entry["kind"] for entry in shipped().entries if entry["name"] in {"queue_small", "small", "two_wscs"}]
    ['queue', 'fleet', 'sweep']
    """
    return Shipped(tuple(_entry(name) for name in library()))


def _entry(name: str) -> dict[str, str]:
    root, _ = read(name)
    kind = kind_of(root) if root.child("sweep") is None else "sweep"
    described = root.child("description")
    return {"name": name, "kind": kind, "description": str(described.value) if described else ""}
