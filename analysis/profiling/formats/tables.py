"""Profiles of other tools as the tables of a profile directory."""

import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from analysis.profiling.formats.columns import Amounts, FrameTable, SampleTable, exact_sum, numbered
from analysis.profiling.formats.foreign import LARGEST, UNKNOWN, ForeignProfile, Frame, Measure, Origin
from analysis.profiling.formats.stores import PLACE, SAMPLES, SampleStore, StackStore, in_groups
from analysis.profiling.shelf import Shelf
from analysis.profiling.storage import LABELS, ROW_GROUP_ROWS, TAKEN, write_samples
from analysis.tables.faults import Faults, plain
from models.arrays import DAY_S, Ints
from models.tables import SCHEMAS, TABLES

NAMES = ("visits", "processes", "builds", "rates", "samples", "locations", "stacks")
"""Tables of a profile directory."""
_COUNTERS = ("samples", "sample_count")
"""Measures that count samples."""
_AMOUNT_UNITS = frozenset(
    ("bytes", "kilobytes", "megabytes", "nanoseconds", "microseconds", "milliseconds", "seconds", "ns")
)
"""Units of what a sample has an amount of."""
_OBJECTS_SUFFIX = "_objects"
"""End of the names of what heap profiles estimate beside bytes."""
_GROUP_ROWS = 1 << 20
"""Rows of a row group of call paths."""
_LOCATION_COLUMNS = 6
"""Codes and lines that a location has."""
_Visit = tuple[tuple[int], int, tuple[object, ...], float, tuple[object, ...]]
"""Number, file, what follows, when it began in seconds since 1970, and what follows."""
_Process = tuple[int, int, str | int, tuple[object, ...]]
"""Number, visit, application or the file whose collection names it, and what follows."""


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
    store = ProfileStore()
    for profile in profiles:
        refuse_large(profile)
        store.add(profile)
    return store.frames(store.collections(taken), origin_s)


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
        rows = arrow_table(name, table)
        if name == "samples":
            order = [(key, "ascending") for key in ("event", "process", "location", "stack")]
            write_samples(folder / f"{name}.parquet", [rows.sort_by(order)], taken=TAKEN in table)
        else:
            pq.write_table(rows, folder / f"{name}.parquet", compression="zstd")


def write_rows(samples: Iterable[pa.Table], stacks: Iterable[pa.Table], folder: Path, *, taken: bool) -> dict[str, int]:
    """Write the tables of samples and of call paths as they come, and return how many rows each has.

    Parameters
    ----------
    samples : sorted by event, process, location and stack
    stacks : sorted by stack and depth
    folder : an existing folder
    taken : whether samples have the column `taken`
    """
    batches = itertools.chain([SAMPLES.empty_table()], samples)
    rows = {"samples": write_samples(folder / "samples.parquet", in_groups(batches, ROW_GROUP_ROWS), taken=taken)}
    rows["stacks"] = 0
    with pq.ParquetWriter(folder / "stacks.parquet", SCHEMAS["stacks"], compression="zstd") as writer:
        for batch in in_groups(itertools.chain([SCHEMAS["stacks"].empty_table()], stacks), _GROUP_ROWS):
            writer.write_table(batch)
            rows["stacks"] += batch.num_rows
    return rows


def arrow_table(name: str, table: pd.DataFrame) -> pa.Table:
    """Return a table with the types of its columns in files."""
    columns = {column: table[column].to_numpy() for column in table.columns}
    more = [pa.field(TAKEN, pa.int64())] if TAKEN in columns else []
    return pa.table(columns, LABELS if name == "labels" else pa.schema([*SCHEMAS[name], *more]))


