"""What the tables' own column `treated` says of the slots of an experiment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.effects.overlaps import SlotExperiment


@dataclass(frozen=True, slots=True)
class RecordedSlots:
    """Which rows of an experiment's slots tables have as treated, where no other experiment explains it.

    The column does not say whose feature a machine has. So rows of slots that another experiment of the plan treats are
    left out from its first period on.
    """

    treated: Mapping[str, float]
    """Of each treated slot that is left: the share of rows that are treated, from the experiment's first period on and
    not before any is."""
    controls: Mapping[str, float]
    """Of each slot of controls: the share from the experiment's first period on."""
    first: float
    """The first period with a treated row in a treated slot; NaN without one."""
    before: tuple[str, ...]
    """Slots of controls with treated rows before the experiment."""
    untold: tuple[str, ...]
    """Treated slots of which no row of the experiment's periods is left."""

    @property
    def disagreeing(self) -> dict[str, float]:
        """The shares of treated slots without any treated row, and of controls with some, by arm and slot."""
        return {f"treated slot {slot}": share for slot, share in self.treated.items() if not share > 0} | {
            f"control slot {slot}": share for slot, share in self.controls.items() if share > 0
        }

    @property
    def partly(self) -> dict[str, float]:
        """The shares of treated slots that are treated in part."""
        return {slot: share for slot, share in self.treated.items() if 0 < share < 1}


def recorded_slots(experiment: SlotExperiment, others: Sequence[SlotExperiment], table: pd.DataFrame) -> RecordedSlots:
    """Return what tables have as treated in the slots of one experiment.

    Parameters
    ----------
    experiment : as planned
    others : the other experiments of the plan
    table : slot, period, treated

    Examples
    --------
    >>> table = pd.DataFrame({"slot": ["1", "2"] * 2, "period": [0, 0, 1, 1], "treated": [0, 0, 0, 1]})
    >>> recorded_slots(SlotExperiment("a", frozenset("1"), frozenset("2"), 1.0), [], table).disagreeing
    {'treated slot 1': 0.0, 'control slot 2': 1.0}
    """
    own = table.loc[table["slot"].isin(experiment.slots), ["slot", "period"]]
    own = own.assign(treated=table["treated"] == 1)
    explained = np.zeros(len(own), dtype=np.bool_)
    for other in others:
        explained |= (own["slot"].isin(other.treated) & (own["period"] >= other.since)).to_numpy()
    own = own[~explained]
    during, having = own["period"] >= experiment.since, own["slot"].isin(experiment.treated)
    first = float(own.loc[having & own["treated"], "period"].min())
    later = during & ~(own["period"] < first)
    of_treated, of_controls = (
        {str(slot): float(share) for slot, share in own[rows].groupby("slot")["treated"].mean().items()}
        for rows in (having & later, ~having & during)
    )
    before = own.loc[~having & ~during & own["treated"], "slot"]
    untold = sorted(experiment.treated - set(of_treated))
    return RecordedSlots(of_treated, of_controls, first, tuple(sorted(set(before))), tuple(untold))
