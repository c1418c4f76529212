"""Profiles of other tools as the tables of a profile directory."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.profiling.formats.foreign import LARGEST, UNKNOWN, ForeignProfile, Frame, Measure, Origin, Sample
from analysis.profiling.storage import TAKEN, write_samples
from analysis.tables.faults import Faults, plain
from models.arrays import DAY_S
from models.tables import SCHEMAS, TABLES

NAMES = ("visits", "processes", "builds", "rates", "samples", "locations", "stacks")
"""Tables of a profile directory."""
_COUNTERS = ("samples", "sample_count")
"""Measures that count samples."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class FileTotal:
    """What a file holds of an event."""

    file: str
    event: str
    unit: str
    period: int
    samples: int
    """Samples as the file counts them; where it does not, and their period is unknown, the value itself."""
    value: int
    """Their sum in the event's unit."""


def to_tables(profiles: Sequence[ForeignProfile]) -> dict[str, pd.DataFrame]:
    """Return the tables of a profile directory, with the columns of `models.tables`, of one profile or several.

    A file is a collection of its own, and each of its machines a visit, of weight and duty 1. Times count from the
    midnight (UTC) before the first that is known. A value that is a multiple of the event's period throughout the
    file becomes count × period; otherwise the period is 1. What is unknown is empty, −1, 0 or NaN.

    Where a file counts its samples too, as a measure `samples` or `sample_count`, and these are not the counts of
    another measure, samples get one more column, `taken`: how many samples a row rests on; values stay exact.

    Raises
    ------
    FileError
        If the values of an event sum to more than 2⁶³ − 1.

    Examples
    --------
    >>> frames, samples = (Frame("f"), Frame("main")), (Sample((0, 1), (30,)),)
    >>> profile = ForeignProfile((Measure("cpu", "nanoseconds", 10),), frames, samples)
    >>> tables = to_tables([profile])
    >>> tables["samples"]
       process event  location  stack  count
    0        0   cpu         0      0      3
    >>> tables["rates"][["event", "unit", "period"]].to_numpy().tolist()
    [['cpu', 'nanoseconds', 10]]
    """
    for profile in profiles:
        _refuse(profile)
    known = [profile.start_s for profile in profiles if not math.isnan(profile.start_s)]
    tables = _Tables(origin_s=DAY_S * (min(known) // DAY_S) if known else 0.0)
    for profile, collection in zip(profiles, _collections(profiles), strict=True):
        tables.add(profile, collection)
    return tables.frames()


def totals(profile: ForeignProfile) -> list[FileTotal]:
    """Return what a profile holds of each event.

    Examples
    --------
    >>> profile = ForeignProfile((Measure("cpu", "ns", 10),), samples=(Sample((), (30,)),))
    >>> [(total.event, total.samples, total.value) for total in totals(profile)]
    [('cpu', 3, 30)]
    """
    rows = []
    for at, measure in enumerate(_distinct(profile.measures)):
        value, period = sum(sample.amounts[at] for sample in profile.samples), _period(profile, at)
        taken = sum(_taken(profile, at, period, sample) for sample in profile.samples)
        rows.append(FileTotal(profile.name, measure.event, measure.unit, period, taken, value))
    return rows


def write_tables(tables: Mapping[str, pd.DataFrame], folder: Path) -> None:
    """Write tables as the Parquet files of a profile directory, samples sorted so that they are small and quick to ask.

    Parameters
    ----------
    tables : as `to_tables` returns them
    folder : an existing folder

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tables(to_tables([ForeignProfile((Measure("cpu"),))]), Path(folder))
    ...     len(list(Path(folder).iterdir()))
    7
    """
    for name, table in tables.items():
        columns = {column: table[column].to_numpy() for column in table.columns}
        more = [pa.field(TAKEN, pa.int64())] if TAKEN in columns else []
        rows = pa.table(columns, pa.schema([*SCHEMAS[name], *more]))
        if name == "samples":
            order = [(key, "ascending") for key in ("event", "process", "location", "stack")]
            write_samples(folder / f"{name}.parquet", [rows.sort_by(order)], taken=bool(more))
        else:
            pq.write_table(rows, folder / f"{name}.parquet", compression="zstd")


@dataclass(slots=True)
class _Tables:
    origin_s: float
    visits: list[tuple[object, ...]] = field(default_factory=list)
    processes: list[tuple[object, ...]] = field(default_factory=list)
    rates: dict[tuple[str, str, str], tuple[object, ...]] = field(default_factory=dict)
    builds: dict[tuple[str, str], int] = field(default_factory=dict)
    kinds: list[str] = field(default_factory=list)
    machines: dict[tuple[int, str], int] = field(default_factory=dict)
    locations: dict[Frame, int] = field(default_factory=dict)
    stacks: dict[tuple[int, ...], int] = field(default_factory=dict)
    counts: dict[tuple[int, str, int, int], tuple[int, int]] = field(default_factory=dict)
    """Count, and samples taken."""

    def add(self, profile: ForeignProfile, collection: str) -> None:
        """Add a profile as one collection."""
        names = [measure.event for measure in _distinct(profile.measures)]
        periods = [_period(profile, at) for at in range(len(names))]
        processes = self._origins(profile, collection)
        for (measure, name), period in zip(zip(profile.measures, names, strict=True), periods, strict=True):
            for platform in dict.fromkeys(origin.platform for origin in profile.origins):
                native = measure.native or measure.event
                entry = (collection, platform, name, native, measure.unit, period, 1, math.nan)
                self.rates[collection, platform, name] = entry
        places = [self._location(frame, profile.main) for frame in profile.frames]
        nowhere = self._location(Frame(UNKNOWN), "") if any(not sample.stack for sample in profile.samples) else -1
        for sample in profile.samples:
            path = tuple(places[frame] for frame in sample.stack)
            for at, (name, value, period) in enumerate(zip(names, sample.amounts, periods, strict=True)):
                taken = _taken(profile, at, period, sample)
                if value:
                    stack = self.stacks.setdefault(path, len(self.stacks)) if sample.chain and path else -1
                    key = (processes[sample.origin], name, path[0] if path else nowhere, stack)
                    count, before = self.counts.get(key, (0, 0))
                    self.counts[key] = (count + value // period, before + taken)

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return the tables."""
        rows: dict[str, Sequence[tuple[object, ...]]] = {
            "visits": self.visits,
            "processes": self.processes,
            "builds": [
                (number, build_id, image, kind, "", "", "", math.nan)
                for ((image, build_id), number), kind in zip(self.builds.items(), self.kinds, strict=True)
            ],
            "rates": list(self.rates.values()),
            "samples": [(*key, count) for key, (count, _) in self.counts.items()],
            "locations": [_located(number, frame, self.builds) for frame, number in self.locations.items()],
            "stacks": [(number, *step) for path, number in self.stacks.items() for step in enumerate(path)],
        }
        frames = {name: _frame(name, rows[name]) for name in NAMES}
        if any(count != taken for count, taken in self.counts.values()):
            frames["samples"][TAKEN] = pd.Series([taken for _, taken in self.counts.values()], dtype="int64")
        return frames

    def _origins(self, profile: ForeignProfile, collection: str) -> list[int]:
        """Add visits and processes; return the process of each origin."""
        main = self._build(profile.main, "", "program") if profile.main else -1
        named = next((frame for frame in profile.frames if frame.image == profile.main and frame.build_id), None)
        if profile.main and named is not None:
            main = self._build(named.image, named.build_id, "program")
        chains = {sample.origin for sample in profile.samples if sample.chain and sample.stack}
        visits: dict[tuple[str, ...], int] = {}
        processes = []
        for index, origin in enumerate(profile.origins):
            place = (origin.machine, origin.platform, origin.datacentre, origin.kernel)
            if place not in visits:
                visits[place] = len(self.visits)
                self.visits.append(self._visit(profile, collection, origin))
            application = origin.application or PurePath(profile.main).name or collection
            entry = (visits[place], application, -1, -1, main, index in chains, 0, math.nan, math.nan)
            processes.append(len(self.processes))
            self.processes.append((len(self.processes), *entry))
        return processes

    def _visit(self, profile: ForeignProfile, collection: str, origin: Origin) -> tuple[object, ...]:
        key = (-1, origin.machine) if origin.machine else (len(self.visits), "")
        machine = self.machines.setdefault(key, len(self.machines))
        start_s = 0.0 if math.isnan(profile.start_s) else profile.start_s - self.origin_s
        where = (machine, origin.datacentre, origin.platform, origin.kernel, start_s, profile.length_s)
        return (len(self.visits), collection, *where, 1, "ok", math.nan, math.nan, 0.0)

    def _location(self, frame: Frame, main: str) -> int:
        if frame.image or frame.build_id:
            self._build(frame.image, frame.build_id, _kind(frame.image, main))
        function = frame.function or UNKNOWN
        known = frame._replace(function=function, address=0)
        return self.locations.setdefault(known, len(self.locations))

    def _build(self, image: str, build_id: str, kind: str) -> int:
        if (image, build_id) not in self.builds:
            self.builds[image, build_id] = len(self.builds)
            self.kinds.append(kind)
        return self.builds[image, build_id]


def _located(number: int, frame: Frame, builds: Mapping[tuple[str, str], int]) -> tuple[object, ...]:
    build = builds.get((frame.image, frame.build_id), -1)
    image = frame.image or ("" if build >= 0 else "[generated]")
    place = (frame.file, "", frame.function_line, frame.line)
    return (number, build, image, frame.function, *place, frame.function != UNKNOWN)


def _frame(name: str, rows: Sequence[tuple[object, ...]]) -> pd.DataFrame:
    """Return a table with the types that `models.tables` says."""
    columns = TABLES[name]
    frame = pd.DataFrame(list(rows), columns=[column.name for column in columns])
    return frame.astype({column.name: column.type.to_pandas_dtype() for column in columns})


def _kind(image: str, main: str) -> str:
    if image == main:
        return "program"
    name = PurePath(image).name
    if name.startswith("[kernel") or name == "vmlinux":
        return "kernel"
    if image.startswith("[") or name.endswith(".ko"):
        return "module" if name.endswith(".ko") or image not in {"[vdso]", "[vsyscall]"} else "kernel"
    return "library" if ".so" in name or name.startswith("lib") else "program"


def _distinct(measures: Sequence[Measure]) -> list[Measure]:
    """Return measures with names of their own: where a name is there twice, its unit, then its place, is added."""
    times = Counter(measure.event for measure in measures)
    named = [m._replace(event=f"{m.event}/{m.unit}") if times[m.event] > 1 else m for m in measures]
    again = Counter(measure.event for measure in named)
    return [m._replace(event=f"{m.event}/{index}") if again[m.event] > 1 else m for index, m in enumerate(named)]


def _period(profile: ForeignProfile, at: int) -> int:
    """Return a measure's period if all its values are multiples of it, or else 1."""
    period = profile.measures[at].period
    return period if all(sample.amounts[at] % period == 0 for sample in profile.samples) else 1


def _taken(profile: ForeignProfile, at: int, period: int, sample: Sample) -> int:
    """Return how many samples a value rests on: as the file counts them, or one a period; none without a value."""
    counting = [place for place, measure in enumerate(profile.measures) if measure.event in _COUNTERS]
    value = sample.amounts[at]
    if len(counting) != 1 or at in counting:
        return value // period
    return sample.amounts[counting[0]] if value else 0


def _refuse(profile: ForeignProfile) -> None:
    faults = Faults(profile.name)
    for at, measure in enumerate(profile.measures):
        total = sum(sample.amounts[at] for sample in profile.samples)
        if total > LARGEST:
            faults.tell(measure.event, f"should sum to at most {LARGEST}", total)
    faults.refuse()


def _collections(profiles: Sequence[ForeignProfile]) -> list[str]:
    """Return names of files without folders; equal ones are numbered."""
    names = [plain(PurePath(profile.name).name) for profile in profiles]
    numbered: Counter[str] = Counter()
    taken = []
    for name in names:
        numbered[name] += 1
        taken.append(name if names.count(name) == 1 else f"{name} ({numbered[name]})")
    return taken
