"""Events of functions: they sum to the fleet's counters, follow the slow twin, and noise keeps sums and means."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.profiling.world import Compiler, Incident
from sim.profiling.functions import (
    CYCLES,
    INSTRUCTIONS,
    L1_MISSES,
    L2_MISSES,
    LLC_MISSES,
    ROW_SUMS,
    jitter,
    row_weights,
    spread,
    summed,
)
from sim.profiling.rows import CounterRows, by_program
from tests.helpers.programs_world import DAY_S, WORLD, asked, fleet, slow_events, slow_weights

_, _, SOFTWARE, ROWS = fleet()
PROGRAMS = SOFTWARE.programs


@st.composite
def cases(draw):
    """Some rows of a program and any totals, as wide as counters are."""
    program = draw(st.integers(0, PROGRAMS.count - 1))
    count = draw(st.integers(1, 6))
    rows = ROWS.take(np.flatnonzero(ROWS.program == program)[:count])
    number = st.floats(1e3, 1e18)
    totals = np.array([[draw(number) for _ in range(5)] for _ in range(rows.count)])
    totals[:, 4] = totals[:, 0] * draw(st.floats(0.0, 1.0))
    totals[:, 2] *= draw(st.sampled_from([0.0, 1.0]))
    return rows, totals


@given(cases())
def test_functions_sum_to_the_counters(case):
    rows, totals = case
    events = spread(PROGRAMS, rows, row_weights(SOFTWARE, rows), totals)
    sums = events.sum(axis=1)
    assert (events >= 0).all()
    for event, column in ((CYCLES, 0), (INSTRUCTIONS, 1), (LLC_MISSES, 2)):
        assert sums[:, event] == pytest.approx(totals[:, column], rel=1e-9)
    assert (events[..., L1_MISSES] >= events[..., L2_MISSES]).all()
    assert (events[..., L2_MISSES] >= events[..., LLC_MISSES]).all()


@given(cases(), st.integers(0, 10**6))
def test_noise_of_visits_keeps_every_sum_and_no_function_falls_below_nothing(case, visit):
    rows, totals = case
    events = spread(PROGRAMS, rows, row_weights(SOFTWARE, rows), totals)
    now = jitter(PROGRAMS, rows, events, np.arange(rows.count) + visit)
    assert (now >= 0).all()
    assert now.sum(axis=1) == pytest.approx(events.sum(axis=1), rel=1e-9)


def test_events_are_those_of_the_slow_twin():
    rng = np.random.default_rng(8)
    for number in rng.choice(ROWS.count, 8, replace=False):
        one = ROWS.take(np.array([number]))
        totals = np.array([[9e12, 7e12, 3e10, 4e3, 6e12]]) * rng.uniform(0.9, 1.1, 5)
        row = {field.name: int(getattr(one, field.name)[0]) for field in fields(CounterRows)}
        quick = spread(PROGRAMS, one, row_weights(SOFTWARE, one), totals)[0]
        assert quick == pytest.approx(np.array(slow_events(SOFTWARE, row, totals[0])), rel=1e-9)


def test_sums_over_rows_are_sums_of_rows():
    rows = ROWS.take((ROWS.program == 1) & (ROWS.platform == ROWS.platform[ROWS.program == 1][0]))
    totals = np.random.default_rng(3).uniform(1e9, 1e12, (rows.count, 5))
    weights = row_weights(SOFTWARE, rows)
    assert summed(PROGRAMS, rows, weights, totals) == pytest.approx(
        spread(PROGRAMS, rows, weights, totals).sum(axis=0), rel=1e-12
    )


def test_sums_over_platforms_are_refused():
    which = np.array([np.argmax(ROWS.platform), np.argmin(ROWS.platform)])
    with pytest.raises(ValueError, match="rows are on 2 platforms"):
        summed(PROGRAMS, ROWS.take(which), np.ones((2, 1)), np.ones((2, 5)))


def test_without_spread_there_is_no_noise():
    calm = fleet(asked(programs=type(PROGRAMS.how)(visit_log_sd=0.0)))[2].programs
    events = np.ones((1, PROGRAMS.functions(0).size, 6))
    assert jitter(calm, ROWS.take(ROWS.program == 0).take(slice(1)), events, np.array([3])) is events


@pytest.mark.parametrize("sd", [0.15, 2.0])
def test_noise_far_too_wide_leaves_sums_alone(sd):
    wild = fleet(asked(programs=type(PROGRAMS.how)(visit_log_sd=sd)))[2]
    rows = ROWS.take(np.flatnonzero(ROWS.program == 0)[:50])
    events = spread(wild.programs, rows, row_weights(wild, rows), np.full((rows.count, 5), 1e9))
    now = jitter(wild.programs, rows, events, np.arange(rows.count))
    assert (now >= 0).all()
    assert now.sum(axis=1) == pytest.approx(events.sum(axis=1))


@pytest.mark.statistical
def test_events_of_a_visit_share_half_of_the_variance_and_their_own_half_belongs_to_their_names():
    """Of 4,000 visits, correlations of 200 functions: their mean within 0.02 of a half; its error is below 0.001."""
    one = ROWS.take(np.flatnonzero(ROWS.program == 2)[:1])
    rows = one.take(np.zeros(4000, np.int64))
    mean = spread(PROGRAMS, one, row_weights(SOFTWARE, one), np.array([[9e9, 7e9, 3e7, 4.0, 6e9]]))[:, :, 1:2]
    same = np.broadcast_to(mean.repeat(2, axis=2), (4000, mean.shape[1], 2))
    now = jitter(PROGRAMS, rows, same, np.arange(4000), ("cycles", "l1_misses"))
    correlation = [np.corrcoef(now[:, f].T)[0, 1] for f in range(mean.shape[1])]
    assert np.mean(correlation) == pytest.approx(0.5, abs=0.02)
    other = jitter(PROGRAMS, rows, same, np.arange(4000), ("l1_misses", "cycles"))
    # Both events are alike, so that turned names are turned columns, but for how much noise is allowed.
    np.testing.assert_allclose(other[..., ::-1], now, rtol=1e-12)


@pytest.mark.statistical
def test_the_mean_over_visits_is_what_there_is_without_noise():
    """Means of 20,000 visits of 200 functions: one beyond 5.5 standard errors once in 130,000 worlds."""
    one = ROWS.take(np.flatnonzero(ROWS.program == 2)[:1])
    rows = one.take(np.zeros(20_000, np.int64))
    mean = spread(PROGRAMS, one, row_weights(SOFTWARE, one), np.array([[9e9, 7e9, 3e7, 4.0, 6e9]]))
    events = np.broadcast_to(mean[..., :1], (20_000, mean.shape[1], 1))
    now = jitter(PROGRAMS, rows, events, np.arange(20_000), ("cycles",))[..., 0]
    error = now.std(axis=0) / np.sqrt(20_000)
    assert (np.abs(now.mean(axis=0) - mean[0, :, 0]) < 5.5 * error + 1e-9 * mean[0, :, 0]).all()
    relative = now.std(axis=0) / mean[0, :, 0]
    assert np.median(relative) == pytest.approx(0.15, rel=0.1)


DAY, ARM, SOFTWARE, ROWS = fleet()
FIRST = SOFTWARE.programs.names[0]
REVISION = SOFTWARE.builds.revision[SOFTWARE.builds.of_image[SOFTWARE.programs.image_of_program[0], 1]]


def row(rows, number):
    return {field.name: int(getattr(rows, field.name)[number]) for field in fields(CounterRows)}


def of_program(rows, program, count=400):
    return rows.take(np.flatnonzero(rows.program == program)[:count])


def everywhere_new():
    """One row for each state, build, kernel, platform and data centre of a program, on the last day."""
    grid = np.stack(np.meshgrid(*[np.arange(2)] * 5, indexing="ij")).reshape(5, -1)
    constant = np.ones(grid.shape[1], np.int64)
    return CounterRows(0 * constant, 3 * constant, grid[0], 3 * constant, grid[1], grid[2], grid[3], grid[4])


def test_weights_are_those_of_the_slow_twin():
    incident = Incident("deflate_slow", 1.5, 2 * DAY_S, datacentre="west")
    software = fleet(asked(incidents=(incident,)))[2]
    rng = np.random.default_rng(1)
    for number in rng.choice(ROWS.count, 12, replace=False):
        quick = row_weights(software, ROWS.take(np.array([number])))[0]
        assert quick == pytest.approx(slow_weights(software, row(ROWS, number)), rel=1e-12)


def test_each_row_has_the_same_weights_whatever_is_asked_with_it():
    rows = of_program(ROWS, 2)
    together = row_weights(SOFTWARE, rows)
    backwards = row_weights(SOFTWARE, rows.take(slice(None, None, -1)))[::-1]
    alone = row_weights(SOFTWARE, rows.take(np.array([5])))
    assert (backwards == together).all()
    assert (alone[0] == together[5]).all()


def test_weights_sum_to_one_and_none_is_negative():
    for program, which in by_program(ROWS):
        weights = row_weights(SOFTWARE, ROWS.take(which))
        assert weights.shape[1] == SOFTWARE.programs.functions(program).size
        assert (weights >= 0).all()
        assert weights.sum(axis=1) == pytest.approx(np.ones(which.size), abs=1e-12)


def test_rows_of_several_programs_are_refused():
    with pytest.raises(ValueError, match="rows are of 2 programs, must be of one"):
        row_weights(SOFTWARE, ROWS.take(np.array([np.argmax(ROWS.program), np.argmin(ROWS.program)])))


def test_no_rows_have_no_weights():
    assert row_weights(SOFTWARE, ROWS.take(slice(0))).size == 0


@pytest.mark.parametrize(
    ("tag", "value", "field", "number"),
    [
        ("application", FIRST, None, 0),
        ("application", "somebody-else", None, None),
        ("compiler", "clang-17", None, 0),
        ("platform", "broadwell_2698v4", "platform", 1),
        ("datacentre", "west", "datacentre", 1),
        ("revision", REVISION, "build", 1),
    ],
)  # fmt: skip
def test_an_incident_makes_its_function_more_expensive_where_its_tags_match(tag, value, field, number):
    world = asked(incidents=(Incident("malloc", 3.0, **{tag: value}),), compiler=None)
    software, rows = fleet(world)[2], everywhere_new()
    before, after = row_weights(fleet(asked(compiler=None))[2], rows), row_weights(software, rows)
    names = np.array(software.programs.code.name)[software.programs.functions(0)]
    hit = names == "malloc"
    struck = np.full(rows.count, number is not None) if field is None else getattr(rows, field) == number
    odds = (after[:, hit] / (1 - after[:, hit]) / (before[:, hit] / (1 - before[:, hit])))[:, 0]
    assert odds == pytest.approx(np.where(struck, 3.0, 1.0))
    assert (after[~struck] == before[~struck]).all()
    others = after[:, ~hit] / before[:, ~hit]
    assert np.ptp(others, axis=1) == pytest.approx(np.zeros(rows.count), abs=1e-12)


def test_an_incident_starts_at_its_midnight():
    software = fleet(asked(incidents=(Incident("malloc", 2.0, 2 * DAY_S),)))[2]
    rows = of_program(ROWS, 1)
    changed = (row_weights(software, rows) != row_weights(SOFTWARE, rows)).any(axis=1)
    assert (changed == (rows.day >= 2)).all()


def test_incidents_compilers_and_kernels_change_nothing_else():
    """Rows before any of them are the same to the last bit, and so are all traits of programs."""
    changed = asked(
        incidents=(Incident("free", 9.0, 3 * DAY_S),), kernel=None, compiler=Compiler(instructions_factor=0.5)
    )
    _, _, software, rows = fleet(changed)
    assert (rows.state == ROWS.state).all()
    assert (rows.build == ROWS.build).all()
    for name in ("function", "weight", "threads", "core_cpi", "allocation"):
        assert (getattr(software.programs, name) == getattr(SOFTWARE.programs, name)).all()
    for program in (0, 3, 30):
        quiet = np.flatnonzero((ROWS.program == program) & (ROWS.day < 3) & (ROWS.build == 0) & (ROWS.kernel == 0))
        assert (row_weights(software, rows.take(quiet)) == row_weights(SOFTWARE, ROWS.take(quiet))).all()


def test_shards_keep_their_spread_and_days_drift_together():
    calm = CounterRows(*[np.array(column) for column in ([1] * 4, [0, 0, 1, 1], [0] * 4, [0, 1, 0, 1], *[[0] * 4] * 4)])
    log = np.log(row_weights(SOFTWARE, calm))
    shard, day = (log[2] - log[0]) - (log[3] - log[1]), log[1] - log[0]
    assert np.ptp(shard) == pytest.approx(0.0, abs=1e-9)
    drift, spread = np.std(day), np.std(log[2] - log[0])
    assert drift < 0.1 < spread


@pytest.mark.statistical
def test_spreads_are_those_asked_for():
    """Spread of 3,000 shards × 200 functions within 1%: it would be outside once in more than a million worlds."""
    shards = np.arange(3000)
    zero = np.zeros(3000, np.int64)
    log = np.log(row_weights(SOFTWARE, CounterRows(zero, shards, *[zero] * 6)))
    assert (log - log.mean(axis=1, keepdims=True)).std(axis=0).mean() == pytest.approx(0.35, rel=0.01)
    assert WORLD.profiling.programs.shard_log_sd == 0.35
    assert len(ROW_SUMS) == 5
