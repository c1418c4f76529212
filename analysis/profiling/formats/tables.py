"""Profiles of other tools as the tables of a profile directory."""

import itertools
import math
from array import array
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.profiling.formats.foreign import LARGEST, UNKNOWN, ForeignProfile, Frame, Measure, Origin, Sample
from analysis.profiling.storage import LABELS, TAKEN, write_samples
from analysis.tables.faults import Faults, plain
from models.arrays import DAY_S
from models.tables import SCHEMAS, TABLES

NAMES = ("visits", "processes", "builds", "rates", "samples", "locations", "stacks")
"""Tables of a profile directory."""
_COUNTERS = ("samples", "sample_count")
"""Measures that count samples."""
_AMOUNTS = frozenset(
    ("bytes", "kilobytes", "megabytes", "nanoseconds", "microseconds", "milliseconds", "seconds", "ns")
)
"""Units of what a sample has an amount of."""
_THINGS = "_objects"
"""End of the names of what heap profiles estimate beside bytes."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class FileTotal:
    """What a file holds of an event."""

    file: str
    event: str
    unit: str
    period: int
    samples: int
    """Samples as the file counts them, or one a period; of an amount such as bytes, of which no period is known, its
    records, each of at least one sample."""
    value: int
    """Their sum in the event's unit."""


