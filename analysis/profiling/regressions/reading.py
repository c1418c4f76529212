"""Both sides of a comparison read from databases in numbers, one application at a time."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.util import hash_pandas_object

from analysis.profiling.fleet_samples import of_fleet
from analysis.profiling.formats.fleet import NOBODY
from analysis.profiling.regressions.coded import TAGS, CodedTable, CostEntries, edges, partly_named
from analysis.profiling.regressions.comparison import CostComparison
from analysis.profiling.shelf import give_back_memory
from analysis.profiling.symbolise import UNKNOWN
from models.arrays import Bools, Ints

if TYPE_CHECKING:
    from analysis.profiling.counted import CountedEntries, CountedSamples
    from analysis.profiling.database import Database

_KEYS = ("application", *TAGS, "machine")
_IDENTIFYING_FUNCTIONS = 10
"""Least number of functions of a machine, and a fifth of its samples, to tell it from any other by what was sampled."""
_MISSING = ("", "[none]")
"""What a tag says that is not known."""
_NO_UNKNOWN = pd.DataFrame({"application": [], "image": [], "revision": [], "value": [], "unknown": []})


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
            if entries >= _IDENTIFYING_FUNCTIONS and samples >= 5 * _IDENTIFYING_FUNCTIONS
        }

    def same(self, other: "ReadSide") -> bool:
        """Return whether another side has the very same samples, on whichever machines."""
        return self._number() == other._number()

    def _number(self) -> tuple[int, int, int]:
        entries, samples, numbers = (sum(parts) for parts in zip(*self.machines.values(), strict=True))
        return entries, samples, numbers % 2**64


@dataclass(frozen=True, slots=True, eq=False)
class _Counted:
    """The samples of one side, as they were counted: each application is a part."""

    samples: "CountedSamples"
    parts: dict[str, int]
    """Of each application that has samples."""
    key: Ints
    """(K,) row of each key among those of all sides, −1: none."""
    location: Ints
    """(L,) number of each place's function and image."""

    def present(self, application: str) -> Ints:
        """Return the numbers of an application's functions and images."""
        entries = self.samples.raw(self.parts[application]).positive()
        return np.unique(self.location[np.flatnonzero(np.bincount(entries.place))])


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
        self._sides: list[_Counted] = []
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
        query = of_fleet(database, event, ("function", "image", *_KEYS)).during(*span_s)
        nameless, names = set(database.values("collection")), list[str]()

        def by_application(keys: pd.DataFrame) -> Ints:
            code, known = pd.factorize(_programs(keys["application"], nameless), sort=True)
            names.extend(map(str, known))
            return code.astype(np.int64)

        return self._read(database.counted(query, by_application), names, nameless, later=later)

    def _read(self, counted: "CountedSamples", names: Sequence[str], nameless: set[str], *, later: bool) -> ReadSide:
        """Keep what was counted; `names` are the parts' applications."""
        places = counted.places
        keys = counted.keys.assign(application=_programs(counted.keys["application"], nameless))
        pairs = zip(places["function"].to_numpy(object), places["image"].to_numpy(object), strict=True)
        location = np.array([self._places.setdefault(pair, len(self._places)) for pair in pairs], dtype=np.int64)
        used = (keys["value"] > 0).to_numpy(np.bool_)
        self._keys.append(keys.loc[used, [*_KEYS, "value"]].assign(later=later))
        row = np.where(used, np.cumsum(used) - 1 + sum(map(len, self._keys[:-1])), -1)
        here = set(self._keys[-1]["application"].unique())
        bare = replace(counted, keys=counted.keys[["scale"]], places=places[[]])
        parts = {name: part for part, name in enumerate(names) if name in here}
        self._sides.append(_Counted(bare, parts, row, location))
        marks = _Fingerprints.of(counted.keys, places) if self.told_apart else None
        lacking = places["image"].isin(places["image"][places["function"] == UNKNOWN]).to_numpy(np.bool_)
        for part in parts.values() if marks is not None or lacking.any() else ():
            entries = (counted.raw if marks is None else counted.entries)(part).positive()
            self._unknown.append(_unknown(entries.at(lacking[entries.place]), keys, places))
            if marks is not None:
                marks.add(entries)
        return ReadSide(counted.samples, {} if marks is None else marks.machines())

    def comparison(self) -> CostComparison:
        """Return the comparison of both sides, once: what was read is let go of.

        Raises
        ------
        NotEnoughDataError
            If a side has samples of one machine alone.
        """
        keys = pd.concat(self._keys, ignore_index=True)
        self._keys.clear()
        blank = [name for name in TAGS if keys[name].isin(_MISSING).all()]
        group = pd.factorize(keys["machine"])[0].astype(np.int64)
        keys = keys.drop(columns=[*blank, "machine"])
        order = np.argsort(pd.factorize(keys["application"], sort=True)[0], kind="stable")
        place = np.empty(len(keys), dtype=np.int64)
        place[order] = np.arange(len(keys))
        keys = keys.assign(group=group).iloc[order].reset_index(drop=True)
        applications, first = edges(keys["application"])
        unnamed = _Unnamed.of(partly_named(pd.concat((_NO_UNKNOWN, *self._unknown), ignore_index=True)), self._places)
        present = self._present(unnamed)
        sorted_names = sorted(np.flatnonzero(present).tolist(), key=lambda function: unnamed.names[function])
        rank = np.full(len(present), -1)
        rank[sorted_names] = np.arange(len(sorted_names))
        coded = [(place[side.key], rank[unnamed.function[side.location]]) for side in self._sides]

        def entries(at: int) -> CostEntries:
            name, parts = applications[at], []
            for side, (key, named) in zip(self._sides, coded, strict=True):
                if name in side.parts:
                    own = side.samples.raw(side.parts[name]).positive()
                    function = rank[unnamed.functions(name)[side.location]] if name in unnamed.hidden else named
                    parts.append((key[own.key], function[own.place], own.samples, own.value))
            key, function, samples, value = (np.concatenate(columns) for columns in zip(*parts, strict=True))
            return CostEntries(key - first[at], function, samples, value)

        functions = pd.Index([unnamed.names[function] for function in sorted_names])
        comparison = CostComparison.of_coded(CodedTable(keys, applications, first, entries), functions)
        self._sides.clear()
        give_back_memory()
        return comparison

    def _present(self, unnamed: "_Unnamed") -> Bools:
        """Return (F,) which functions have events in some application."""
        present = np.zeros(len(unnamed.names), dtype=np.bool_)
        for side in self._sides:
            if unnamed.hidden:
                for application in side.parts:
                    present[unnamed.functions(application)[side.present(application)]] = True
            else:
                present[unnamed.function[side.location[side.samples.present]]] = True
        return present


