"""A fleet cut into slots, equivalent subsets of its machines any two of which can be compared, and kept up to date."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from analysis.effects.even_counts import even, least_moved
from analysis.effects.strata import UNASSIGNED, StratifiedFleet
from models.arrays import Bools, Floats, Ints
from models.errors import InputError

MOST_MOVED = 0.02
"""Share of the machines that may move to mend a former cut, unless counts require more."""
CLOSE = 0.5
"""Spread of slots, in that of slots drawn at random, up to which a former cut needs no mending."""
_CANDIDATES = 400
"""Machines that are tried in an exchange, on each side."""
_VAIN = 3
"""Times that each slot is tried in vain before the exchange ends."""
_SWEEPS = 3
"""Times that every round of dealing is dealt again, given all others."""


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """Which machine is in which slot, and what it took."""

    machines: StratifiedFleet
    slots: int
    slot: Ints
    """(M,) 0 to N - 1."""
    former: Ints
    """(M,) slot before; `UNASSIGNED` of a machine that had none."""
    fewest: int
    """Machines that any cut as even moves at least, proven."""

    @property
    def moved(self) -> int:
        """Machines that had a slot and now have another one."""
        return int(((self.former != UNASSIGNED) & (self.former != self.slot)).sum())

    @property
    def newcomers(self) -> int:
        """Machines that had no slot before."""
        return int((self.former == UNASSIGNED).sum())

    def uneven(self) -> dict[str, tuple[int, int]]:
        """Return by how much counts of slots differ at most, and by how much they must: by arithmetic 0 or 1.

        Of machines, by platform, by cluster, and by both together; the worst of each kind.
        """
        counts = self.machines.counts(self.slot, self.slots)
        kinds = {"machines": np.zeros(counts.shape[1], dtype=np.int64)}
        several = {name: getattr(self.machines, name) for name in ("platform", "cluster")}
        kinds |= {f"machines by {name}": of for name, of in several.items() if len(np.unique(of)) > 1}
        if len(kinds) == 3:
            kinds["machines by platform and cluster"] = np.arange(counts.shape[1])
        return {name: _unevenness(counts, of) for name, of in kinds.items()}

    def imbalance(self) -> pd.DataFrame:
        """Return how far slots are apart in what they are balanced by.

        Returns
        -------
        pd.DataFrame
            variable, spread (standard deviation over slots of their means, less those of strata), random (what it
            would be of slots drawn at random within strata; Cochran 1977, section 5.3), both relative to the fleet's
            mean; of past performance, which is relative, as they are.
        """
        of, counts = self.machines.stratum, self.machines.counts(self.slot, self.slots)
        size, total = counts.sum(axis=1), counts.sum(axis=0)
        draws = (counts * (1 - counts / total) / size[:, None] ** 2).sum(axis=0) / self.slots
        fleet = np.abs(self.machines.levels.mean(axis=0))
        rows = []
        for place, name in enumerate(self.machines.variables):
            level, varies = self.machines.levels[:, place], self.machines.scaled[:, place].any()
            within = varies * (level - _means(of, level)[of])
            apart = np.bincount(self.slot, within, self.slots) / size
            variance = np.bincount(of, within**2) / np.maximum(total - 1, 1)
            per = 1.0 if name == "past performance" else max(float(fleet[place]), 1e-300)
            rows.append((name, float(np.sqrt((apart**2).mean())) / per, float(np.sqrt(draws @ variance)) / per))
        return pd.DataFrame(rows, columns=["variable", "spread", "random"])


def cut(
    machines: StratifiedFleet, slots: int, seed: int = 1, former: Ints | None = None, most_moved: float = MOST_MOVED
) -> Cut:
    """Cut a fleet into slots that are alike, or mend a former cut with the fewest moves.

    Counts come first: of each platform in each cluster, of each platform, of each cluster and in all, every slot gets
    the fleet's share, rounded down or up. Such a table exists for any fleet: slot by slot, shares of what is left are a
    two-way table whose controlled rounding is a flow in a network (Cox 1987), which is whole. Within a platform and
    cluster machines are then dealt in rounds, one to each slot, of machines alike in past performance, so that sums of
    quota, load, past performance and the heaviest jobs' quotas stay close: each round is an assignment of least cost
    given all others. Labels of slots are drawn at random, so each machine is as likely in one as in another.

    Parameters
    ----------
    machines : M of them
    slots : N, at most M
    seed : of ties and labels
    former : (M,) slot before, `UNASSIGNED` for machines that had none; as many machines keep it as counts allow. Where
        slots are then still further apart than `CLOSE` in anything that they are balanced by, machines of a platform
        and cluster change places
    most_moved : share of the machines that may move for the sake of balance, those that counts require among them

    Raises
    ------
    InputError
        If there are fewer machines than slots.

    Examples
    --------
    >>> rows = {"period": 0, "job": "a", "machine": range(6), "weight": 1.0, "value": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5]}
    >>> three = cut(StratifiedFleet.of(pd.DataFrame(rows)), 3)
    >>> np.bincount(three.slot).tolist(), three.uneven()
    ([2, 2, 2], {'machines': (0, 0)})
    """
    if not 1 <= slots <= len(machines.names):
        raise InputError(f"between 1 and {len(machines.names):,} slots can be cut of so many machines, got {slots}")
    rng = np.random.default_rng((seed, slots))
    before = np.full(len(machines.names), UNASSIGNED) if former is None else former
    if former is None:
        counts, fewest, slot = even(machines, slots, rng), 0, before.copy()
    else:
        holds = machines.counts(before, slots)
        counts, fewest = least_moved(machines, holds, rng)
        slot = _released(machines, before.copy(), holds - counts, rng)
    _deal(machines, slot, counts, rng)
    if former is None:
        slot = rng.permutation(slots)[slot]
    else:
        had = before != UNASSIGNED
        moved = int((had & (slot != before)).sum())
        _exchange(machines, slot, slots, int(most_moved * len(slot) - moved) // 2, rng)
    return Cut(machines, slots, slot, before, fewest)


def _released(machines: StratifiedFleet, slot: Ints, surplus: Ints, rng: np.random.Generator) -> Ints:
    """Return slots without the machines that their slot has too many of; those go whose going balances it best."""
    scaled, slots = machines.scaled, len(surplus)
    sums = _sums(slot, scaled, slots)
    for number, stratum in zip(*np.nonzero(surplus > 0), strict=True):
        members = rng.permutation(np.flatnonzero((slot == number) & (machines.stratum == stratum)))
        for _ in range(surplus[number, stratum]):
            rest = sums[number] - scaled[members]
            gone = int((rest**2).sum(axis=1).argmin())
            sums[number] = rest[gone]
            slot[members[gone]] = UNASSIGNED
            members = np.delete(members, gone)
    return slot


def _deal(machines: StratifiedFleet, slot: Ints, counts: Ints, rng: np.random.Generator) -> None:
    """Give every machine without a slot one, so that each slot has `counts` (N, S) and sums are close."""
    scaled, slots = machines.scaled, len(counts)
    free, sums = slot == UNASSIGNED, _sums(slot, scaled, slots)
    rounds = list(_rounds(machines, free, counts - machines.counts(slot, slots), rng))
    for sweep in range(_SWEEPS):
        for place in rng.permutation(len(rounds)):
            members, takers = rounds[place]
            if sweep:
                np.subtract.at(sums, slot[members], scaled[members])
            rows, columns = linear_sum_assignment(scaled[members] @ sums[takers].T)
            slot[members[rows]] = takers[columns]
            sums[takers[columns]] += scaled[members[rows]]


def _exchange(machines: StratifiedFleet, slot: Ints, slots: int, most: int, rng: np.random.Generator) -> None:
    """Let machines of a stratum exchange slots, `most` times at most, until slots are `CLOSE`.

    The slot that is furthest off is first, then others at random; of a sample of exchanges that is done which lowers
    the sum of squares most.
    """
    scaled, vain = machines.scaled, 0
    sums = _sums(slot, scaled, slots)
    members = [np.flatnonzero(machines.stratum == stratum) for stratum in range(len(machines.strata))]
    far = CLOSE**2 * len(slot) * (1 - 1 / slots)
    while most > 0 and vain < _VAIN * slots and (sums**2).sum(axis=0).max(initial=0.0) > far:
        first = int(rng.integers(slots)) if vain else int((sums**2).sum(axis=1).argmax())
        alike = rng.permutation(members[machines.stratum[rng.choice(np.flatnonzero(slot == first))]])
        own, others = (alike[(slot[alike] == first) == inside][:_CANDIDATES] for inside in (True, False))
        cost = _costs_of_exchange(scaled[own], scaled[others], sums[first], sums[slot[others]])
        if cost.min(initial=0.0) >= 0.0:
            vain += 1
            continue
        row, column = np.unravel_index(int(cost.argmin()), cost.shape)
        leaves, comes = own[row], others[column]
        sums[first] += scaled[comes] - scaled[leaves]
        sums[slot[comes]] -= scaled[comes] - scaled[leaves]
        slot[leaves], slot[comes] = slot[comes], slot[leaves]
        most, vain = most - 1, 0


def _costs_of_exchange(own: Floats, others: Floats, sums: Floats, of_others: Floats) -> Floats:
    """Return by how much exchanges change the sum of squares of slots' sums, (A, B).

    Parameters
    ----------
    own, others : (A, p), (B, p) numbers of the machines of one slot, and of machines of others
    sums, of_others : (p,), (B, p) sums of these slots
    """
    of_own = 2 * ((own**2).sum(axis=1) - own @ sums)
    of_other = 2 * ((others**2).sum(axis=1) + (others * (sums - of_others)).sum(axis=1))
    cost: Floats = of_own[:, None] + of_other + own @ (2 * of_others - 4 * others).T
    return cost


def _rounds(
    machines: StratifiedFleet, free: Bools, lacking: Ints, rng: np.random.Generator
) -> Iterator[tuple[Ints, Ints]]:
    """Yield rounds of dealing: machines, and as many slots to take one each.

    Rounds in which every slot takes one are of machines next to each other in past performance; the others' machines
    are drawn from the whole stratum before.
    """
    by = machines.variables.index("past performance")
    for stratum in range(len(machines.strata)):
        members = rng.permutation(np.flatnonzero(free & (machines.stratum == stratum)))
        lacks = lacking[:, stratum]
        whole = int(lacks.min())
        partial = len(members) - whole * len(lacks)
        drawn, rest = members[:partial], members[partial:]
        rest = rest[np.argsort(machines.levels[rest, by], kind="stable")]
        for first in range(0, len(rest), len(lacks)):
            yield rest[first : first + len(lacks)], np.arange(len(lacks))
        at = 0
        for number in range(whole, int(lacks.max())):
            takers = np.flatnonzero(lacks > number)
            yield drawn[at : at + len(takers)], takers
            at += len(takers)


def _unevenness(counts: Ints, of: Ints) -> tuple[int, int]:
    """Return the largest difference of slots' counts, (N, S), summed by group, and the least possible one."""
    sums = np.stack([np.bincount(of, row) for row in counts]).astype(np.int64)
    return int(np.ptp(sums, axis=0).max()), int((sums.sum(axis=0) % len(counts) > 0).max())


def _sums(slot: Ints, scaled: Floats, slots: int) -> Floats:
    """Return the sums of each slot's machines, (N, p)."""
    sums = np.zeros((slots, scaled.shape[1]))
    np.add.at(sums, slot[slot != UNASSIGNED], scaled[slot != UNASSIGNED])
    return sums


def _means(of: Ints, values: Floats) -> Floats:
    return np.asarray(np.bincount(of, values) / np.bincount(of))
