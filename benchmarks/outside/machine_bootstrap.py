"""A plain bootstrap of machines: the ratio of sums, machines of each arm drawn again with replacement.

Performance by quota and presence over quota and presence, as in `ratio`; the interval is that of percentiles. Nothing
of the past is used. It needs NumPy alone, and no environment of its own.
"""

import numpy as np

import wsc

RESAMPLES = 1000


class MachineBootstrap:
    """Percentiles of the ratio over resampled machines."""

    name = "machine-bootstrap"

    def estimate(self, experiment):
        rows = experiment.study
        weight = rows["weight"] * rows.get("present_s", 1.0)
        sums = rows.assign(above=weight * rows["value"], below=weight).groupby("machine")[["above", "below"]].sum()
        sums = sums.sort_values(["above", "below"])  # what machines are called decides no draw
        treated = sums.index.isin(rows.loc[rows["treated"], "machine"])
        off, on = sums[~treated].to_numpy(), sums[treated].to_numpy()
        if min(len(off), len(on)) < 2:
            raise wsc.NotEnoughData(2, min(len(off), len(on)), "machines in each arm")
        rng = np.random.default_rng(1)
        (off_above, off_below), (on_above, on_below) = (resampled(arm, rng).T for arm in (off, on))
        changes = on_above / on_below / (off_above / off_below) - 1
        low, high = np.quantile(changes, [(1 - experiment.confidence) / 2, (1 + experiment.confidence) / 2])
        (off_above, off_below), (on_above, on_below) = off.sum(axis=0), on.sum(axis=0)
        change = on_above / on_below / (off_above / off_below) - 1
        return change, min(low, change), max(high, change)


def resampled(sums, rng):
    """Return the sums of so many machines drawn with replacement, again and again."""
    counts = rng.multinomial(len(sums), np.full(len(sums), 1 / len(sums)), RESAMPLES)
    return counts @ sums
