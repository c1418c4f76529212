"""Both sides of a comparison read from databases in numbers, so many applications at a time that they are few."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.util import hash_pandas_object

from analysis.profiling.fleet_samples import of_fleet
from analysis.profiling.formats.fleet import NOBODY
from analysis.profiling.regressions.coded import TAGS, CodedTable, CostEntries, edges, partly_named
from analysis.profiling.regressions.comparison import CostComparison
from analysis.profiling.regressions.shelf import Shelf, ShelfPlace
from analysis.profiling.sums import Sums, frame
from analysis.profiling.symbolise import UNKNOWN
from models.arrays import Floats, Ints

if TYPE_CHECKING:
    import duckdb

    from analysis.profiling.database import Database

_KEYS = ("application", *TAGS, "machine")
_CHUNK = 300_000
"""Entries that are pulled at a time, unless one application has more."""
_TELLING = 10
"""Least number of functions of a machine, and a fifth of its samples, to tell it from any other by what was sampled."""
_NONE = ("", "[none]")
"""What a tag says that is not known."""


@dataclass(slots=True)
class ReadSide:
    """One side of a comparison: all of its samples, and what they can be told by."""

    samples: int
    machines: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Of each machine entries, samples and a number for them all."""

    def fingerprints(self) -> set[int]:
        """Return a number for what was sampled on each machine, of those with so much that none are alike by chance."""
        return {
            number
            for entries, samples, number in self.machines.values()
            if entries >= _TELLING and samples >= 5 * _TELLING
        }

    def same(self, other: "ReadSide") -> bool:
        """Return whether another side has the very same samples, on whichever machines."""
        return self._number() == other._number()

    def _number(self) -> tuple[int, int, int]:
        entries, samples, numbers = (sum(parts) for parts in zip(*self.machines.values(), strict=True))
        return entries, samples, numbers % 2**64


