"""Profiles of other tools as the tables of a profile directory."""

import itertools
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from analysis.profiling.formats.columns import Amounts, FrameTable, SampleTable, exact_sum, numbered
from analysis.profiling.formats.foreign import LARGEST, UNKNOWN, ForeignProfile, Frame, Measure, Origin
from analysis.profiling.shelf import give_back_memory
from analysis.profiling.storage import LABELS, TAKEN, write_samples
from analysis.tables.faults import Faults, plain
from models.arrays import DAY_S, Ints
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
_CODES = 6
"""Codes and lines that a location has."""
_PLACE = np.dtype(np.int32)
"""What a location is in a stack."""


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
    >>> from analysis.profiling.formats.foreign import Sample
    >>> frames, samples = (Frame("f"), Frame("main")), (Sample((0, 1), (30,)),)
    >>> profile = ForeignProfile((Measure("cpu", "nanoseconds", 10),), frames, samples)
    >>> tables = to_tables([profile])
    >>> tables["samples"]
       process event  location  stack  count
    0        0   cpu         0      0      3
    >>> tables["rates"][["event", "unit", "period"]].to_numpy().tolist()
    [['cpu', 'nanoseconds', 10]]
    """
    return taken_apart(list(profiles), origin_s, taken)


def taken_apart(
    profiles: list[ForeignProfile], origin_s: float | None = None, taken: Collection[str] = ()
) -> dict[str, pd.DataFrame]:
    """Return what `to_tables` does; each profile is taken out of the list when it is in the tables."""
    origin_s = origin_of(profiles) if origin_s is None else origin_s
    tables = _Tables(origin_s=0.0 if origin_s is None else origin_s)
    collections = collections_of(profiles, taken)
    profiles.reverse()
    for collection in collections:
        profile = profiles.pop()
        _refuse(profile)
        tables.add(profile, collection)
        del profile
    give_back_memory()
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
    >>> from analysis.profiling.formats.foreign import Sample
    >>> profile = ForeignProfile((Measure("cpu", "ns", 10),), samples=(Sample((), (30,)),))
    >>> [(total.event, total.samples, total.value) for total in totals(profile)]
    [('cpu', 3, 30)]
    """
    samples = SampleTable.of(profile.samples)
    periods = [_period(measure, samples.amount(at)) for at, measure in enumerate(profile.measures)]
    taken = _Taken.of(profile, periods)
    return [
        FileTotal(
            profile.name,
            measure.event,
            measure.unit,
            periods[at],
            exact_sum(taken.samples(at, samples)),
            samples.total(at),
        )
        for at, measure in enumerate(_distinct(profile.measures))
    ]


