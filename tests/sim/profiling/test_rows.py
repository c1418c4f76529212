"""Counter rows as programs see them: who, where, in which state and build; against the fleet's own account."""

from dataclasses import replace

import numpy as np
import pytest

from sim.profiling.rows import by_program, state_of
from tests.helpers.programs_world import DAY_S, DAYS, WORLD, asked, fleet, slow_state

DAY, ARM, SOFTWARE, ROWS = fleet()
STAY = np.repeat(DAY.order, np.diff(DAY.row_start))
MACHINE = DAY.timeline.machine[STAY]


def test_every_counter_row_is_a_day_of_its_residence():
    assert ROWS.count == DAY.row_window.size
    assert set(np.unique(ROWS.day)) == set(range(DAYS))
    assert (ROWS.program == DAY.timeline.job[STAY]).all()
    assert (DAY.timeline.start_s[STAY] < (ROWS.day + 1) * DAY_S).all()


def test_platform_kernel_and_build_are_those_of_the_midnight():
    now_s = ROWS.day * DAY_S
    names = np.array(SOFTWARE.places.platforms)[ROWS.platform]
    before = np.array(DAY.machines.platform_names)[DAY.machines.platform[MACHINE]]
    upgraded = (DAY.timeline.feature_from_s[MACHINE] <= now_s) & (before == "haswell_2698v3")
    assert (names == np.where(upgraded, "skylake_6148", before)).all()
    assert 0 < upgraded.sum() < upgraded.size
    assert (ROWS.kernel == (SOFTWARE.places.kernel_from_s[MACHINE] <= now_s)).all()
    assert (ROWS.build == (ARM.stay_from[STAY] * WORLD.epoch_s <= now_s)).all()
    assert (ROWS.datacentre == SOFTWARE.places.datacentre[MACHINE]).all()


def test_states_are_those_of_the_slow_twin():
    sure = replace(WORLD.profiling.programs, state_change_per_day=0.4, states=3, two_state_share=1.0)
    _, _, software, rows = fleet(asked(programs=sure))
    for i in np.random.default_rng(2).choice(rows.count, 60, replace=False):
        assert rows.state[i] == slow_state(software.programs, rows.program[i], rows.shard[i], int(rows.day[i]))
    assert set(np.unique(rows.state)) == {0, 1, 2}


def test_programs_with_one_state_are_in_it():
    assert (ROWS.state[SOFTWARE.programs.states[ROWS.program] == 1] == 0).all()


@pytest.mark.statistical
def test_states_change_as_often_as_asked():
    """20,000 shards over a day: the share is outside of five standard errors once in 1.7 million worlds."""
    program = np.full(20_000, int(np.argmax(SOFTWARE.programs.states)))
    shard = np.arange(20_000)
    first, then = (state_of(SOFTWARE.programs, program, shard, np.full(20_000, day)) for day in (8, 9))
    assert abs((first != then).mean() - 0.02) < 5 * np.sqrt(0.02 * 0.98 / 20_000)
    assert abs(first.mean() - 0.5) < 5 * np.sqrt(0.25 / 20_000)


def test_rows_are_grouped_in_their_order():
    groups = dict(by_program(ROWS))
    assert sorted(np.concatenate(list(groups.values())).tolist()) == list(range(ROWS.count))
    assert all((np.diff(which) > 0).all() for which in groups.values())
    assert all((ROWS.program[which] == program).all() for program, which in groups.items())
    assert list(by_program(ROWS.take(slice(0)))) == []
