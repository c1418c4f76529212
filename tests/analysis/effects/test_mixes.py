"""What arms differ by their mixes of platforms and clusters alone: that of plain arithmetic, none of even slots."""

import numpy as np
import pandas as pd
import pytest

from analysis.effects.mixes import mix_difference
from analysis.effects.slots import cut
from analysis.effects.strata import StratifiedFleet


def fleet(machines=200):
    """Return a fleet of one job on each machine; new machines are 10% faster, in four clusters of their own shares."""
    number = np.arange(machines)
    platform = np.where(number % 10 < 2 + number % 4, "new", "old")
    row = {"period": 0, "job": "a", "machine": number, "weight": 1.0, "platform": platform, "cluster": number % 4}
    return StratifiedFleet.of(pd.DataFrame(row).assign(value=np.where(platform == "new", 1.1, 1.0)))


def test_even_slots_have_no_skew():
    machines = fleet()
    done = cut(machines, 4)
    mix = mix_difference(machines, done.slot == 0, done.slot == 1, (1, 1))
    assert not mix.uneven
    assert abs(mix.skew) < 0.1 / 50


def test_the_skew_is_the_difference_of_the_means_of_arms_that_differ_by_their_mix_alone():
    machines = fleet()
    new = np.array(["new" in name for name in machines.strata])[machines.stratum]
    rng = np.random.default_rng(1)
    treated = np.zeros(200, dtype=np.bool_)
    treated[np.concatenate([rng.permutation(np.flatnonzero(new))[:40], rng.permutation(np.flatnonzero(~new))[:30]])] = 1
    mix = mix_difference(machines, treated, ~treated, (1, 1))
    value = np.where(new, 1.1, 1.0)
    assert mix.uneven
    assert mix.skew == pytest.approx(value[treated].mean() / value[~treated].mean() - 1)
    assert (np.diff(mix.strata["skew"].abs()) <= 0).all()