def _programs(application: "pd.Series[str]", nameless: set[str]) -> "pd.Series[str]":
    """Return applications; files that name no program are of one."""
    return application.mask(application.isin(nameless), NOBODY)


def _unknown(entries: "CountedEntries", keys: pd.DataFrame, places: pd.DataFrame) -> pd.DataFrame:
    """Return value, and the part of it without symbols, by application, image and revision.

    Parameters
    ----------
    entries : in images that lack some symbols
    keys, places : of the entries
    """
    where, what = keys.iloc[entries.key], places.iloc[entries.place]
    rows = pd.DataFrame({name: where[name].to_numpy() for name in ("application", "revision")})
    unknown = np.where(what["function"] == UNKNOWN, entries.value, 0.0)
    rows = rows.assign(image=what["image"].to_numpy(), value=entries.value, unknown=unknown)
    return rows.groupby(["application", "image", "revision"], as_index=False)[["value", "unknown"]].sum()


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
    """(K,) number of the machine."""
    key: Any
    """(K,) a number for its tags."""
    location: Any
    """(L,) a number for function and image."""
    sums: Any
    """(3, M) entries, samples, numbers."""

    @classmethod
    def of(cls, keys: pd.DataFrame, locations: pd.DataFrame) -> "_Fingerprints":
        """Return it of no samples yet."""
        machine, names = pd.factorize(keys["machine"])
        key = hash_pandas_object(keys[["application", *TAGS]].astype(str), index=False).to_numpy(np.uint64)
        location = hash_pandas_object(locations[["function", "image"]].astype(str), index=False).to_numpy(np.uint64)
        sums = np.zeros((3, len(names)), dtype=np.uint64)
        return cls([str(name) for name in names], machine.astype(np.int64), key, location, sums)

    def add(self, entries: "CountedEntries") -> None:
        """Add entries."""
        samples = entries.samples.astype(np.uint64)
        number = self.key[entries.key] ^ (self.location[entries.place] * np.uint64(0x9E3779B97F4A7C15))
        # Murmur's finaliser: sums of mixed numbers are alike only where the numbers are.
        number += samples * np.uint64(0xC2B2AE3D27D4EB4F)
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            number ^= number >> np.uint64(33)
            number *= np.uint64(factor)
        at = self.machine[entries.key]
        for sums, values in zip(self.sums, (np.ones(len(at), np.uint64), samples, number), strict=True):
            np.add.at(sums, at, values)

    def machines(self) -> dict[str, tuple[int, int, int]]:
        """Return of each machine entries, samples and a number for them all."""
        return {name: (a, b, c) for name, (a, b, c) in zip(self.names, self.sums.T.tolist(), strict=True)}
