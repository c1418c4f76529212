"""Ways to choose the machines of an experiment, each with the estimator that knows how they were chosen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.effects import cover
from analysis.effects.cells import NEVER, JobMachineSums
from analysis.effects.cube import balancing_variables, selections
from analysis.effects.estimators import paired
from analysis.effects.estimators import stratified as strata
from analysis.effects.estimators.balanced import Balanced, imbalance
from analysis.effects.estimators.staged import Staged
from analysis.effects.exposure import Exposure, WholeDomains
from analysis.effects.stages import rolled_out
from analysis.effects.study import EffectMethod
from models.arrays import Bools, Floats, Ints

Arrange = Callable[[int, int, np.random.Generator], tuple[EffectMethod, Bools]]
"""From machines, draws and where they come from to the estimator and the treated machines, (R, M)."""

IMBALANCES = 100
"""Selections from which it is learnt what a balanced design leaves."""
LEAST_OF_STRATUM = 4
LEAST_BALANCED = 8
LEAST_AT_ONCE = 2
"""Machines that a roll-out begins with."""
SHARES = (1 / 6, 1 / 2, 1.0)
"""Of a staged roll-out's machines, how many have the feature from each stage on."""
HEAVYWEIGHTS = 5
"""Jobs with most quota that are balanced, or covered."""
LEAST_DOMAINS = 2
"""Domains of each saturation."""
NEED = 2
"""Instances of each covered job that a test cluster holds at least."""
_ROUGHLY = 0.05
"""Bundles of machines may be larger than asked for by this share."""


@dataclass(frozen=True, slots=True, eq=False)
class Arrangement:
    """How machines are chosen, and for which numbers of machines that works."""

    arrange: Arrange
    fits: Callable[[int], bool]
    """Whether so many machines can be chosen that way."""


