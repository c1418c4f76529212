"""Series of counts of fleets in which something was planted, drawn exactly as if machine by machine.

The project's simulator has no part in them. One application has a fifth of the fleet's samples. Its load follows hours,
days of the week and phases of days. Functions have shares of their own on each platform, hours and weekends of their
own. Machines differ: each function has a factor on each machine that lasts, and another on each machine and day, both
of gamma laws; 1% of the machines are replaced every day. Machines of a class have the same platform and data centre and
get every release at the same time; a sum of Poisson counts with gamma factors is a Poisson count with a gamma factor,
and what leaves of a sum of gammas is a beta part of it, so classes are drawn without their machines. Platforms are
refreshed on the way, and releases without effect are rolled out.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
import pandas as pd

from models.arrays import Bools, Floats, Ints
from models.randomness import stream

What = Literal["regression", "improvement", "refactoring", "transient", "nothing"]
KINDS: tuple[What, ...] = ("regression", "improvement", "refactoring", "transient", "nothing")
DIMENSIONS = ("revision", "compiler", "kernel", "platform", "datacentre")
HELD_OUT = 9_000_000
"""Worlds from this number on were drawn after the detector was committed; those before served to write it, those from
1,000,000, 2,000,000 and 3,000,000 on to judge its first versions."""
HOURS, WEEK = 24, 7
_LEAST_LEFT = 0.1
"""Part of a function's cost that an improvement leaves where it acts, at least."""
_PLATFORMS = {"haswell": 0.4, "refreshed": 0.1, "broadwell": 0.3, "skylake": 0.2}
"""Machines of each platform; those refreshed turn from haswell into skylake on the way."""
_PLACES = {"east": 0.6, "west": 0.4}
_VERSIONS = {"revision": ("r1", "r2"), "compiler": ("clang-17", "clang-18"), "kernel": ("6.1", "6.6")}


@dataclass(frozen=True, slots=True)
class Design:
    """How large a fleet is, how noisy, and what is planted."""

    machines: int = 1000
    samples_a_day: float = 200_000.0
    """Of a machine, all applications together."""
    days: int = 28
    functions: int = 24
    of_fleet: float = 0.2
    """The application's part of all samples."""
    daily: float = 0.10
    """Relative standard deviation between machine-days of a function's cost."""
    lasting: float = 0.10
    """The same between machines, which lasts."""
    churn: float = 0.01
    """Part of the machines that is replaced every day."""
    walk: float = 0.0
    """Standard deviation of the daily steps of the logarithm of a function's cost, which last."""
    slope: float = 0.0
    """Standard deviation between functions of the daily change of that logarithm, the same every day."""
    cost: float = 5e-5
    """What is planted costs, as a share of all samples of the fleet."""
    least: float = 2e-5
    most: float = 1e-3
    """Bounds of the planted function's share of the fleet beforehand, log-uniform."""
    dimensions: tuple[str, ...] = DIMENSIONS
    """Those in whose values something is planted."""


@dataclass(frozen=True, slots=True)
class Planted:
    """What was planted, where it acts, and what else happened."""

    world: int
    what: What
    function: int
    partner: int
    """Of a refactoring, where the cost comes from; −1: none."""
    dimension: str
    value: str
    start: int
    """Bin."""
    end: int
    """Bin; of what lasts, the last."""
    share: float
    """Of the fleet, beforehand."""
    cost: float
    beside: str
    """Dimension of another release of the same day; empty: none."""