@dataclass(frozen=True, slots=True, eq=False)
class _Pulled:
    """Entries of some applications: arrays of n."""

    pkey: Ints
    lkey: Ints
    samples: Floats
    value: Floats

    @classmethod
    def of(cls, cursor: "duckdb.DuckDBPyConnection", applications: Sequence[str]) -> "_Pulled":
        """Pull them."""
        own = "value > 0 AND pkey IN (SELECT pkey FROM process_keys WHERE application IN (SELECT unnest(?)))"
        rows = f"SELECT pkey, lkey, samples::DOUBLE AS samples, value::DOUBLE AS value FROM groups WHERE {own}"
        table = cursor.sql(rows, params=[list(applications)]).to_arrow_table()
        return cls(*(table[name].to_numpy() for name in ("pkey", "lkey", "samples", "value")))


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some entries of one application on one side, put away."""

    key: ShelfPlace
    location: ShelfPlace
    samples: ShelfPlace
    value: ShelfPlace


class CostReader:
    """Reads the samples of both sides by function, image and every tag that may be at fault, machine by machine.

    Machines and not visits are what differ: an instance's data stay with it from one visit to the next. Files that name
    no program, which otherwise go by their own names, are of one.

    Parameters
    ----------
    told_apart : whether it is to be known what was sampled on each machine
    """

    def __init__(self, *, told_apart: bool = False) -> None:
        self.told_apart = told_apart
        self._shelf = Shelf()
        self._pieces: dict[str, list[_Piece]] = {}
        self._keys: list[pd.DataFrame] = []
        self._places: dict[tuple[str, str], int] = {}
        self._unknown: list[pd.DataFrame] = []

    def add(
        self, database: "Database", event: str, span_s: tuple[float | None, float | None], *, later: bool
    ) -> ReadSide:
        """Read a side.

        Parameters
        ----------
        database : asked
        event : generic event
        span_s : visits from this time on, and before that one; None: all
        later : which side it is

        Raises
        ------
        ProfileError
            As `Database.query` does.
        """
        query = of_fleet(database, event, ("function", "image", *_KEYS))
        nameless = set(database.values("collection"))
        return database.grouped(
            query.during(*span_s), lambda cursor, sums: self._read(cursor, sums, nameless, later=later)
        )

    def _read(self, cursor: "duckdb.DuckDBPyConnection", sums: Sums, nameless: set[str], *, later: bool) -> ReadSide:
        side = ReadSide(sums.samples)
        keys = frame(
            cursor,
            "SELECT * FROM process_keys JOIN (SELECT pkey, count(*) AS entries, sum(samples)::DOUBLE AS samples,"
            " sum(value)::DOUBLE AS value FROM groups WHERE value > 0 GROUP BY pkey) USING (pkey) ORDER BY pkey",
        )
        if not len(keys):
            return side
        names = frame(cursor, "SELECT lkey, function, image FROM location_keys ORDER BY lkey")
        location = np.zeros(int(names["lkey"].max()) + 1, dtype=np.int32)
        pairs = zip(names["function"], names["image"], strict=True)
        location[names["lkey"]] = [self._places.setdefault(pair, len(self._places)) for pair in pairs]
        self._unknown.append(_unknown(cursor).pipe(_with_programs, nameless))
        first = sum(map(len, self._keys))
        key = np.zeros(int(keys["pkey"].max()) + 1, dtype=np.int32)
        key[keys["pkey"]] = first + np.arange(len(keys))
        owner, raw = pd.factorize(keys["application"], sort=True)
        columns = [*_KEYS, "samples", "value"]
        self._keys.append(_with_programs(keys[columns].assign(later=later), nameless))
        marks = _Fingerprints.of(keys, names) if self.told_apart else None
        sizes = np.bincount(owner, keys["entries"]).astype(np.int64)
        code = np.zeros(len(key), dtype=np.int16 if len(raw) < 2**15 else np.int32)
        code[keys["pkey"]] = owner
        for chosen in _chunks(sizes):
            pulled = _Pulled.of(cursor, [str(raw[at]) for at in chosen])
            own = code[pulled.pkey]
            order = np.argsort(own, kind="stable")
            edges_of = np.searchsorted(own[order], np.arange(chosen[0], chosen[-1] + 2))
            if marks is not None:
                marks.add(pulled)
            place = key[pulled.pkey], location[pulled.lkey]
            arrays = [array[order] for array in (*place, pulled.samples, pulled.value)]
            for at, start, stop in zip(chosen, edges_of[:-1], edges_of[1:], strict=True):
                name = NOBODY if raw[at] in nameless else str(raw[at])
                piece = _Piece(*(self._shelf.put(array[start:stop]) for array in arrays))
                self._pieces.setdefault(name, []).append(piece)
        side.machines = {} if marks is None else marks.machines()
        return side

    def comparison(self) -> CostComparison:
        """Return the comparison of both sides.

        Raises
        ------
        NotEnoughDataError
            If a side has samples of one machine alone.
        """
        keys = pd.concat(self._keys, ignore_index=True)
        blank = [name for name in TAGS if keys[name].isin(_NONE).all()]
        keys = keys.drop(columns=blank)
        group = pd.factorize(keys["machine"])[0].astype(np.int64)
        order = np.argsort(pd.factorize(keys["application"], sort=True)[0], kind="stable")
        place = np.empty(len(keys), dtype=np.int64)
        place[order] = np.arange(len(keys))
        keys = keys.assign(group=group).iloc[order].reset_index(drop=True)
        applications, first = edges(keys["application"])
        unnamed = _Unnamed.of(partly_named(pd.concat(self._unknown, ignore_index=True)), self._places)
        present = np.zeros(len(unnamed.names), dtype=np.bool_)

        for application in applications:
            (location,) = self._columns(application, "location")
            present[unnamed.functions(application)[location]] = True
        sorted_names = sorted(np.flatnonzero(present).tolist(), key=lambda function: unnamed.names[function])
        rank = np.full(len(present), -1)
        rank[sorted_names] = np.arange(len(sorted_names))

        def entries(at: int) -> CostEntries:
            key, location, samples, value = self._columns(applications[at], "key", "location", "samples", "value")
            function = rank[unnamed.functions(applications[at])[location]]
            return CostEntries(place[key] - first[at], function, samples, value)

        functions = pd.Index([unnamed.names[function] for function in sorted_names])
        return CostComparison.of_coded(CodedTable(keys, applications, first, entries), functions)

    def _columns(self, application: str, *names: str) -> list["np.ndarray[tuple[int], np.dtype[Any]]"]:
        """Return arrays of an application's entries on both sides."""
        pieces = self._pieces[application]
        return [np.concatenate([self._shelf.get(getattr(piece, name)) for piece in pieces]) for name in names]


def _with_programs(table: pd.DataFrame, nameless: set[str]) -> pd.DataFrame:
    """Return a table in which files that name no program are of one."""
    names = table["application"].astype(object)
    return table.assign(application=names.mask(names.isin(nameless), NOBODY))