def at_random(estimator: EffectMethod, machines: int) -> Arrangement:
    """Return simple random selection: every choice of machines is equally likely.

    Parameters
    ----------
    estimator : that is used
    machines : M, of the fleet

    Examples
    --------
    >>> from analysis.effects.methods import method
    >>> at_random(method("ratio"), 12).arrange(3, 2, np.random.default_rng(1))[1].sum(axis=1)
    array([3, 3])
    """

    def arrange(number: int, draws: int, rng: np.random.Generator) -> tuple[EffectMethod, Bools]:
        return estimator, drawn(machines, number, draws, rng)

    return Arrangement(arrange, lambda number: 2 <= number <= machines // 2)


def drawn(machines: int, number: int, draws: int, rng: np.random.Generator) -> Bools:
    """Draw machines at random, (R, M).

    Parameters
    ----------
    machines : M, of the fleet
    number : to draw
    draws : R
    rng : where the draws come from

    Examples
    --------
    >>> drawn(5, 2, 3, np.random.default_rng(1)).sum(axis=1)
    array([2, 2, 2])
    """
    treated = np.zeros((draws, machines), dtype=np.bool_)
    for draw in treated:
        draw[rng.permutation(machines)[:number]] = True
    return treated


def saturated(cells: JobMachineSums, saturations: Sequence[float]) -> Arrangement:
    """Return two-stage selection: domains are drawn to saturations, and as large a share of each one's machines.

    Each saturation above the least gets as many domains, the least one gets the rest (Hudgens and Halloran 2008).

    Parameters
    ----------
    cells : of M machines, whose `rack` says which domain they are of
    saturations : 0..1, unlike, two at least

    Examples
    --------
    >>> rows = pd.DataFrame({"job": "a", "machine": range(12), "quota": 1.0, "off": 1.0, "on": 1.0})
    >>> jobs = pd.DataFrame({"job": ["a"], "quota": [1.0], "scale": [1.0]})
    >>> from analysis.effects.cells import cells as sums
    >>> of_three = saturated(sums(rows, jobs, racks=pd.Series(np.arange(12) // 3)), [0.0, 1.0])
    >>> of_three.fits(6), of_three.arrange(6, 1, np.random.default_rng(1))[1].reshape(4, 3).sum(axis=1)
    (True, array([3, 3, 0, 0]))
    """
    least, *others = sorted(set(saturations))
    domain = cells.rack
    size = np.bincount(domain)
    estimator: EffectMethod = WholeDomains() if {0.0, 1.0} <= {*saturations} else Exposure()

    def drawn_to(number: int) -> int:
        """Return how many domains get each saturation above the least, for so many machines with the feature."""
        more = sum(share - least for share in others) * float(size.mean())
        return round((number - least * len(domain)) / more)

    def draw(number: int, rng: np.random.Generator) -> Bools:
        of_domain = np.full(len(size), float(least))
        order = rng.permutation(len(size))
        for place, share in enumerate(others):
            of_domain[order[place * drawn_to(number) : (place + 1) * drawn_to(number)]] = share
        machines = rng.permutation(len(domain))
        machines = machines[np.argsort(domain[machines], kind="stable")]
        rank = np.arange(len(domain)) - np.repeat(np.cumsum(size) - size, size)
        treated = np.zeros(len(domain), dtype=np.bool_)
        treated[machines] = rank + 0.5 < (of_domain * size)[domain[machines]]
        return treated

    def arrange(number: int, draws: int, rng: np.random.Generator) -> tuple[EffectMethod, Bools]:
        return estimator, np.stack([draw(number, rng) for _ in range(draws)])

    def fits(number: int) -> bool:
        domains = drawn_to(number)
        return domains >= LEAST_DOMAINS and len(size) - domains * len(others) >= LEAST_DOMAINS

    return Arrangement(arrange, fits)


def stratified(cells: JobMachineSums, before: pd.DataFrame) -> Arrangement:
    """Return random selection within platforms, of each as many as is best (`strata`).

    Parameters
    ----------
    cells : of M machines
    before : observations before the study, with column platform
    """
    known = strata.strata(before).set_index("machine").reindex(cells.machines)
    known["stratum"] = known["stratum"].fillna(known["stratum"].mode().iloc[0]).astype(np.int64)
    stratum = known["stratum"].to_numpy(dtype=np.int64)
    size = np.bincount(stratum)
    deviation = known.groupby("stratum")["deviation"].first().reindex(range(len(size))).fillna(0.0).to_numpy(np.float64)

    def arrange(number: int, draws: int, rng: np.random.Generator) -> tuple[EffectMethod, Bools]:
        take = strata.allocate(size, deviation, number, LEAST_OF_STRATUM)
        return strata.Stratified(stratum), np.stack([strata.draw(stratum, take, rng) for _ in range(draws)])

    enough = size.min() > 2 * LEAST_OF_STRATUM
    least = LEAST_OF_STRATUM * len(size)
    return Arrangement(arrange, lambda number: bool(enough) and least <= number <= len(stratum) // 2)


def balanced(cells: JobMachineSums, before: pd.DataFrame, heavyweights: int = HEAVYWEIGHTS) -> Arrangement:
    """Return selection by the cube method on what was known of machines before (`balance`).

    Parameters
    ----------
    cells : of M machines
    before : observations before the study
    heavyweights : jobs with most quota that are balanced
    """
    aux = _known(cells, before, heavyweights)

    def arrange(number: int, draws: int, rng: np.random.Generator) -> tuple[EffectMethod, Bools]:
        chance = np.full(len(aux), number / len(aux))
        left = imbalance(aux, selections(aux, chance, IMBALANCES, rng))
        return Balanced(aux, left), selections(aux, chance, draws, rng)

    return Arrangement(arrange, lambda number: LEAST_BALANCED <= number <= len(aux) // 2)


def covering(
    estimator: EffectMethod, cells: JobMachineSums, before: pd.DataFrame, jobs: int = HEAVYWEIGHTS, need: int = NEED
) -> Arrangement:
    """Return random bundles of machines that hold enough of each top job, all equally likely (`cover`).

    Parameters
    ----------
    estimator : that is used; its error is on the safe side
    cells : of M machines
    before : observations before the study
    jobs : how many of the jobs with most quota
    need : instances of each, at least
    """
    holders = cover.holdings(before[before["period"] == before["period"].max()], jobs).set_index("machine")
    instances = holders.reindex(cells.machines).fillna(0).to_numpy(dtype=np.int64)
    wanted = np.full(instances.shape[1], need, dtype=np.int64)
    machines = len(instances)
    least = cover.fewest_machines(instances, wanted)

    def arrange(number: int, draws: int, rng: np.random.Generator) -> tuple[EffectMethod, Bools]:
        return estimator, np.stack([cover.covering(instances, wanted, number, rng) for _ in range(draws)])

    def fits(number: int) -> bool:
        return least <= number <= machines // 2 and machines / (machines // number) <= (1 + _ROUGHLY) * number

    return Arrangement(arrange, fits)


def pairing(cells: JobMachineSums, before: pd.DataFrame) -> Arrangement:
    """Return pairs of machines alike in the past, of the same platform, one of each by a coin (`paired`).

    Parameters
    ----------
    cells : of M machines
    before : observations before the study, perhaps with column platform
    """
    stratum: Ints | None = None
    if "platform" in before:
        platform = before.groupby("machine")["platform"].first().reindex(cells.machines)
        stratum = pd.factorize(platform)[0].astype(np.int64)
    pairs = paired.matched(_performance(cells), stratum)
    machines = len(cells.machines)

    def arrange(number: int, draws: int, rng: np.random.Generator) -> tuple[EffectMethod, Bools]:
        treated = np.stack([paired.tossed(pairs, number, machines, rng) for _ in range(draws)])
        return paired.Paired(pairs), treated

    return Arrangement(arrange, lambda number: paired.FEWEST <= number <= len(pairs))


def staged(machines: int, shares: Sequence[float] = SHARES) -> Arrangement:
    """Return roll-outs to growing shares of the machines, drawn at random (`estimators.staged`).

    Parameters
    ----------
    machines : M, of the fleet
    shares : of those that have the feature in the end, those that have it from each stage on; ascending up to 1
    """

    def sizes(number: int) -> list[int]:
        return [round(share * number) for share in shares]

    def arrange(number: int, draws: int, rng: np.random.Generator) -> tuple[EffectMethod, Bools]:
        since = np.stack([rolled_out(machines, sizes(number), rng) for _ in range(draws)])
        return Staged(since), since < NEVER

    return Arrangement(arrange, lambda number: sizes(number)[0] >= LEAST_AT_ONCE and number <= machines // 2)


def _known(cells: JobMachineSums, before: pd.DataFrame, heavyweights: int) -> Floats:
    """Return the balancing variables of the cells' machines, 0 where nothing is known."""
    known = balancing_variables(before, heavyweights).set_index("machine")
    return known.reindex(cells.machines).fillna(0.0).to_numpy(dtype=np.float64)


def _performance(cells: JobMachineSums) -> Floats:
    """Return by how much each machine's past was above what its quota let expect of this fleet; (M, 1)."""
    value, quota = cells.before.T
    level = value.sum() / quota.sum() if quota.sum() > 0 else 0.0
    above: Floats = value - level * quota
    return above[:, None]