class WatchedFleet:
    """One world: the counts of its application's functions, by class of machines and hour.

    Parameters
    ----------
    world : number, which decides every draw
    what : is planted
    design : of the fleet
    hours_after : data end so many hours after the planted change began
    """

    def __init__(self, world: int, what: What, design: Design | None = None, hours_after: int = HOURS) -> None:
        self.world, self.design = world, design or Design()
        rng = self.rng = stream(world, f"watched fleet {what}")
        design = self.design
        start = int(rng.integers(14 * HOURS, (design.days - 1) * HOURS))
        self.bins = start + hours_after
        dimension = str(rng.choice(design.dimensions)) if what in {"regression", "improvement", "transient"} else ""
        if what == "refactoring":
            dimension = "revision"
        beside = ""
        if dimension and rng.random() < 1.0 / 3.0:
            beside = str(rng.choice([name for name in _VERSIONS if name != dimension]))
        self.rollouts = self._rollouts(dimension, beside, start)
        least = max(design.least, 2.0 * design.cost) if what == "improvement" else design.least
        share = float(np.exp(rng.uniform(np.log(least), np.log(design.most))))
        self.shares = self._shares(share)
        value = self._value(dimension)
        length = int(rng.integers(4, 13)) if what == "transient" else hours_after
        cost = {"improvement": -design.cost, "nothing": 0.0}.get(what, design.cost)
        cost = 4.0 * cost if what == "transient" else cost
        self.planted = Planted(
            world=world,
            what=what,
            function=0,
            partner=1 if what == "refactoring" else -1,
            dimension=dimension,
            value=value,
            start=start,
            end=start + length,
            share=share,
            cost=cost,
            beside=beside,
        )

    def _rollouts(self, dimension: str, beside: str, start: int) -> dict[str, tuple[int, int]]:
        """Return of each version the bins at which the first half of the machines and the second get it."""
        rng, last = self.rng, 10 * self.bins
        rollouts = {}
        for name in _VERSIONS:
            begins = int(rng.integers(2 * HOURS, self.bins)) if rng.random() < 0.5 else last
            if name == dimension:
                begins = start
            elif name == beside:
                begins = max(start + int(rng.integers(-6, 7)), 1)
            rollouts[name] = (begins, begins + 48)
        return rollouts

    def _shares(self, planted: float) -> Floats:
        """Return (functions,) shares of the application: the planted one, its partner, others, and all the rest."""
        rng, design = self.rng, self.design
        others = np.exp(rng.uniform(np.log(2e-5), np.log(5e-3), design.functions - 2))
        partner = max(4.0 * design.cost, float(np.exp(rng.uniform(np.log(1e-4), np.log(2e-3)))))
        shares = np.array([planted, partner, *others]) / design.of_fleet
        return np.append(shares, 1.0 - shares.sum())

    def _value(self, dimension: str) -> str:
        if dimension in _VERSIONS:
            return _VERSIONS[dimension][1]
        if dimension == "platform":
            return str(self.rng.choice(["haswell", "broadwell", "skylake"]))
        return str(self.rng.choice(list(_PLACES))) if dimension else ""

    @cached_property
    def classes(self) -> pd.DataFrame:
        """Return (K,) platform class, place, half of each roll-out, and their part of the machines."""
        rows = [
            (platform, place, *halves, size * part / 8.0)
            for platform, size in _PLATFORMS.items()
            for place, part in _PLACES.items()
            for halves in np.ndindex(2, 2, 2)
        ]
        return pd.DataFrame(rows, columns=["platform", "datacentre", *_VERSIONS, "part"])

    def tags(self, at: int) -> pd.DataFrame:
        """Return (K,) tags of the classes in a bin."""
        refreshed = "skylake" if at >= self.bins // 2 else "haswell"
        table = self.classes.drop(columns="part").assign(application="service")
        table["platform"] = table["platform"].replace({"refreshed": refreshed})
        for name, (old, new) in _VERSIONS.items():
            begins = np.array(self.rollouts[name])[table[name].to_numpy(np.int64)]
            table[name] = np.where(at >= begins, new, old)
        return table

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """Return the stretches of bins in which tags stay as they are."""
        cuts = {0, self.bins, self.bins // 2, *(begin for pair in self.rollouts.values() for begin in pair)}
        edges = sorted(cut for cut in cuts if 0 <= cut <= self.bins)
        return list(pairwise(edges))

    @cached_property
    def load(self) -> Floats:
        """Return (T,) expected samples of the application in each hour."""
        rng, hours, design = self.rng, np.arange(self.bins), self.design
        phase = np.cumsum(rng.normal(0.0, 0.07, -(-self.bins // HOURS)))
        level = np.exp(phase)[hours // HOURS]
        weekend = np.where((hours // HOURS) % WEEK >= WEEK - 2, 0.8, 1.0)
        curve = weekend * (1.0 + 0.4 * np.sin((hours % HOURS) * 2 * np.pi / HOURS)) * level / level.mean()
        return np.asarray(curve * design.machines * design.samples_a_day * design.of_fleet / HOURS)

    @cached_property
    def seasons(self) -> Floats:
        """Return (functions + 1, T) factors of hours of the day and of weekends."""
        rng, hours = self.rng, np.arange(self.bins)
        count = len(self.shares)
        swing = rng.uniform(0.0, 0.1, count) * (rng.random(count) < 0.4)
        phase = rng.uniform(0.0, 2 * np.pi, count)
        weekend = np.exp(rng.normal(0.0, 0.05, count) * (rng.random(count) < 0.2))
        swing[-1], weekend[-1] = 0.0, 1.0
        day = 1.0 + swing[:, None] * np.sin((hours % HOURS) * 2 * np.pi / HOURS + phase[:, None])
        return np.asarray(day * np.where((hours // HOURS) % WEEK >= WEEK - 2, weekend[:, None], 1.0))

    @cached_property
    def usual(self) -> Floats:
        """Return (functions + 1, K, T) expected counts before machines' factors and what is planted."""
        platform = self.rng.normal(0.0, 0.2, (len(self.shares), len(_PLATFORMS)))
        platform[-1] = 0.0
        names = [name for name in _PLATFORMS if name != "refreshed"]
        size = self.classes["part"].to_numpy(np.float64)
        factor = np.empty((len(self.shares), len(size), self.bins))
        for begin, end in self.spans:
            place = [names.index(name) for name in self.tags(begin)["platform"]]
            factor[:, :, begin:end] = np.exp(platform[:, place])[:, :, None]
        mean = self.shares[:, None, None] * self.seasons[:, None, :] * size[:, None] * self.load
        return np.asarray(mean * factor)

    @cached_property
    def acts(self) -> Bools:
        """Return (K, T) where what is planted acts."""
        planted, where = self.planted, np.zeros((len(self.classes), self.bins), dtype=np.bool_)
        for begin, end in self.spans:
            tags = self.tags(begin)
            match = np.ones(len(tags), dtype=np.bool_)
            if planted.dimension:
                match = tags[planted.dimension].to_numpy(object) == planted.value
            where[:, begin:end] = match[:, None]
        where[:, : planted.start] = False
        where[:, planted.end :] = False
        return where

    @cached_property
    def expected(self) -> Floats:
        """Return (functions + 1, K, T) expected counts with what is planted, before machines' factors."""
        planted, mean = self.planted, self.usual.copy()
        if not planted.cost:
            return mean
        span = slice(planted.start, planted.end)
        covered = float((mean[planted.function] * self.acts)[:, span].sum())
        fleet = float(self.load[span].sum()) / self.design.of_fleet
        mean[planted.function] *= 1.0 + self.acts * max(planted.cost * fleet / covered, _LEAST_LEFT - 1.0)
        if planted.partner >= 0:
            covered = float((mean[planted.partner] * self.acts)[:, span].sum())
            mean[planted.partner] *= 1.0 - self.acts * min(planted.cost * fleet / covered, 1.0)
        return mean

    def counts(self) -> Floats:
        """Return (functions + 1, K, T) samples."""
        mean, rng, days = self.expected, self.rng, -(-self.bins // HOURS)
        factor = self._lasting(days) * self._daily(days)
        factor *= self._drift(days)[:, None, :]
        factor[-1] = 1.0
        return rng.poisson(mean * np.repeat(factor, HOURS, axis=2)[:, :, : self.bins]).astype(np.float64)

    def _drift(self, days: int) -> Floats:
        """Return (functions + 1, D) factors of functions that drift slowly."""
        rng, count = stream(self.world, "slow drift"), len(self.shares)
        steps = rng.normal(0.0, self.design.walk, (count, days)) + rng.normal(0.0, self.design.slope, (count, 1))
        return np.exp(np.cumsum(steps, axis=1))

    def _machines(self) -> Floats:
        return self.classes["part"].to_numpy(np.float64) * self.design.machines

    def _daily(self, days: int) -> Floats:
        """Return (functions + 1, K, D) means of machines' factors of each day."""
        shape = np.maximum(self._machines(), 1e-9)[:, None] / self.design.daily**2
        size = (len(self.shares), len(shape), days)
        return np.asarray(self.rng.gamma(np.broadcast_to(shape, size)) / shape)

    def _lasting(self, days: int) -> Floats:
        """Return (functions + 1, K, D) means of machines' lasting factors, some of the machines replaced every day."""
        shape = self._machines() / self.design.lasting**2
        leaves, size = shape * self.design.churn, (len(self.shares), len(shape))
        total = self.rng.gamma(np.broadcast_to(shape, size))
        seen = np.empty((*size, days))
        for day in range(days):
            seen[:, :, day] = total / shape
            total = total * (1.0 - self.rng.beta(leaves, shape - leaves, size)) + self.rng.gamma(
                np.broadcast_to(leaves, size)
            )
        return seen

    def cells(self, counts: Floats) -> tuple[pd.DataFrame, Floats]:
        """Return (C,) distinct tags, and (functions + 1, C, T) counts by them.

        Parameters
        ----------
        counts : of `counts`
        """
        names = ["application", *_VERSIONS, "platform", "datacentre"]
        tags = pd.concat([self.tags(begin) for begin, _ in self.spans], ignore_index=True)[names]
        code = tags.groupby(names, sort=True).ngroup().to_numpy(np.int64).reshape(len(self.spans), -1)
        summed = np.zeros((len(counts), int(code.max()) + 1, self.bins))
        for (begin, end), own in zip(self.spans, code, strict=True):
            for place, cell in enumerate(own.tolist()):
                summed[:, cell, begin:end] += counts[:, place, begin:end]
        first = tags.assign(code=code.ravel()).drop_duplicates("code").sort_values("code")
        return first[names].reset_index(drop=True), summed


def machines_seen(design: Design, bins: int, slots: int = 100) -> Floats:
    """Return (M, T) exposures of machines of which some are replaced every day, for the geometry of windows.

    Parameters
    ----------
    design : of the fleet
    bins : T
    slots : machines of which each stands for as many
    """
    return _machines(design, bins, slots)[1]


def machines_within(design: Design, bins: int, tag: str, value: str, slots: int = 100) -> Floats:
    """Return the same of the machines on a platform or in a data centre, those refreshed while they are there.

    Parameters
    ----------
    design, bins, slots : as of `machines_seen`
    tag, value : platform or datacentre, and its name
    """
    slot, exposure = _machines(design, bins, slots)
    after = np.arange(bins) >= bins // 2
    if tag == "datacentre":
        return exposure[(slot % 5 < 5 * _PLACES["east"]) == (value == "east")]
    edges = np.round(slots * np.cumsum([0.0, *_PLATFORMS.values()]))
    names = np.array(list(_PLATFORMS))[np.searchsorted(edges, slot, side="right") - 1]
    refreshed = {"haswell": ~after, "skylake": after}.get(value, np.zeros(bins, dtype=np.bool_))
    return np.concatenate([exposure[names == value], exposure[names == "refreshed"] * refreshed])


def _machines(design: Design, bins: int, slots: int) -> tuple[Ints, Floats]:
    """Return (M,) the slot in which each machine is, and (M, T) exposures."""
    rows, places = [], []
    replaced = max(1, round(design.churn * slots)) if design.churn else 0
    days = -(-bins // HOURS)
    first = np.zeros(slots, dtype=np.int64)
    for day in range(1, days + 1):
        for slot in range((day - 1) * replaced, day * replaced):
            alive = np.zeros(bins)
            alive[first[slot % slots] * HOURS : day * HOURS] = 1.0
            rows.append(alive)
            places.append(slot % slots)
            first[slot % slots] = day
    for slot in range(slots):
        alive = np.zeros(bins)
        alive[first[slot] * HOURS :] = 1.0
        rows.append(alive)
        places.append(slot)
    return np.array(places, dtype=np.int64), np.array(rows)
