"""Experiments that run at the same time on slots of one fleet: which slots they share, and whether they interact."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from analysis.effects.study import Effect, EffectMethod, Study, half_width
from analysis.statistics import NotEnoughDataError, Statistic

Meeting: TypeAlias = Literal["apart", "controls", "crossed", "uneven", "confounded"]
"""How two experiments meet: not at all; in controls alone; each as often in both arms of the other; more often in one
arm; in all of one arm and none of the other."""
_EVEN = 0.02
"""Shares that differ by no more are the same: slots differ by a machine."""


@dataclass(frozen=True, slots=True)
class SlotExperiment:
    """A feature on some slots, beside others without it, from a period on."""

    name: str
    treated: frozenset[str]
    controls: frozenset[str]
    since: float

    @property
    def slots(self) -> frozenset[str]:
        """Both arms."""
        return self.treated | self.controls

    def rows(self, table: pd.DataFrame, among: frozenset[str] | None = None) -> pd.DataFrame:
        """Return the observations of its machines, with `treated` as of this experiment alone.

        Parameters
        ----------
        table : observations of the fleet, with column slot
        among : some of its slots; all if left out
        """
        own = table[table["slot"].isin(self.slots if among is None else self.slots & among)]
        having = own["slot"].isin(self.treated) & (own["period"] >= self.since)
        return own.assign(treated=having.astype(np.int64)).reset_index(drop=True)

    def elsewhere(self, table: pd.DataFrame, others: Sequence["SlotExperiment"] = ()) -> pd.DataFrame | None:
        """Return what machines of no slot of its own did without any feature before it began; None without shards.

        A shard that one of its machines serves now was perhaps served by one of those before. Beside `rows` in a study
        they are part of the past alone, from which covariates come.

        Parameters
        ----------
        table : observations of the fleet, with column slot
        others : the other experiments

        Examples
        --------
        >>> table = pd.DataFrame({"slot": ["1", "2", "3", "3"], "period": [0, 0, 0, 1], "shard": 7, "treated": 0})
        >>> SlotExperiment("a", frozenset("1"), frozenset("2"), 1.0).elsewhere(table)["period"].tolist()
        [0]
        """
        if "shard" not in table:
            return None
        use = ~table["slot"].isin(self.slots) & (table["period"] < self.since) & (table["treated"] == 0)
        for other in others:
            use &= ~(table["slot"].isin(other.treated) & (table["period"] >= other.since))
        return table[use].reset_index(drop=True)


@dataclass(frozen=True, slots=True)
class Overlap:
    """How the second of two experiments stands to the arms of the first, and the first to those of the second."""

    first: str
    second: str
    meeting: Meeting
    second_in_first: tuple[float, float]
    """Share of the first one's machines with its feature, and of its controls, that have the second feature."""
    first_in_second: tuple[float, float]
    """The same of the second."""

    def biases(self, changes: Mapping[str, float]) -> tuple[float, float]:
        """Return by how much each one's change is off by the other's, if effects add up: share times change.

        Examples
        --------
        >>> half = Overlap("a", "b", "uneven", (0.5, 0.0), (1.0, 0.0))
        >>> half.biases({"a": 0.1, "b": 0.02})
        (0.01, 0.1)
        """
        of_first, of_second = self.second_in_first, self.first_in_second
        return (
            (of_first[0] - of_first[1]) * changes[self.second],
            (of_second[0] - of_second[1]) * changes[self.first],
        )


def overlaps(experiments: Sequence[SlotExperiment], machines: Mapping[str, int]) -> list[Overlap]:
    """Return how every two experiments meet.

    Parameters
    ----------
    experiments : at the same time
    machines : of each slot

    Examples
    --------
    >>> size = dict.fromkeys("1234", 10)
    >>> first = SlotExperiment("a", frozenset("12"), frozenset("34"), 0.0)
    >>> crossed = SlotExperiment("b", frozenset("13"), frozenset("24"), 0.0)
    >>> same = SlotExperiment("c", frozenset("12"), frozenset("34"), 0.0)
    >>> [overlap.meeting for overlap in overlaps([first, crossed, same], size)]
    ['crossed', 'confounded', 'crossed']
    """

    def share(of: frozenset[str], having: frozenset[str]) -> float:
        return sum(machines[slot] for slot in of & having) / max(sum(machines[slot] for slot in of), 1)

    pairs = list[Overlap]()
    for first, second in combinations(experiments, 2):
        of_first = share(first.treated, second.treated), share(first.controls, second.treated)
        of_second = share(second.treated, first.treated), share(second.controls, first.treated)
        meeting = _meeting(of_first, of_second, shared=bool(first.controls & second.controls))
        pairs.append(Overlap(first.name, second.name, meeting, of_first, of_second))
    return pairs


