"""Growth that is none: a function whose image had no symbols before was there, but had no name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis.profiling.changes.detection import SeriesChange, moved_between
from analysis.profiling.changes.reading import days_of, programs
from analysis.profiling.changes.series import CountSeries
from analysis.profiling.fleet_samples import of_fleet, visits_of_fleet
from analysis.profiling.symbolise import GENERATED, UNKNOWN
from models.arrays import Floats, Ints

if TYPE_CHECKING:
    from analysis.profiling.database import Database
    from analysis.profiling.query import Query, Where

LEAST_CHANGE = 0.02
"""Change of the part of an image's samples that have a name from which names are said to have come or gone."""
LEAST_EXPECTED = 10.0
"""Samples that a function should have had on the other side, with a name, to be compared at all."""
UNEXPLAINED = 0.75
"""Part of a change, as a logarithm, from which on names explain too little of it."""


@dataclass(slots=True, eq=False)
class NamedParts:
    """Which part of each image's samples has a name, by application and time; each image is asked about once."""

    database: "Database"
    series: CountSeries
    where: "Where" = ()
    """Of which samples, such as those of a platform."""
    paths: bool = False
    """Whether series are of functions with all that they call: what counts is a name of the image's frames on paths."""
    _parts: dict[tuple[str, ...], Floats] = field(default_factory=dict)

    def of(self, function: str) -> Floats | None:
        """Return (S, T) the named part of the samples of a function's image; None: it has no image.

        While the image was not sampled the part is that of the time before, or of the first time after.
        """
        images = self.database.images_of(function) if self.paths else self._most_sampled(function)
        if not set(images) - {"", GENERATED}:
            return None
        if images not in self._parts:
            known, unnamed = self._on_paths(images) if self.paths else self._sampled(images)
            every = known + unnamed
            parts = pd.DataFrame(np.where(every > 0.0, known / np.maximum(every, 1.0), np.nan).T)
            self._parts[images] = parts.ffill().bfill().fillna(1.0).to_numpy(np.float64).T
        return self._parts[images]

    def _most_sampled(self, function: str) -> tuple[str, ...]:
        """Return the image in which a function has most samples."""
        query = of_fleet(self.database, self.series.event, ("image",), self.where)
        images = self.database.query(query.restricted("function", function))
        return tuple(images.sort_values("samples")["image"].iloc[-1:].astype(str))

    def _sampled(self, images: tuple[str, ...]) -> tuple[Floats, Floats]:
        """Return (S, T) samples in images' functions that have a name, and in those that have none."""
        query = of_fleet(self.database, self.series.event, ("application",), self.where).restricted("image", *images)
        every, unnamed = (self._counted(part) for part in (query, query.restricted("function", UNKNOWN)))
        return every - unnamed, unnamed

    def _counted(self, query: "Query") -> Floats:
        counted = self.database.counted(replace(query, by=(*query.by, "visit")), _one_part)
        entries = counted.entries(0)
        samples = np.bincount(entries.key, entries.samples, len(counted.keys)).astype(np.float64)
        return self._by_application(counted.keys, samples)

    def _on_paths(self, images: tuple[str, ...]) -> tuple[Floats, Floats]:
        """Return (S, T) samples with a frame of images that has a name on their path, and with one that has none."""
        query = of_fleet(self.database, self.series.event, ("application", "visit"), self.where)
        clock = self.series.clock
        visits = visits_of_fleet(self.database)
        days = days_of(visits[visits["start_s"].between(clock.start_s(0), clock.start_s(clock.bins), "left")])
        rows = pd.concat(self.database.named(query.during(*day), images) for day in days)
        known, unnamed = (
            self._by_application(part, part["samples"].to_numpy(np.float64))
            for part in (rows[rows["named"]], rows[~rows["named"]])
        )
        return known, unnamed

    def _by_application(self, keys: pd.DataFrame, samples: Floats) -> Floats:
        """Return (S, T) samples by application and visit as those of each bin, the same in all of its strata."""
        clock, visits = self.series.clock, visits_of_fleet(self.database).set_index("visit")
        nameless = set(self.database.values("collection"))
        applications, places = np.unique(self.series.strata["application"].astype(str), return_inverse=True)
        counts = np.zeros((len(applications), clock.bins))
        row = pd.Index(applications).get_indexer(pd.Index(programs(keys["application"], nameless)))
        at = clock.bin_of(visits.loc[keys["visit"], "start_s"].to_numpy(np.float64))
        inside = (row >= 0) & (at >= 0) & (at < clock.bins)
        np.add.at(counts, (row[inside], at[inside]), samples[inside])
        return np.asarray(counts[places])


def _one_part(keys: pd.DataFrame) -> Ints:
    return np.zeros(len(keys), dtype=np.int64)


def by_names(
    series: CountSeries, named: Sequence[SeriesChange], part: Callable[[str], Floats | None], bound: float
) -> list[SeriesChange]:
    """Return changes; those that names explain, which came or went with a build's symbols, only moved cost as such.

    Samples in an image without symbols are `[unknown]`. When a build with symbols replaces one without, all functions
    of the image seem to come into being. So a function is compared anew with the samples in which it could have had a
    name. Its cost moved from `[unknown]`, or to it, if a quarter of its change is gone then and what is left is within
    the bound of all changes, whose times were chosen as the clearest; or if too few samples could have had its name.

    Parameters
    ----------
    series : of functions
    named : of `analysis.profiling.changes.detection.changes`
    part : which part of the samples of a function's image has a name, (S, T); None: it has no image
    bound : standard errors beyond which a change is worth an alarm, over all functions and times
    """
    if UNKNOWN not in series.functions:
        return list(named)
    return [_moved_name(series, change, part, bound) for change in named]


def _moved_name(
    series: CountSeries, change: SeriesChange, part: Callable[[str], Floats | None], bound: float
) -> SeriesChange:
    """Return a change, or the shift that it is if names explain it."""
    function = str(series.functions[change.series])
    if change.kind == "shift" or function == UNKNOWN or (parts := part(function)) is None:
        return change
    bins = np.arange(series.clock.bins)
    stop = len(bins) if change.end is None else change.end
    inside, before = (bins >= change.start) & (bins < stop), bins < change.start
    cells = series.of(change.series)
    mine = np.repeat(cells.sum(axis=1, keepdims=True), len(bins), axis=1) > 0
    weight = series.exposure * mine
    levels = [float((parts * weight)[:, side].sum() / max(weight[:, side].sum(), 1e-300)) for side in (before, inside)]
    came = levels[1] - levels[0]
    if abs(came) < LEAST_CHANGE or came * change.log_factor < 0.0:
        return change
    could = replace(series, exposure=series.exposure * np.where(mine, parts, 1.0))
    sides = (inside, before) if change.log_factor > 0.0 else (before, inside)
    plenty, few = (float((could.exposure * mine)[:, side].sum()) for side in sides)
    if cells[:, sides[0]].sum() * few >= LEAST_EXPECTED * plenty:
        edges = (change.start, change.start, stop)
        raw, again = (moved_between(counts, change.series, edges) for counts in (series, could))
        if abs(again.log_factor) > min(bound * again.error, UNEXPLAINED * abs(raw.log_factor)):
            return change
    unnamed = np.flatnonzero(series.functions == UNKNOWN)
    return replace(change, kind="shift", partners=tuple(unnamed.tolist()))
