"""Ways to choose machines: sizes that fit, selections that keep their promise, estimators that know of it."""

import numpy as np
import pandas as pd
import pytest

from analysis.effects import arrangements
from analysis.effects.cells import NEVER
from analysis.effects.methods import method
from analysis.effects.study import potential
from models.randomness import stream

MACHINES, JOBS = 80, 6


def fleet():
    """The past and the cells of a fleet on two platforms, the faster one by 30%."""
    rng = stream(1, "arrangements")
    machine = np.concatenate([np.arange(MACHINES), rng.integers(MACHINES, size=3 * MACHINES)])
    job = rng.integers(JOBS, size=len(machine))
    platform = (np.arange(MACHINES) % 4 == 0).astype(int)
    own = (1.0 + 0.3 * platform)[machine] * np.exp(0.05 * rng.standard_normal(len(machine)))
    row = {"job": job, "machine": machine, "weight": 1.0 + job, "treated": 0, "instance": np.arange(len(machine))}
    past, off = (pd.DataFrame(row | {"period": day, "value": own * (1.0 + 0.01 * day)}) for day in (0, 1))
    cells = potential(past, off, off.assign(value=1.05 * off["value"]))
    return past.assign(platform=platform[past["machine"]]), cells, platform


@pytest.fixture(scope="module")
def known():
    return fleet()


def test_random_draws_have_their_number(known):
    made = arrangements.at_random(method("ratio"), len(known[1].machines))
    used, treated = made.arrange(20, 7, stream(2, "draws"))
    assert used.name == "ratio"
    assert treated.shape == (7, MACHINES)
    assert set(treated.sum(axis=1)) == {20}
    assert [made.fits(number) for number in (1, 2, 40, 41)] == [False, True, True, False]


def test_each_platform_has_the_same_machines_in_every_draw(known):
    before, cells, platform = known
    made = arrangements.stratified(cells, before)
    used, treated = made.arrange(20, 30, stream(3, "draws"))
    assert len({tuple(np.bincount(platform[draw])) for draw in treated}) == 1
    assert np.abs(used.many(cells, treated).change - 0.05).max() < 0.02
    assert [made.fits(number) for number in (7, 8, 40, 41)] == [False, True, True, False]


def test_balanced_draws_resemble_the_fleet_more_than_random_ones(known):
    before, cells, _ = known
    used, treated = arrangements.balanced(cells, before).arrange(20, 60, stream(4, "draws"))
    loose = arrangements.drawn(MACHINES, 20, 60, stream(4, "draws"))
    load = before.groupby("machine")["weight"].sum().to_numpy()
    assert treated.astype(float) @ load == pytest.approx(np.full(60, load.sum() / 4), rel=0.2)
    assert np.std(treated @ load) < 0.5 * np.std(loose @ load)
    assert np.abs(used.many(cells, treated).change - 0.05).max() < 0.01


def test_covering_draws_hold_enough_of_each_top_job(known):
    before, cells, _ = known
    made = arrangements.covering(method("adjusted"), cells, before, jobs=3, need=2)
    used, treated = made.arrange(16, 20, stream(5, "draws"))
    assert used.name == "adjusted"
    top = before.groupby("job")["weight"].sum().sort_values(ascending=False).index[:3]
    for draw in treated:
        there = before[draw[before["machine"]]]
        assert (there.groupby("job").size().reindex(top) >= 2).all()
    assert set(treated.sum(axis=1)) == {16}
    assert not made.fits(30)


def test_pairs_are_of_one_platform_and_one_of_each_has_the_feature(known):
    before, cells, platform = known
    made = arrangements.pairing(cells, before)
    used, treated = made.arrange(10, 20, stream(6, "draws"))
    assert (platform[used.pairs[:, 0]] == platform[used.pairs[:, 1]]).all()
    assert (treated[:, used.pairs].sum(axis=(1, 2)) == 10).all()
    assert np.isfinite(used.many(cells, treated).change).all()


def test_roll_outs_grow_by_their_shares():
    used, treated = arrangements.staged(12).arrange(6, 9, stream(7, "draws"))
    assert ((used.since < NEVER) == treated).all()
    assert {tuple(np.bincount(draw.clip(max=3), minlength=4)) for draw in used.since} == {(1, 2, 3, 6)}
