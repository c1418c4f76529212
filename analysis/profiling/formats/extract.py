"""What a profile database holds of one event, as a profile for other tools: every place, with callers where known."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from analysis.profiling.database import MOST_ROWS, Database
from analysis.profiling.formats.columns import FrameTable, SampleTable
from analysis.profiling.formats.foreign import LARGEST, ForeignProfile, Measure, Origin
from analysis.profiling.frames import AnyInts
from analysis.profiling.query import Query, QueryError
from analysis.profiling.sampled_stacks import SampledStacks
from analysis.profiling.shelf import give_back_memory
from models.arrays import Ints, unique_sorted

_COUNTERS = ("samples", "sample_count")
"""Measure that counts samples, and its name where an event is called so too."""
_ROWS_AT_ONCE = 100_000
"""Rows whose frames are numbered at once."""
_TEXTS = ("function", "image", "build_id", "file")


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
    QueryError
        If the event or a value of a restriction is not in the profile, or there are more than 2 million rows.
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
    state = database.identity
    sums = database.stack_sums(replace(query, by=("application",)), alone=True, most=MOST_ROWS)
    places = _places(database.code())
    give_back_memory()
    frames, samples, keys = _samples(sums, database.locations_on(unique_sorted(sums.stack[sums.stack >= 0])), places)
    if database.identity != state:
        raise QueryError("the profile changed while it was read")
    events = [Measure(query.event, database.units()[query.event], _period(database, query.event))]
    notes: tuple[str, ...] = ()
    if (value := sums.totals[1]) > LARGEST:
        events, notes = [], (f"{query.event} sums to {value}, more than 64 bits hold: samples only",)
    counter = _COUNTERS[query.event == _COUNTERS[0]]
    origins = tuple(Origin(application) for application in sums.keys["application"].to_numpy(object)[keys].tolist())
    give_back_memory()
    measures = (Measure(counter), *events)
    return ForeignProfile(measures, frames, samples, origins or (Origin(),), name=name, notes=notes)


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
    sums: SampledStacks, steps: tuple[Ints, AnyInts], places: _Places
) -> tuple[FrameTable, SampleTable, AnyInts]:
    """Return frames in the order of the samples that have them first, samples, and the keys that are their origins.

    Samples are in order of value, the greatest first, application, place sampled and stack.

    Parameters
    ----------
    sums : by application
    steps : length of each stack, and which places they have, the one sampled first
    places : all
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
    amounts = [sums.samples, sums.value][: 1 + (sums.totals[1] <= LARGEST)]
    origin, keys = pd.factorize(sums.key[order])
    number, used, stack = np.full(len(places.names), -1, dtype=np.int32), 0, at[order]
    table = SampleTable(
        stack,
        frame,
        depths,
        np.column_stack([own[order] for own in amounts]),
        origin.astype(np.int64),
        sums.stack[order] >= 0,
    )
    for first in range(0, len(stack), _ROWS_AT_ONCE):
        within = table.frames_of(slice(first, first + _ROWS_AT_ONCE))
        fresh = pd.unique(within[number[within] < 0])
        number[fresh] = used + np.arange(len(fresh))
        used += len(fresh)
    order = np.argsort(number, kind="stable")[len(number) - used :]
    names, lines = places.names[order], places.lines[order]
    nothing, unknown = np.zeros(used, np.int64).tolist(), np.full(used, -1).tolist()
    frames = FrameTable(places.texts, names, lines, nothing, unknown)
    return frames, replace(table, frames=number[table.frames]), keys