def _meeting(of_first: tuple[float, float], of_second: tuple[float, float], *, shared: bool) -> Meeting:
    if not any((*of_first, *of_second)):
        return "controls" if shared else "apart"
    apart = [abs(with_it - without) for with_it, without in (of_first, of_second)]
    if max(apart) <= _EVEN:
        return "crossed"
    return "confounded" if max(apart) >= 1 - _EVEN else "uneven"


def taken_out(table: pd.DataFrame, changes: Sequence[tuple[SlotExperiment, float]]) -> pd.DataFrame:
    """Return observations as if some features had done nothing: values over 1 plus the change of each that acts there.

    A feature that crosses an experiment evenly moves both of its arms alike, but also sets machines of one arm apart,
    so errors from the spread of machines would count what cancels. For the same reason a wrong change moves no
    estimate; but changes that are estimated from the same machines take their noise along, a degree of freedom each.

    Parameters
    ----------
    table : observations of the fleet, with column slot
    changes : experiments, and the relative change that each makes

    Examples
    --------
    >>> table = pd.DataFrame({"slot": ["1", "1", "2"], "period": [0, 1, 1], "value": [2.0, 3.0, 2.0]})
    >>> taken_out(table, [(SlotExperiment("a", frozenset("1"), frozenset("2"), 1.0), 0.5)])["value"].tolist()
    [2.0, 2.0, 2.0]
    """
    factor = np.ones(len(table))
    for experiment, change in changes:
        having = table["slot"].isin(experiment.treated) & (table["period"] >= experiment.since)
        factor[having.to_numpy()] *= 1.0 + change if change > -1.0 else 1.0
    return table.assign(value=table["value"] / factor)


def aliased(pair: tuple[SlotExperiment, SlotExperiment], third: SlotExperiment, machines: Mapping[str, int]) -> bool:
    """Return whether a third feature sets the change of the first apart between machines with and without the second.

    Then it looks as if these two interacted, and their interaction looks like its effect (Box and Hunter 1961).

    Parameters
    ----------
    pair : two experiments that cross
    third : another one
    machines : of each slot

    Examples
    --------
    >>> a, b, c, d = (SlotExperiment("", frozenset(of), frozenset("1234") - frozenset(of), 0) for of in (
    ...     "12", "13", "14", "1234"))
    >>> aliased((a, b), c, dict.fromkeys("1234", 10)), aliased((a, b), d, dict.fromkeys("1234", 10))
    (True, False)
    """
    first, second = pair

    def share(of: frozenset[str]) -> float:
        return sum(machines[slot] for slot in of & third.treated) / max(sum(machines[slot] for slot in of), 1)

    apart = [
        share(first.treated & among) - share(first.controls & among)
        for among in (second.treated, first.slots - second.treated)
    ]
    return abs(apart[0] - apart[1]) > _EVEN


def interaction(
    table: pd.DataFrame,
    pair: tuple[SlotExperiment, SlotExperiment],
    jobs: pd.DataFrame | None,
    estimator: EffectMethod,
    confidence: float = 0.95,
) -> Statistic | None:
    """Return by how much more the first feature changes machines that have the second, relative, with its interval.

    Both changes are estimated by themselves, from slots that no other has, so their errors are independent but for what
    jobs have in common. None where one of the four cells has no slot, or too few machines to be estimated.

    Parameters
    ----------
    table : observations of the fleet, with column slot
    pair : two experiments; the second may have begun at any time
    jobs : job, quota of the whole fleet
    estimator : of both changes
    confidence : of the interval
    """
    first, second = pair
    elsewhere, effects = first.elsewhere(table, [second]), list[Effect]()
    for among in (second.treated, first.slots - second.treated):
        if not (first.treated & among and first.controls & among):
            return None
        try:
            study = Study.of(pd.concat([first.rows(table, among), elsewhere], ignore_index=True), jobs)
            effects.append(estimator.estimate(study, confidence))
        except NotEnoughDataError:
            return None
    with_it, without = effects
    ratio = (1.0 + with_it.change) / (1.0 + without.change)
    squares = [(effect.error / (1.0 + effect.change)) ** 2 for effect in effects]
    if not sum(squares) > 0:
        return None
    freedom = sum(squares) ** 2 / sum(
        square**2 / effect.freedom for square, effect in zip(squares, effects, strict=True)
    )
    width = ratio * float(half_width(np.array(math.sqrt(sum(squares))), np.array(freedom), confidence))
    return Statistic(ratio - 1.0, ratio - 1.0 - width, ratio - 1.0 + width)
