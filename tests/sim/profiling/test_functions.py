"""Events of functions: they sum to the fleet's counters, follow the slow twin, and noise keeps sums and means."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.profiling.functions import (
    CYCLES,
    INSTRUCTIONS,
    L1_MISSES,
    L2_MISSES,
    LLC_MISSES,
    jitter,
    spread,
    summed,
)
from sim.profiling.rows import Rows
from sim.profiling.weights import row_weights
from tests.helpers.programs_world import asked, fleet, slow_events

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
        row = {field.name: int(getattr(one, field.name)[0]) for field in fields(Rows)}
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