def uncounted(profile: ForeignProfile) -> list[str]:
    """Return the events that are amounts, such as bytes, of which a file does not say how many samples they rest on.

    Examples
    --------
    >>> uncounted(ForeignProfile((Measure("alloc_space", "bytes"), Measure("cpu", "nanoseconds", 10))))
    ['alloc_space']
    """
    samples = SampleTable.of(profile.samples)
    if samples.taken is not None and bool((samples.taken[:1] >= 0).any()):
        return []
    taken = _Taken.of(profile, [_period(measure, samples.amount(at)) for at, measure in enumerate(profile.measures)])
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
    """Rows of samples as they come, file by file: process, event, location, stack, count and samples taken."""

    parts: list[Ints] = field(default_factory=list)
    """(6, rows) arrays."""

    def add(self, *columns: Ints) -> None:
        """Add rows; those of one key are summed at the end."""
        self.parts.append(np.stack(columns))

    def frame(self, events: Sequence[str]) -> pd.DataFrame:
        """Return the sums by key, in the order in which keys came; `taken` where it is not the count throughout."""
        keys = ["process", "event", "location", "stack"]
        columns = np.concatenate([np.empty((len(keys) + 2, 0), np.int64), *self.parts], axis=1)
        table = pd.DataFrame(dict(zip((*keys, "count", TAKEN), columns, strict=True)), copy=False)
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
    texts: dict[str, int] = field(default_factory=lambda: {"": 0})
    """Texts that frames have, to their codes."""
    locations: dict[bytes, int] = field(default_factory=dict)
    """Codes of function, image, build id and file, and the lines of each."""
    stacks: dict[bytes, int] = field(default_factory=dict)
    """Locations of each."""
    labels: list[tuple[int, str, str]] = field(default_factory=list)
    """Process, key and value."""
    events: dict[str, int] = field(default_factory=dict)
    counts: _Counts = field(default_factory=_Counts)

    def add(self, profile: ForeignProfile, collection: str) -> None:
        """Add a profile as one collection."""
        names = [measure.event for measure in _distinct(profile.measures)]
        samples = SampleTable.of(profile.samples)
        periods = [_period(measure, samples.amount(at)) for at, measure in enumerate(profile.measures)]
        processes = np.array(self._origins(profile, collection), np.int64)
        for (measure, name), period in zip(zip(profile.measures, names, strict=True), periods, strict=True):
            for platform in dict.fromkeys(origin.platform for origin in profile.origins):
                native = measure.native or measure.event
                entry = (collection, platform, name, native, measure.unit, period, 1, math.nan)
                self.rates[collection, platform, name] = entry
        places = self._locations(FrameTable.of(profile.frames), profile.main)
        amounts = samples.amounts.astype(np.int64).reshape(len(samples), len(names))
        stacks, place = self._stacks(samples, places, np.any(amounts, axis=1))
        if len(samples) and not samples.depths.all():
            place[samples.depths[samples.stack] == 0] = self._locations(FrameTable.of([Frame(UNKNOWN)]), "")[0]
        events = [self.events.setdefault(name, len(self.events)) for name in names]
        taken = _Taken.of(profile, periods)
        row, at = np.nonzero(amounts)
        count = (amounts // np.array(periods, np.int64))[row, at]
        behind = (
            np.stack([taken.samples(measure, samples) for measure in range(len(names))], axis=1) if names else amounts
        )
        event = np.array(events, np.int64)[at]
        process = processes[samples.origin[row]]
        self.counts.add(process, event, place[row], stacks[row], count, behind[row, at].astype(np.int64))

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return the tables, once: what they are made of is gone then."""
        rows: dict[str, Sequence[tuple[object, ...]]] = {
            "visits": self.visits,
            "processes": self.processes,
            "builds": [
                (number, build_id, image, kind, "", "", "", math.nan)
                for ((image, build_id), number), kind in zip(self.builds.items(), self.kinds, strict=True)
            ],
            "rates": list(self.rates.values()),
        }
        arrays = {
            "samples": self.counts.frame(list(self.events)),
            "stacks": self._steps(),
            "locations": self._located(),
        }
        tables = {name: arrays[name] if name in arrays else _frame(name, rows[name]) for name in NAMES}
        labels = pd.DataFrame(self.labels, columns=LABELS.names).astype({"process": "int32"})
        return tables | {"labels": labels} if self.labels else tables

    def _located(self) -> pd.DataFrame:
        """Return the locations."""
        rows = np.frombuffer(b"".join(self.locations), np.int64).reshape(-1, _CODES)
        texts = np.array(list(self.texts), dtype=object)
        builds = {
            (self.texts[image], self.texts[build_id]): number
            for (image, build_id), number in self.builds.items()
            if image in self.texts and build_id in self.texts
        }
        build = np.array(
            [builds.get(pair, -1) for pair in zip(rows[:, 1].tolist(), rows[:, 2].tolist(), strict=True)], np.int64
        )
        columns = {
            "location": np.arange(len(rows)),
            "build": build,
            "image": np.where((rows[:, 1] == 0) & (build < 0), "[generated]", texts[rows[:, 1]]),
            "function": texts[rows[:, 0]],
            "file": texts[rows[:, 3]],
            "file_hash": np.full(len(rows), "", dtype=object),
            "function_line": rows[:, 4],
            "line": rows[:, 5],
            "symbolised": rows[:, 0] != self.texts.get(UNKNOWN, -1),
        }
        types = {column.name: column.type.to_pandas_dtype() for column in TABLES["locations"]}
        return pd.DataFrame({name: columns[name] for name in types}).astype(types)

    def _steps(self) -> pd.DataFrame:
        """Return stack, depth and location of every frame, the place sampled first."""
        length = np.fromiter(map(len, self.stacks), np.int64, len(self.stacks)) // _PLACE.itemsize
        content, self.stacks = b"".join(self.stacks), {}
        types = {column.name: column.type.to_pandas_dtype() for column in TABLES["stacks"]}
        frames = int(length.sum())
        kind = np.int32 if frames < 2**31 else np.int64
        begin = np.repeat((np.cumsum(length) - length).astype(kind), length)
        depth = np.subtract(np.arange(frames, dtype=kind), begin, out=begin)
        steps: dict[str, NDArray[np.integer]] = {
            "stack": np.repeat(np.arange(len(length), dtype=types["stack"]), length),
            "depth": depth.astype(types["depth"]),
            "location": np.frombuffer(content, _PLACE).astype(types["location"], copy=False),
        }
        return pd.DataFrame({name: steps[name] for name in types}, copy=False)

    def _origins(self, profile: ForeignProfile, collection: str) -> list[int]:
        """Add visits and processes; return the process of each origin."""
        main = self._build(profile.main, "", "program") if profile.main else -1
        build_id = _build_id(FrameTable.of(profile.frames), profile.main)
        if profile.main and build_id:
            main = self._build(profile.main, build_id, "program")
        samples = SampleTable.of(profile.samples)
        chains = set(samples.origin[samples.chain & (samples.depths[samples.stack] > 0)].tolist())
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

    def _locations(self, frames: FrameTable, main: str) -> Ints:
        """Return the location of each frame; those that differ by address alone have the same."""
        used, place = np.unique(frames.names, return_inverse=True)
        codes = np.array([self.texts.setdefault(frames.texts[at], len(self.texts)) for at in used.tolist()], np.int64)
        names = codes[place.reshape(frames.names.shape)] if len(used) else frames.names
        loaded = names[(names[:, 1] > 0) | (names[:, 2] > 0), 1:3]
        _, first = np.unique(loaded, axis=0, return_index=True)
        texts = list(self.texts)
        for image, build_id in loaded[np.sort(first)].tolist():
            self._build(texts[image], texts[build_id], _kind(texts[image], main))
        unknown = self.texts.setdefault(UNKNOWN, len(self.texts))
        rows = np.column_stack([np.where(names[:, :1] == 0, unknown, names[:, :1]), names[:, 1:], frames.lines])
        return np.array(numbered(rows.tobytes(), np.full(len(rows), rows.itemsize * _CODES), self.locations), np.int64)

    def _stacks(self, samples: SampleTable, places: Ints, valued: NDArray[np.bool_]) -> tuple[Ints, Ints]:
        """Return the stack of each sample, −1 where it has none or no value, and the location sampled."""
        last = np.cumsum(samples.depths)
        path = places[samples.frames].astype(_PLACE)
        chosen = samples.stack[samples.chain & (samples.depths[samples.stack] > 0) & valued]
        used, first = np.unique(chosen, return_index=True)
        used = used[np.argsort(first)]
        number = np.full(len(samples.depths), -1)
        content, begin = path.tobytes(), (last - samples.depths) * _PLACE.itemsize
        pieces = zip(begin[used].tolist(), (last * _PLACE.itemsize)[used].tolist(), strict=True)
        number[used] = [self.stacks.setdefault(content[b:e], len(self.stacks)) for b, e in pieces]
        leaf = np.append(path, 0)[last - samples.depths].astype(np.int64)
        return np.where(samples.chain, number[samples.stack], -1), leaf[samples.stack]

    def _build(self, image: str, build_id: str, kind: str) -> int:
        if (image, build_id) not in self.builds:
            self.builds[image, build_id] = len(self.builds)
            self.kinds.append(kind)
        return self.builds[image, build_id]


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


def _build_id(frames: FrameTable, image: str) -> str:
    """Return the first build id that frames of an image have; empty: none."""
    codes = [at for at, text in enumerate(frames.texts) if text == image]
    identified = np.array([bool(text) for text in frames.texts])[frames.names[:, 2]]
    first = np.flatnonzero(np.isin(frames.names[:, 1], codes) & identified)[:1]
    return frames.texts[frames.names[first[0], 2]] if len(first) else ""


def _period(measure: Measure, amounts: Amounts) -> int:
    """Return a measure's period if all its values are multiples of it, or else 1."""
    return measure.period if bool((amounts % measure.period == 0).all()) else 1


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

    def samples(self, at: int, samples: SampleTable) -> Amounts:
        """Return the samples behind values: as the file counts them, one a period, or one a record of an amount."""
        value = samples.amount(at)
        if self.counter in (-1, at):
            behind = np.minimum(value, 1) if self.amounts[at] else value // self.periods[at]
        else:
            behind = np.where(value == 0, 0, samples.amount(self.counter))
        if samples.taken is None or not len(samples):
            return behind
        return np.where(samples.taken[:, at] < 0, behind, samples.taken[:, at])


def _refuse(profile: ForeignProfile) -> None:
    faults = Faults(profile.name)
    samples = SampleTable.of(profile.samples)
    for at, measure in enumerate(profile.measures):
        total = samples.total(at)
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