def _chunks(sizes: Ints) -> Iterator[list[int]]:
    """Yield numbers of applications, so many that they have few entries together.

    Examples
    --------
    >>> list(_chunks(np.array([100_000, 150_000, 200_000, 900_000])))
    [[0, 1], [2], [3]]
    """
    chosen: list[int] = []
    for at, size in enumerate(sizes.tolist()):
        if chosen and sizes[chosen].sum() + size > _CHUNK:
            yield chosen
            chosen = []
        chosen.append(at)
    if chosen:
        yield chosen


def _unknown(cursor: "duckdb.DuckDBPyConnection") -> pd.DataFrame:
    """Return value, and the part of it without symbols, of the images that lack some, by application and revision."""
    lacking = "image IN (SELECT image FROM location_keys WHERE function = ?)"
    return frame(
        cursor,
        "SELECT application, image, revision, sum(value)::DOUBLE AS value,"
        " coalesce(sum(value) FILTER (function = ?), 0)::DOUBLE AS unknown"
        " FROM groups JOIN process_keys USING (pkey)"
        f" JOIN (SELECT * FROM location_keys WHERE {lacking}) USING (lkey) GROUP BY ALL",
        UNKNOWN,
        UNKNOWN,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Unnamed:
    """Names of functions, and what those of images are called that have symbols in some builds alone."""

    names: list[str]
    function: Ints
    """(L,) of each function and image."""
    image: Ints
    """(L,)"""
    hidden: dict[str, list[tuple[int, int]]]
    """Of an application the images that are one function there, and which."""

    @classmethod
    def of(cls, partly: pd.MultiIndex, places: dict[tuple[str, str], int]) -> "_Unnamed":
        """Return them.

        Parameters
        ----------
        partly : of `partly_named`
        places : (function, image) in order
        """
        function, names = pd.factorize(np.array([name for name, _ in places], dtype=object))
        image, images = pd.factorize(np.array([name for _, name in places], dtype=object))
        number = {str(name): at for at, name in enumerate(names)}
        image_of = {str(name): at for at, name in enumerate(images)}
        hidden: dict[str, list[tuple[int, int]]] = {}
        for application, name in partly:
            own = number.setdefault(f"[{name}]", len(number))
            hidden.setdefault(str(application), []).append((image_of[str(name)], own))
        return cls(list(number), function.astype(np.int64), image.astype(np.int64), hidden)

    def functions(self, application: str) -> Ints:
        """Return (L,) which function each function and image is in an application."""
        own = self.function
        for image, name in self.hidden.get(application, ()):
            own = np.where(self.image == image, name, own)
        return own


@dataclass(slots=True, eq=False)
class _Fingerprints:
    """What was sampled on each machine, as a number."""

    names: list[str]
    machine: Ints
    """(pkey,) number of the machine."""
    key: Any
    """(pkey,) a number for its tags."""
    location: Any
    """(lkey,) a number for function and image."""
    sums: Any
    """(3, M) entries, samples, numbers."""

    @classmethod
    def of(cls, keys: pd.DataFrame, locations: pd.DataFrame) -> "_Fingerprints":
        """Return it of no samples yet."""
        code, names = pd.factorize(keys["machine"])
        machine, key = np.zeros((2, int(keys["pkey"].max()) + 1), dtype=np.uint64)
        machine[keys["pkey"]] = code
        key[keys["pkey"]] = hash_pandas_object(keys[["application", *TAGS]].astype(str), index=False)
        location = np.zeros(int(locations["lkey"].max()) + 1, dtype=np.uint64)
        location[locations["lkey"]] = hash_pandas_object(locations[["function", "image"]].astype(str), index=False)
        sums = np.zeros((3, len(names)), dtype=np.uint64)
        return cls([str(name) for name in names], machine.astype(np.int64), key, location, sums)

    def add(self, pulled: _Pulled) -> None:
        """Add entries."""
        samples = pulled.samples.astype(np.uint64)
        number = self.key[pulled.pkey] ^ (self.location[pulled.lkey] * np.uint64(0x9E3779B97F4A7C15))
        # Murmur's finaliser: sums of mixed numbers are alike only where the numbers are.
        number += samples * np.uint64(0xC2B2AE3D27D4EB4F)
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            number ^= number >> np.uint64(33)
            number *= np.uint64(factor)
        at = self.machine[pulled.pkey]
        for sums, values in zip(self.sums, (np.ones(len(at), np.uint64), samples, number), strict=True):
            np.add.at(sums, at, values)

    def machines(self) -> dict[str, tuple[int, int, int]]:
        """Return of each machine entries, samples and a number for them all."""
        return {name: (a, b, c) for name, (a, b, c) in zip(self.names, self.sums.T.tolist(), strict=True)}
