"""The truth: all blocks together are the fleet's counters, however they come; and what roll-outs do to it."""

import numpy as np
import pandas as pd
import pytest

from sim.fleet.arms import Visits, run_arm
from sim.profiling.builds import software_factors
from sim.profiling.functions import ROW_SUMS
from sim.profiling.truth import ProfileTruth
from tests.helpers.programs_world import fleet

DAY, ARM, SOFTWARE, ROWS = fleet()
NOBODY = np.zeros(0, np.int64)
TOTALS = np.concatenate(
    [
        block.rows
        for block in run_arm(
            DAY, ARM, visits=Visits(NOBODY, NOBODY, software_factors(SOFTWARE.programs, SOFTWARE.builds, DAY.jobs))
        )
    ]
)


def frame(columns):
    return pd.DataFrame(
        {name: column if isinstance(column, np.ndarray) else column.to_pylist() for name, column in columns.items()}
    )


@pytest.fixture(scope="module")
def truth():
    made = ProfileTruth(SOFTWARE)
    made.add(ROWS, TOTALS[:, ROW_SUMS])
    return made


def test_functions_sum_to_the_counters_of_every_job(truth):
    table = frame(truth.functions())
    job = {name: number for number, name in enumerate(DAY.jobs.names)}
    number = table["application"].map(job).to_numpy()
    for event, column in (("cycles", 0), ("instructions", 1), ("llc_misses", 2)):
        found = np.bincount(number, table[event], len(job))
        assert found == pytest.approx(np.bincount(ROWS.program, TOTALS[:, column], len(job)), rel=1e-9)


def test_cycles_per_instruction_are_those_of_the_counters(truth):
    table = frame(truth.cpi()).set_index(["application", "platform"])
    names = np.array(SOFTWARE.places.platforms)
    for program, platform in {(int(a), int(b)) for a, b in zip(ROWS.program, ROWS.platform, strict=True)}:
        rows = TOTALS[(ROWS.program == program) & (ROWS.platform == platform)].sum(axis=0)
        found = table.loc[(DAY.jobs.names[program], names[platform])]
        assert found["cycles"] / found["instructions"] == pytest.approx(rows[0] / rows[1], rel=1e-9)


def test_blocks_may_come_in_parts(truth):
    parts = ProfileTruth(SOFTWARE)
    half = ROWS.count // 2
    for part in (slice(half), slice(half, None)):
        parts.add(ROWS.take(part), TOTALS[part][:, ROW_SUMS])
    assert parts.sums.keys() == truth.sums.keys()
    for group, sums in truth.sums.items():
        np.testing.assert_allclose(parts.sums[group], sums, rtol=1e-12)


def test_small_chunks_change_no_answer(truth, monkeypatch):
    monkeypatch.setattr("sim.profiling.truth.CHUNK", 5000)
    some = ROWS.program < 4
    small = ProfileTruth(SOFTWARE)
    small.add(ROWS.take(some), TOTALS[some][:, ROW_SUMS])
    assert len(small.sums) > 8
    for group, sums in small.sums.items():
        np.testing.assert_allclose(sums, truth.sums[group], rtol=1e-12)


def test_rows_of_the_table_are_builds_and_functions_of_their_program(truth):
    table, builds = frame(truth.functions()), SOFTWARE.builds
    image = np.array(SOFTWARE.programs.images)[builds.image[table["build"]]]
    assert (image == table["application"]).all()
    keys = ["application", "datacentre", "platform", "build", "image", "function"]
    assert not table.duplicated(keys).any()


def test_rows_are_by_the_build_that_ran(truth):
    """Cycles of each job under its old and its new build are those of the counter rows of either."""
    table, builds, programs = frame(truth.functions()), SOFTWARE.builds, SOFTWARE.programs
    both = 0
    for program, name in enumerate(programs.names):
        old, new = builds.of_image[programs.image_of_program[program]]
        mine = table[table["application"] == name]
        told = [mine["cycles"][mine["build"] == build].sum() for build in (old, new)]
        rows = [TOTALS[(ROWS.program == program) & (ROWS.build == build), 0].sum() for build in (0, 1)]
        both += min(rows) > 0
        if old != new:
            assert told == pytest.approx(rows, rel=1e-9)
        else:
            assert told[0] == pytest.approx(sum(rows), rel=1e-9)
            assert rows[1] == 0
    assert both > 10


def test_an_empty_truth_is_an_empty_table():
    empty = ProfileTruth(SOFTWARE)
    assert all(len(column) == 0 for column in (*empty.functions().values(), *empty.cpi().values()))


def test_libz_is_near_a_twentieth_of_all_cycles(truth):
    table = frame(truth.functions())
    total, of_libz = table["cycles"].sum(), table[table["image"] == "libz"]
    assert 0.03 < of_libz["cycles"].sum() / total < 0.07
    each = of_libz.groupby("application")["cycles"].sum() / table.groupby("application")["cycles"].sum()
    assert (each > 0.2).mean() < 0.05
    assert of_libz["function"].nunique() == 12
