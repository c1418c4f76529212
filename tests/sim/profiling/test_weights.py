"""Weights of functions in a row: against a slow twin, and under common random numbers."""

from dataclasses import fields

import numpy as np
import pytest

from models.profiling.world import Compiler, Incident
from sim.profiling.functions import ROW_SUMS
from sim.profiling.rows import Rows, by_program
from sim.profiling.weights import row_weights
from tests.helpers.programs_world import DAY_S, WORLD, asked, fleet, slow_weights

DAY, ARM, SOFTWARE, ROWS = fleet()
FIRST = SOFTWARE.programs.names[0]
REVISION = SOFTWARE.builds.revision[SOFTWARE.builds.of_image[SOFTWARE.programs.image_of_program[0], 1]]


def row(rows, number):
    return {field.name: int(getattr(rows, field.name)[number]) for field in fields(Rows)}


def of_program(rows, program, count=400):
    return rows.take(np.flatnonzero(rows.program == program)[:count])


def everywhere_new():
    """One row for each state, build, kernel, platform and data centre of a program, on the last day."""
    grid = np.stack(np.meshgrid(*[np.arange(2)] * 5, indexing="ij")).reshape(5, -1)
    constant = np.ones(grid.shape[1], np.int64)
    return Rows(0 * constant, 3 * constant, grid[0], 3 * constant, grid[1], grid[2], grid[3], grid[4])


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
    calm = Rows(*[np.array(column) for column in ([1] * 4, [0, 0, 1, 1], [0] * 4, [0, 1, 0, 1], *[[0] * 4] * 4)])
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
    log = np.log(row_weights(SOFTWARE, Rows(zero, shards, *[zero] * 6)))
    assert (log - log.mean(axis=1, keepdims=True)).std(axis=0).mean() == pytest.approx(0.35, rel=0.01)
    assert WORLD.profiling.programs.shard_log_sd == 0.35
    assert len(ROW_SUMS) == 5