def to_tables(
    profiles: Sequence[ForeignProfile], origin_s: float | None = None, taken: Collection[str] = ()
) -> dict[str, pd.DataFrame]:
    """Return the tables of a profile directory, with the columns of `models.tables`, of one profile or several.

    A file is a collection of its own, and each of its machines a visit, of weight and duty 1. Times count from the
    midnight (UTC) before the first that is known. A value that is a multiple of the event's period throughout the
    file becomes count × period; otherwise the period is 1. What is unknown is empty, −1, 0 or NaN.

    Where samples are not the counts of a measure, they get one more column, `taken`: how many samples a row rests on;
    values stay exact. So it is where a file counts its samples too, as a measure `samples` or `sample_count`, and where
    a measure is an amount, such as bytes, of which no period is known: each record then is at least one sample.

    Parameters
    ----------
    profiles : files
    origin_s : moment from which times count, in seconds since 1970; None: as above
    taken : names that no collection gets

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
    origin_s = origin_of(profiles) if origin_s is None else origin_s
    tables = _Tables(origin_s=0.0 if origin_s is None else origin_s)
    for profile, collection in zip(profiles, collections_of(profiles, taken), strict=True):
        tables.add(profile, collection)
    return tables.frames()


def origin_of(profiles: Sequence[ForeignProfile]) -> float | None:
    """Return the midnight (UTC) before the first profile, in seconds since 1970; none: no file says when it was taken.

    Examples
    --------
    >>> origin_of([ForeignProfile((), start_s=86_400.0 * 3 + 7)])
    259200.0
    """
    known = [profile.start_s for profile in profiles if not math.isnan(profile.start_s)]
    return DAY_S * (min(known) // DAY_S) if known else None


def machines_of(profiles: Sequence[ForeignProfile]) -> dict[str, int]:
    """Return the numbers that `to_tables` gives to machines that have a name.

    Examples
    --------
    >>> machines_of([ForeignProfile((), origins=(Origin(machine="a"), Origin(), Origin(machine="b")))])
    {'a': 0, 'b': 2}
    """
    tables = _Tables(origin_s=0.0)
    for profile, collection in zip(profiles, collections_of(profiles), strict=True):
        tables._origins(profile, collection)
    return {name: number for (_, name), number in tables.machines.items() if name}


def totals(profile: ForeignProfile) -> list[FileTotal]:
    """Return what a profile holds of each event.

    Examples
    --------
    >>> profile = ForeignProfile((Measure("cpu", "ns", 10),), samples=(Sample((), (30,)),))
    >>> [(total.event, total.samples, total.value) for total in totals(profile)]
    [('cpu', 3, 30)]
    """
    rows = []
    periods = [_period(profile, at) for at in range(len(profile.measures))]
    taken = _Taken.of(profile, periods)
    for at, measure in enumerate(_distinct(profile.measures)):
        value = sum(sample.amounts[at] for sample in profile.samples)
        samples = sum(taken.samples(at, sample) for sample in profile.samples)
        rows.append(FileTotal(profile.name, measure.event, measure.unit, periods[at], samples, value))
    return rows


def uncounted(profile: ForeignProfile) -> list[str]:
    """Return the events that are amounts, such as bytes, of which a file does not say how many samples they rest on.

    Examples
    --------
    >>> uncounted(ForeignProfile((Measure("alloc_space", "bytes"), Measure("cpu", "nanoseconds", 10))))
    ['alloc_space']
    """
    if any(sample.taken for sample in profile.samples[:1]):
        return []
    taken = _Taken.of(profile, [_period(profile, at) for at in range(len(profile.measures))])
    named = zip(_distinct(profile.measures), taken.amounts, strict=True)
    return [measure.event for measure, amount in named if amount and taken.counter < 0]


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
        rows = pa.table(columns, LABELS if name == "labels" else pa.schema([*SCHEMAS[name], *more]))
        if name == "samples":
            order = [(key, "ascending") for key in ("event", "process", "location", "stack")]
            write_samples(folder / f"{name}.parquet", [rows.sort_by(order)], taken=bool(more))
        else:
            pq.write_table(rows, folder / f"{name}.parquet", compression="zstd")


@dataclass(slots=True)
class _Counts:
    """Rows of samples as they come, in arrays: process, event, location, stack, count and samples taken."""

    columns: tuple["array[int]", ...] = field(default_factory=lambda: tuple(array("q") for _ in range(6)))

    def add(self, key: tuple[int, int, int, int], count: int, taken: int) -> None:
        """Add a row; rows of one key are summed at the end."""
        for column, number in zip(self.columns, (*key, count, taken), strict=True):
            column.append(number)

    def frame(self, events: Sequence[str]) -> pd.DataFrame:
        """Return the sums by key, in the order in which keys came; `taken` where it is not the count throughout."""
        keys = ["process", "event", "location", "stack"]
        arrays = {
            name: np.frombuffer(column, np.int64) if column else np.empty(0, np.int64)
            for name, column in zip((*keys, "count", TAKEN), self.columns, strict=True)
        }
        table = pd.DataFrame(arrays, copy=False)
        if table.duplicated(keys).any():
            table = table.groupby(keys, sort=False, as_index=False)[["count", TAKEN]].sum()
        if bool((table["count"] == table[TAKEN]).all()):
            table = table.drop(columns=TAKEN)
        types = {column.name: column.type.to_pandas_dtype() for column in TABLES["samples"]}
        names = np.asarray(events, dtype=object)
        return table.assign(event=names[table["event"].to_numpy()] if len(table) else []).astype(types)


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
    labels: list[tuple[int, str, str]] = field(default_factory=list)
    """Process, key and value."""
    events: dict[str, int] = field(default_factory=dict)
    counts: _Counts = field(default_factory=_Counts)

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
        events = [self.events.setdefault(name, len(self.events)) for name in names]
        taken = _Taken.of(profile, periods)
        for sample in profile.samples:
            path = tuple(places[frame] for frame in sample.stack)
            for at, (event, value, period) in enumerate(zip(events, sample.amounts, periods, strict=True)):
                if value:
                    stack = self.stacks.setdefault(path, len(self.stacks)) if sample.chain and path else -1
                    place = path[0] if path else nowhere
                    process = processes[sample.origin]
                    self.counts.add((process, event, place, stack), value // period, taken.samples(at, sample))

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
            "locations": [_located(number, frame, self.builds) for frame, number in self.locations.items()],
        }
        arrays = {"samples": self.counts.frame(list(self.events)), "stacks": self._steps()}
        tables = {name: arrays[name] if name in arrays else _frame(name, rows[name]) for name in NAMES}
        labels = pd.DataFrame(self.labels, columns=LABELS.names).astype({"process": "int32"})
        return tables | {"labels": labels} if self.labels else tables

    def _steps(self) -> pd.DataFrame:
        """Return stack, depth and location of every frame, the place sampled first."""
        length = np.fromiter(map(len, self.stacks), np.int64, len(self.stacks))
        frames = int(length.sum())
        steps = {
            "stack": np.repeat(np.arange(len(length)), length),
            "depth": np.arange(frames) - np.repeat(np.cumsum(length) - length, length),
            "location": np.fromiter(itertools.chain.from_iterable(self.stacks), np.int64, frames),
        }
        types = {column.name: column.type.to_pandas_dtype() for column in TABLES["stacks"]}
        return pd.DataFrame({name: steps[name].astype(types[name]) for name in types})

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
            self.labels += [(len(self.processes), key, value) for key, value in origin.labels]
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
        known = frame._replace(function=function, address=0, file_address=-1)
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


@dataclass(frozen=True, slots=True)
class _Taken:
    """How many samples the values of a file rest on."""

    periods: Sequence[int]
    counter: int
    """Place of the one measure that counts samples; −1: none."""
    amounts: tuple[bool, ...]
    """Of each measure, whether it is an amount such as bytes of which nothing says how many samples it rests on."""

    @classmethod
    def of(cls, profile: ForeignProfile, periods: Sequence[int]) -> "_Taken":
        """Return what is known of a file.

        Parameters
        ----------
        profile : the file
        periods : of its measures, as `_period` gives them
        """
        counting = [at for at, measure in enumerate(profile.measures) if measure.event in _COUNTERS]
        measures = zip(profile.measures, periods, strict=True)
        amounts = tuple(
            period == 1 and (measure.unit in _AMOUNTS or measure.event.endswith(_THINGS))
            for measure, period in measures
        )
        return cls(periods, counting[0] if len(counting) == 1 else -1, amounts)

    def samples(self, at: int, sample: Sample) -> int:
        """Return the samples behind a value: as the file counts them, one a period, or one a record of an amount."""
        value = sample.amounts[at]
        if sample.taken:
            return sample.taken[at]
        if self.counter in (-1, at):
            return min(value, 1) if self.amounts[at] else value // self.periods[at]
        return sample.amounts[self.counter] if value else 0


def _refuse(profile: ForeignProfile) -> None:
    faults = Faults(profile.name)
    for at, measure in enumerate(profile.measures):
        total = sum(sample.amounts[at] for sample in profile.samples)
        if total > LARGEST:
            faults.tell(measure.event, f"should sum to at most {LARGEST}", total)
    faults.refuse()


def collections_of(profiles: Sequence[ForeignProfile], taken: Collection[str] = ()) -> list[str]:
    """Return the names of the profiles' collections: those of files without folders; equal ones are numbered.

    Examples
    --------
    >>> collections_of([ForeignProfile((), name=name) for name in ("x/a.pb", "y/a.pb", "b.pb")], {"b.pb"})
    ['a.pb (1)', 'a.pb (2)', 'b.pb (2)']
    """
    names = [plain(PurePath(profile.name).name) for profile in profiles]
    used, collections = set(taken), []
    for name in names:
        alone = names.count(name) == 1 and name not in used
        numbered = (f"{name} ({number})" for number in itertools.count(1 if name not in taken else 2))
        chosen = name if alone else next(name for name in numbered if name not in used)
        used.add(chosen)
        collections.append(chosen)
    return collections