@dataclass(slots=True)
class ProfileStore:
    """The tables of profiles that come one after another: samples and call paths on a shelf, the others in memory."""

    shelf: Shelf = field(default_factory=Shelf)
    names: list[str] = field(default_factory=list)
    """Of the files; tables have a file's number where its collection's name will be."""
    start_s: float | None = None
    """When the first began, in seconds since 1970; none: no file says that."""
    visits: list["_Visit"] = field(default_factory=list)
    processes: list["_Process"] = field(default_factory=list)
    rates: dict[tuple[int, str, str], tuple[object, ...]] = field(default_factory=dict)
    builds: dict[tuple[str, str], int] = field(default_factory=dict)
    kinds: list[str] = field(default_factory=list)
    machines: dict[tuple[int, str], int] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=lambda: {"": 0})
    """Texts that frames have, to their codes."""
    locations: dict[bytes, int] = field(default_factory=dict)
    """Codes of function, image, build id and file, and the lines of each."""
    labels: list[tuple[int, str, str]] = field(default_factory=list)
    """Process, key and value."""
    events: dict[str, int] = field(default_factory=dict)
    samples: SampleStore = field(init=False)
    stacks: StackStore = field(init=False)

    def __post_init__(self) -> None:
        self.samples, self.stacks = SampleStore(self.shelf), StackStore(self.shelf)

    def add(self, profile: ForeignProfile) -> None:
        """Add a profile as one collection."""
        collection = len(self.names)
        self.names.append(profile.name)
        if not math.isnan(profile.start_s):
            self.start_s = profile.start_s if self.start_s is None else min(self.start_s, profile.start_s)
        names = [measure.event for measure in _distinct(profile.measures)]
        samples = SampleTable.of(profile.samples)
        periods = [_period(measure, samples.amount(at)) for at, measure in enumerate(profile.measures)]
        processes = np.array(self._origins(profile, collection), np.int32)
        for (measure, name), period in zip(zip(profile.measures, names, strict=True), periods, strict=True):
            for platform in dict.fromkeys(origin.platform for origin in profile.origins):
                native = measure.native or measure.event
                entry = (platform, name, native, measure.unit, period, 1, math.nan)
                self.rates[collection, platform, name] = entry
        places = self._locations(FrameTable.of(profile.frames), profile.main)
        amounts = samples.amounts.astype(np.int64, copy=False).reshape(len(samples), len(names))
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
        behind = behind[row, at].astype(np.int64, copy=False)
        event = np.array(events, np.int32)[at]
        columns = processes[samples.origin[row]], place[row], stacks[row], count, behind
        del at, amounts, row, place, stacks  # which are large
        self.samples.add(event, columns)

    def collections(self, taken: Collection[str] = ()) -> list[str]:
        """Return the names of the files' collections: those of files without folders; equal ones are numbered.

        Parameters
        ----------
        taken : names that no collection gets
        """
        return collections_of(self.names, taken)

    @property
    def origin_s(self) -> float | None:
        """Midnight (UTC) before the first file, in seconds since 1970; none: no file says when it was taken."""
        return None if self.start_s is None else DAY_S * (self.start_s // DAY_S)

    def numbered_machines(self) -> dict[str, int]:
        """Return the numbers of machines that have a name."""
        return {name: number for (_, name), number in self.machines.items() if name}

    def frames(self, collections: Sequence[str], origin_s: float | None = None) -> dict[str, pd.DataFrame]:
        """Return all tables in memory: see `small`."""
        tables = self.small(collections, origin_s)
        batches = [*self.samples.batches(self.events)]
        columns = [name for name in SAMPLES.names if name != TAKEN or self.samples.taken]
        tables["samples"] = _whole("samples", batches, SAMPLES)[columns]
        tables["stacks"] = _whole("stacks", [*self.stacks.batches()], SCHEMAS["stacks"])
        return {name: tables[name] for name in (*NAMES, "labels") if name in tables}

    def small(self, collections: Sequence[str], origin_s: float | None = None) -> dict[str, pd.DataFrame]:
        """Return the tables without samples and stacks.

        Parameters
        ----------
        collections : names of the files' collections
        origin_s : moment from which times count, in seconds since 1970; None: as `self.origin_s`, or 0
        """
        origin_s = (self.origin_s or 0.0) if origin_s is None else origin_s
        rows: dict[str, Sequence[tuple[object, ...]]] = {
            "visits": [
                (*before, collections[file], *where, 0.0 if math.isnan(start_s) else start_s - origin_s, *rest)
                for before, file, where, start_s, rest in self.visits
            ],
            "processes": [
                (number, visit, collections[application] if isinstance(application, int) else application, *rest)
                for number, visit, application, rest in self.processes
            ],
            "builds": [
                (number, build_id, image, kind, "", "", "", math.nan)
                for ((image, build_id), number), kind in zip(self.builds.items(), self.kinds, strict=True)
            ],
            "rates": [(collections[file], *rate) for (file, *_), rate in self.rates.items()],
        }
        tables = {name: _frame(name, rows[name]) for name in rows} | {"locations": self._located()}
        labels = pd.DataFrame(self.labels, columns=LABELS.names).astype({"process": "int32"})
        return tables | {"labels": labels} if self.labels else tables

    def _located(self) -> pd.DataFrame:
        """Return the locations."""
        rows = np.frombuffer(b"".join(self.locations), np.int64).reshape(-1, _LOCATION_COLUMNS)
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

    def _origins(self, profile: ForeignProfile, collection: int) -> list[int]:
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
            rest = (-1, -1, main, index in chains, 0, math.nan, math.nan)
            processes.append(len(self.processes))
            self.labels += [(len(self.processes), key, value) for key, value in origin.labels]
            self.processes.append((len(self.processes), visits[place], application, rest))
        return processes

    def _visit(self, profile: ForeignProfile, collection: int, origin: Origin) -> "_Visit":
        key = (-1, origin.machine) if origin.machine else (len(self.visits), "")
        machine = self.machines.setdefault(key, len(self.machines))
        where = (machine, origin.datacentre, origin.platform, origin.kernel)
        rest = (profile.length_s, 1, "ok", math.nan, math.nan, 0.0)
        return (len(self.visits),), collection, where, profile.start_s, rest

    def _locations(self, frames: FrameTable, main: str) -> Ints:
        """Return the location of each frame; those that differ by address alone have the same."""
        used, place = np.unique(frames.names, return_inverse=True)
        codes = np.array([self.texts.setdefault(frames.texts[at], len(self.texts)) for at in used.tolist()], np.int64)
        names = codes[place.reshape(frames.names.shape)] if len(used) else frames.names
        images = frames.names[:, 1] * len(frames.texts) + frames.names[:, 2]
        pairs, first = np.unique(images, return_index=True)
        for pair in pairs[np.argsort(first)].tolist():
            image, build_id = (frames.texts[at] for at in divmod(pair, len(frames.texts)))
            if image or build_id:
                self._build(image, build_id, _kind(image, main))
        unknown = self.texts.setdefault(UNKNOWN, len(self.texts))
        rows = np.column_stack([np.where(names[:, :1] == 0, unknown, names[:, :1]), names[:, 1:], frames.lines])
        return np.array(
            numbered(rows.tobytes(), np.full(len(rows), rows.itemsize * _LOCATION_COLUMNS), self.locations), np.int64
        )

    def _stacks(
        self, samples: SampleTable, places: Ints, valued: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the stack of each sample, −1 where it has none or no value, and the location sampled."""
        last = np.cumsum(samples.depths)
        path = places.astype(PLACE)[samples.frames]
        chosen = samples.stack[samples.chain & (samples.depths[samples.stack] > 0) & valued]
        used, first = np.unique(chosen, return_index=True)
        used = used[np.argsort(first)]
        number = np.full(len(samples.depths), -1, PLACE)
        number[used] = self.stacks.numbers(path, (last - samples.depths)[used], last[used])
        first = np.minimum(last - samples.depths, max(0, len(path) - 1))
        leaf = path[first] if len(path) else np.zeros(len(first), PLACE)
        return np.where(samples.chain, number[samples.stack], PLACE.type(-1)), leaf[samples.stack]

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


def _whole(name: str, batches: list[pa.Table], schema: pa.Schema) -> pd.DataFrame:
    """Return batches as one table, with the types that `models.tables` says."""
    table: pd.DataFrame = pa.concat_tables([schema.empty_table(), *batches]).to_pandas()
    return table.astype({column.name: column.type.to_pandas_dtype() for column in TABLES[name]})


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
            period == 1 and (measure.unit in _AMOUNT_UNITS or measure.event.endswith(_OBJECTS_SUFFIX))
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


def refuse_large(profile: ForeignProfile) -> None:
    """Refuse a profile with an event whose values sum to more than tables hold.

    Raises
    ------
    FileError
        With every such event.
    """
    faults = Faults(profile.name)
    samples = SampleTable.of(profile.samples)
    for at, measure in enumerate(profile.measures):
        total = samples.total(at)
        if total > LARGEST:
            faults.tell(measure.event, f"should sum to at most {LARGEST}", total)
    faults.refuse()


def collections_of(files: Sequence[str], taken: Collection[str] = ()) -> list[str]:
    """Return the names of files' collections: those of the files without folders; equal ones are numbered.

    Examples
    --------
    >>> collections_of(["x/a.pb", "y/a.pb", "b.pb"], {"b.pb"})
    ['a.pb (1)', 'a.pb (2)', 'b.pb (2)']
    """
    names = [plain(PurePath(file).name) for file in files]
    times, earlier, collections = Counter(names), frozenset(taken), list[str]()
    used, next_number = set(earlier), dict[str, int]()
    for name in names:
        chosen = name
        if times[name] > 1 or name in used:
            numbers = itertools.count(next_number.get(name, 1 if name not in earlier else 2))
            number = next(number for number in numbers if f"{name} ({number})" not in used)
            chosen, next_number[name] = f"{name} ({number})", number + 1
        used.add(chosen)
        collections.append(chosen)
    return collections
