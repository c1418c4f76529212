"""What a profile database holds of one event, as a profile for other tools: every place, with callers where known."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from analysis.profiling.database import Database
from analysis.profiling.formats.columns import FrameTable, SampleTable
from analysis.profiling.formats.foreign import LARGEST, ForeignProfile, Measure, Origin
from analysis.profiling.frames import AnyInts
from analysis.profiling.query import Query, QueryError
from analysis.profiling.sampled_stacks import SampledStacks, TooManyStacksError
from analysis.profiling.shelf import give_back_memory
from analysis.profiling.storage import Identity
from models.arrays import Ints, unique_sorted

_COUNTERS = ("samples", "sample_count")
"""Measure that counts samples, and its name where an event is called so too."""
MOST_ROWS, _MOST_FRAMES = 1 << 20, 1 << 23
"""Samples at once, and frames on their call paths, as deep as all are on average: some 400 MB with all the rest."""
_ROWS_AT_ONCE = 100_000
"""Rows whose frames are numbered at once."""
_TEXTS = ("function", "image", "build_id", "file")


@dataclass(slots=True)
class _FirstSeen:
    """Numbers of items in the order in which they come first."""

    number: NDArray[np.int32]
    """Of each item; −1: it did not come yet."""
    used: int = 0

    @classmethod
    def of_none(cls, items: int) -> "_FirstSeen":
        """Return the numbers of items of which none came yet."""
        return cls(np.full(items, -1, dtype=np.int32))

    def see(self, items: AnyInts) -> None:
        """Number items that are new."""
        fresh = pd.unique(items[self.number[items] < 0])
        self.number[fresh] = self.used + np.arange(len(fresh))
        self.used += len(fresh)

    def items(self) -> Ints:
        """Return the items that came, in order of their numbers."""
        return np.argsort(self.number, kind="stable")[len(self.number) - self.used :]


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """Places in the code, and the frames that differ among them."""

    location: Ints
    """(l,) rising."""
    frame: NDArray[np.int32]
    """(l,)"""
    texts: tuple[str, ...]
    names: Ints
    """(f, 4) as of `FrameTable`."""
    lines: Ints

    def table(self, frames: _FirstSeen) -> FrameTable:
        """Return frames that came, in this order."""
        at = frames.items()
        nothing, unknown = np.zeros(len(at), np.int64).tolist(), np.full(len(at), -1).tolist()
        return FrameTable(self.texts, self.names[at], self.lines[at], nothing, unknown)


def extract(database: Database, query: Query, name: str = "profile") -> ForeignProfile:
    """Return what a query's restrictions leave, by application and call path, nothing cut off.

    Measures are samples (`sample_count` if the event itself is called `samples`) and the event, whose values are
    count × period × duty × weight; both sum to what `Database.total` says. Samples without a call path
    are by place, and have a stack of one frame.

    Parameters
    ----------
    database : the profile
    query : what is asked; its dimensions do not matter
    name : of the profile

    Returns
    -------
    Profile
        Frames and samples in a fixed order. Where values sum to more than 2⁶³ − 1, `samples` only, with a note.

    Raises
    ------
    TooManyStacksError
        If there are more than `most_samples`: `extract_parts` takes any number.
    QueryError
        If the event or a value of a restriction is not in the profile.
    ProfileError
        If samples lack a rate, call paths refer to nothing, or sums are too large.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from analysis.profiling.formats.foreign import Frame, Sample
    >>> from analysis.profiling.formats.tables import to_tables, write_tables
    >>> frames, samples = (Frame("f"), Frame("main")), (Sample((0, 1), (30,)),)
    >>> tables = to_tables([ForeignProfile((Measure("cpu", "ns", 10),), frames, samples)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tables(tables, Path(folder))
    ...     with Database([Path(folder)]) as database:
    ...         tuple(extract(database, Query("cpu")).samples)
    (Sample(stack=(0, 1), amounts=(3, 30), origin=0, chain=True, taken=()),)
    """
    parts = _Parts(database, replace(query, by=("application",)), name)
    return parts.of(parts.whole, parts.most)


def extract_parts(database: Database, query: Query, name: str = "profile") -> Iterator[ForeignProfile]:
    """Yield what `extract` returns, however much it is: in several parts where there are very many samples.

    Each part has the frames and origins of those before, at the same places, and more. Parts are of stacks whose
    numbers follow each other, for each of which all samples are read anew.

    Parameters
    ----------
    database, query, name : as of `extract`

    Raises
    ------
    QueryError, ProfileError
        As `extract` does.
    """
    parts = _Parts(database, replace(query, by=("application",)), name)
    try:
        whole = [parts.of(parts.whole, parts.most)]
    except TooManyStacksError:
        yield from parts.several()
    else:
        yield whole.pop()


def most_samples(database: Database) -> int:
    """Return how many sums of samples of a profile are in memory at once: fewer where its call paths are deep."""
    *_, stacks, frames = database.stack_numbers()
    return min(MOST_ROWS, max(_MOST_FRAMES * max(stacks, 1) // max(frames, 1), 1))


@dataclass(slots=True)
class _Parts:
    """The parts of a profile, of which only one is in memory."""

    database: Database
    query: Query
    """By application."""
    name: str
    state: Identity = field(init=False)
    """Of the files when the first was asked for."""
    whole: tuple[int, int] = field(init=False)
    """Least number of a stack, as `SampledStacks` has it, and the one after the greatest."""
    most: int = field(init=False)
    """Sums of the whole; a part of several has half as many, beside which there is room for what writers keep."""
    totals: tuple[int, int] | None = None
    """Samples and events of all parts; none: the first is the whole."""
    places: "_Places | None" = None
    frames: _FirstSeen = field(init=False)
    origins: _FirstSeen = field(init=False)

    def __post_init__(self) -> None:
        self.state = self.database.identity
        self.whole, self.most = self.database.stack_numbers()[:2], most_samples(self.database)

    def several(self) -> Iterator[ForeignProfile]:
        """Yield the parts, each of a span of stacks with few enough sums."""
        self.totals = self.database.total(self.query)
        least, end, stacks, _ = self.database.stack_numbers()
        spans = [*self._spans((0, end), max(2, -(-stacks // max(self.most // 2, 1)))), (least, 0)]
        while spans:
            span = spans.pop()
            try:
                part = [self.of(span, self.most // 2 if span[1] - span[0] > 1 else None)]
            except TooManyStacksError:
                spans += self._spans(span, 2)
                continue
            if len(part[0].samples):
                yield part.pop()

    def _spans(self, span: tuple[int, int], parts: int) -> list[tuple[int, int]]:
        """Return the parts of a span, of as many stacks each, the last first; numbers may have gaps."""
        first, end = span
        edges = [] if end <= 0 else self.database.stack_edges(span, parts)
        return [*pairwise([first, *(edges or [(first + end) // 2]), end])][::-1]

    def of(self, span: tuple[int, int], most: int | None) -> ForeignProfile:
        """Return the part of the stacks whose numbers are in a span; samples are in order of value, the greatest first.

        Raises
        ------
        TooManyStacksError
            If there are more sums than `most`.
        """
        database, query = self.database, self.query
        sums = database.stack_sums(query, alone=True, span=span, most=most)
        if self.places is None:
            self.places = _places(database.code())
            self.frames, self.origins = _FirstSeen.of_none(len(self.places.names)), _FirstSeen.of_none(len(sums.keys))
            give_back_memory()
        value = self.totals[1] if self.totals is not None else sums.totals[1]
        steps = database.locations_on(unique_sorted(sums.stack[sums.stack >= 0]))
        samples = _samples(sums, steps, self.places, (self.frames, self.origins), valued=value <= LARGEST)
        if database.identity != self.state:
            raise QueryError("the profile's files changed while they were read; ask again")
        events = [Measure(query.event, database.units()[query.event], _period(database, query.event))]
        notes: tuple[str, ...] = ()
        if value > LARGEST:
            events, notes = [], (f"{query.event} sums to {value}, more than 64 bits hold: samples only",)
        counter = _COUNTERS[query.event == _COUNTERS[0]]
        applications = sums.keys["application"].to_numpy(object)[self.origins.items()].tolist()
        give_back_memory()
        return ForeignProfile(
            (Measure(counter), *events),
            self.places.table(self.frames),
            samples,
            tuple(map(Origin, applications)) or (Origin(),),
            name=self.name,
            notes=notes,
        )


def _places(table: pa.Table) -> _Places:
    """Return all places, those that differ in nothing that formats have as one frame."""
    texts, names = {"": 0}, list[Ints]()
    for name in _TEXTS:
        coded = table[name].combine_chunks().dictionary_encode()
        places = [texts.setdefault(text, len(texts)) for text in coded.dictionary.to_pylist()]
        names.append(np.array(places, np.int64)[coded.indices.to_numpy(zero_copy_only=False)])
    lines = [table[name].to_numpy() for name in ("function_line", "line")]
    rows = pd.DataFrame(dict(enumerate([*names, *lines])))
    frame = np.asarray(rows.groupby(list(rows.columns), sort=False).ngroup().to_numpy(), np.int32)
    at = np.flatnonzero(~rows.duplicated().to_numpy(np.bool_))
    location = np.asarray(table["location"].to_numpy(), np.int64)
    return _Places(location, frame, tuple(texts), np.column_stack(names)[at], np.column_stack(lines)[at])


def _period(database: Database, event: str) -> int:
    """Return the period of an event, if it is the same on all platforms and in all collections, or else 1."""
    rates = database.table("rates")
    periods = rates.loc[rates["event"] == event, "period"].unique()
    return int(periods[0]) if len(periods) == 1 else 1


def _samples(
    sums: SampledStacks,
    steps: tuple[Ints, AnyInts],
    places: _Places,
    numbers: tuple[_FirstSeen, _FirstSeen],
    *,
    valued: bool,
) -> SampleTable:
    """Return samples in order of value, the greatest first, application, place sampled and stack.

    Parameters
    ----------
    sums : by application
    steps : length of each stack, and which places they have, the one sampled first
    places : all
    numbers : of frames and of applications
    valued : whether samples have values
    """
    give_back_memory()
    every, at = np.unique(sums.stack, return_inverse=True)
    leaves = np.searchsorted(places.location, -1 - every[every < 0]).astype(np.int32)
    depths = np.append(np.ones(len(leaves), np.int64), steps[0])
    steps_of = np.append(leaves, steps[1])
    del steps
    sampled, frame = steps_of[np.cumsum(depths) - depths], places.frame[steps_of]
    del steps_of
    falling = np.unique(-sums.value, return_inverse=True)[1] if sums.value.dtype == object else -sums.value
    order = np.lexsort((sums.stack, sampled[at], sums.key, falling))
    amounts = [sums.samples, sums.value][: 1 + valued]
    frames, origins = numbers
    key, stack = sums.key[order], at[order]
    origins.see(key)
    table = SampleTable(
        stack,
        frame,
        depths,
        np.column_stack([own[order] for own in amounts]),
        origins.number[key].astype(np.int64),
        sums.stack[order] >= 0,
    )
    for first in range(0, len(stack), _ROWS_AT_ONCE):
        frames.see(table.frames_of(slice(first, first + _ROWS_AT_ONCE)))
    return replace(table, frames=frames.number[table.frames])
