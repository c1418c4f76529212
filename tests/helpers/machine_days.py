"""Counts of functions on machines, day by day, drawn machine by machine: what the noise of a healthy fleet is.

A function has a factor on each machine that lasts, and another on each machine and day, both of gamma laws; some of the
machines are replaced every day. A Poisson count with a gamma factor is negative binomial; small ones are drawn by the
inverse of their distribution.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from analysis.profiling.changes.spread import Spread
from models.arrays import Floats, Ints
from models.code.compiled import njit
from tests.helpers.watched_fleets import HOURS, Design

_SMALL = 10.0
"""Mean count up to which the distribution is inverted."""


@dataclass(frozen=True, slots=True, eq=False)
class MachineDays:
    """Sums over the machines of a fleet, of F functions on D days, and every count of a few functions."""

    totals: Floats
    """(F, D) samples."""
    squares: Floats
    """(F, D) sums of squared counts."""
    largest: Floats
    """(F,) largest count of a machine on a day."""
    every: Ints
    """(few, D, M) counts of machines."""

    @classmethod
    def drawn(cls, rng: np.random.Generator, mean: Floats, design: Design, few: Ints) -> Self:
        """Draw a fleet.

        Parameters
        ----------
        rng : generator
        mean : (F, D) mean count of a machine on a day
        design : machines, their spread and their churn
        few : functions whose counts are all returned
        """
        functions, days = mean.shape
        place = np.full(functions, -1)
        place[few] = np.arange(len(few))
        every = np.zeros((len(few), days, design.machines), dtype=np.int64)
        sums = np.zeros((2, functions, days))
        largest = np.zeros(functions)
        replaced = round(design.churn * design.machines)
        law = (1.0 / design.lasting**2, 1.0 / design.daily**2, replaced)
        _draw(rng, mean, law, (place, every), (sums[0], sums[1], largest))
        return cls(sums[0], sums[1], largest, every)

    def spread(self, design: Design, load: Floats) -> Spread:
        """Return the sums by which the watch measures machines' spread, each machine seen once a day.

        All machines have as many samples of everything, n of M on a day, so that sums over them are M n, M n² and M n³.

        Parameters
        ----------
        design : machines and their samples
        load : (D,) part of `Design.samples_a_day` of each day, times 24
        """
        machines, size = design.machines, design.samples_a_day * load / HOURS
        mean = self.totals / machines
        away = self.squares - machines * mean**2
        alone = mean * (1.0 - mean / size) * (machines - 1.0)
        square, squares = (away - alone).sum(axis=1), machines * (mean**2).sum(axis=1)
        pairs = (mean**2).sum(axis=1) * (machines - 1.0)
        return Spread(square, pairs, self.totals.sum(axis=1), squares, square.copy(), squares.copy(), self.largest)

    def strays(self, few: Ints, design: Design) -> pd.DataFrame:
        """Return pair, machine, stray and mean of the counts of a few functions on each day, as the watch keeps them.

        Parameters
        ----------
        few, design : as of `drawn`
        """
        count, days, machines = self.every.shape
        day, slot = np.arange(days)[:, None], np.arange(machines)[None, :]
        replaced = round(design.churn * design.machines)
        # A slot is another machine after each time that it was replaced.
        times = np.where(day > 0, (day * replaced - slot - 1) // machines + 1, 0) if replaced else np.zeros_like(day)
        machine = np.broadcast_to(slot + machines * np.maximum(times, 0), self.every.shape)
        mean = np.broadcast_to(self.totals[few][:, :, None] / machines, self.every.shape)
        pair = np.broadcast_to(np.arange(count)[:, None, None], self.every.shape)
        columns = {"pair": pair, "machine": machine, "stray": self.every - mean, "mean": mean}
        return pd.DataFrame({name: column.ravel() for name, column in columns.items()})


@njit(nogil=True)
def _count(rng: np.random.Generator, mean: float, shape: float) -> int:
    """Return a negative binomial count: Poisson, its mean times a gamma factor of mean 1."""
    if mean > _SMALL:
        return int(rng.poisson(mean / shape * rng.standard_gamma(shape)))
    chance = rng.random()
    if chance < 1.0 - mean:  # at most the chance of none
        return 0
    probability = np.exp(-shape * np.log1p(mean / shape))
    odds, count, below = mean / (shape + mean), 0, probability
    while chance > below and probability > 0.0:
        probability *= odds * (shape + count) / (count + 1.0)
        count += 1
        below += probability
    return count


@njit(nogil=True)
def _draw(
    rng: np.random.Generator,
    mean: Floats,
    law: tuple[float, float, int],
    few: tuple[Ints, Ints],
    sums: tuple[Floats, Floats, Floats],
) -> None:
    """Add counts to sums; `law` has shapes and machines replaced a day, `few` where counts of some are written."""
    place, every = few
    totals, squares, largest = sums
    lasting, daily, replaced = law
    machines = every.shape[2]
    stays = np.empty(machines)
    for function in range(len(mean)):
        for machine in range(machines):
            stays[machine] = rng.standard_gamma(lasting) / lasting
        for day in range(mean.shape[1]):
            for machine in range((day - 1) * replaced, day * replaced):
                stays[machine % machines] = rng.standard_gamma(lasting) / lasting
            for machine in range(machines):
                count = _count(rng, mean[function, day] * stays[machine], daily)
                totals[function, day] += count
                squares[function, day] += count**2
                largest[function] = max(largest[function], count)
                if place[function] >= 0:
                    every[place[function], day, machine] = count
