"""What is known of stays, by hand: who is linked with what, and how busy machines are expected to be."""

import numpy as np
import pandas as pd
import pytest

from analysis.effects import covariates as covariates_module
from analysis.effects.covariates import LOAD, LOAD_BEFORE, LOAD_SQUARE, MACHINE, SHARD, covariates, taken_apart
from analysis.effects.observations import Observations
from analysis.effects.stays import ObservedRows, scale_of

FLEET = pd.DataFrame({"job": ["a", "b"], "scale": [2.0, 10.0]})
PAST = pd.DataFrame(
    {
        "period": 0,
        "job": ["a", "a", "b"],
        "machine": [1, 2, 1],
        "instance": [7, 8, 9],
        "shard": [0, 1, 0],
        "weight": [1.0, 1.0, 4.0],
        "value": [2.4, 1.8, 9.0],
    }
)
NOW = pd.DataFrame(
    {
        "period": 1,
        "job": ["a", "a", "a", "b"],
        "machine": [1, 3, 3, 2],
        "instance": [7, 18, 19, 20],
        "shard": [0, 1, 2, 3],
        "weight": [1.0, 1.0, 1.0, 4.0],
        "value": 1.0,
    }
)


def made(now=NOW, past=PAST, **how):
    before, study = numbered_together(past, now)
    return covariates(before, study, scale_of(FLEET, study.jobs), **how)


def numbered_together(*tables):
    return ObservedRows.of(*(Observations.of(table.assign(treated=0)) for table in tables))


def penalised(deviation, presence, unit, machine):
    """Parts of units and machines by one least-squares fit with their priors as extra rows."""
    columns = np.hstack([np.eye(unit.max() + 1)[unit], np.eye(machine.max() + 1)[machine]])
    prior = np.repeat([0.05, 1.0], [unit.max() + 1, machine.max() + 1])
    fitted = np.linalg.solve(
        columns.T @ (presence[:, None] * columns) + np.diag(prior), columns.T @ (presence * deviation)
    )
    return fitted[: unit.max() + 1], fitted[unit.max() + 1 :]


def test_an_instance_that_moved_is_linked_by_its_shard_and_a_new_one_with_nothing():
    found = made(load=False)
    deviation = np.array([0.2, -0.1, -0.1])
    unit, machine = penalised(deviation, np.ones(3), np.array([0, 1, 2]), np.array([0, 1, 0]))
    assert found[:, SHARD].tolist() == pytest.approx([unit[0], unit[1], 0.0, 0.0], abs=1e-4)
    assert found[:, MACHINE].tolist() == pytest.approx([machine[0], 0.0, 0.0, machine[1]], abs=1e-4)


def test_a_short_past_tells_less():
    past, now = PAST.assign(present_s=[100.0, 20.0, 50.0]), NOW.assign(present_s=100.0)
    found = made(now=now, past=past, load=False)
    presence = np.array([1.0, 0.2, 0.5])
    unit, machine = penalised(np.array([0.2, -0.1, -0.1]), presence, np.array([0, 1, 2]), np.array([0, 1, 0]))
    assert found[:, SHARD].tolist() == pytest.approx([unit[0], unit[1], 0.0, 0.0], abs=1e-4)
    assert found[:, MACHINE].tolist() == pytest.approx([machine[0], 0.0, 0.0, machine[1]], abs=1e-4)


def test_by_its_own_past_alone_one_that_moved_is_new():
    found = made(link="own", load=False)
    assert found[0, SHARD] > 0.1
    assert found[1:, SHARD].tolist() == [0.0] * 3


def test_links_may_be_left_out():
    assert made(link="none").shape == (4, 0)
    assert made(past=PAST.iloc[:0]).shape == (4, 0)


def test_parts_are_those_of_a_penalised_fit():
    rng = np.random.default_rng(1)
    unit, machine = np.repeat(np.arange(15), 4), rng.integers(0, 10, 60)
    machine[:10] = np.arange(10)
    deviation, presence = 0.1 * rng.standard_normal(60), rng.uniform(0.2, 1.0, 60)
    found, expected = (
        taken_apart(deviation, presence, unit, machine, None),
        penalised(deviation, presence, unit, machine),
    )
    assert found.unit == pytest.approx(expected[0], abs=1e-4)
    assert found.machine == pytest.approx(expected[1], abs=1e-4)


def test_load_is_what_residents_may_use_over_the_mean():
    """Quotas: machine 1 holds 1, machine 3 holds 2, machine 2 holds 4; seen by instances 1, 2, 2, 4."""
    now, past = (table.drop(columns="shard") for table in (NOW, PAST))
    found = made(now, past)
    mean = (1 + 2 + 2 + 4) / 4
    assert found[:, LOAD].tolist() == pytest.approx([1 / mean - 1, 2 / mean - 1, 2 / mean - 1, 4 / mean - 1])
    assert found[:, LOAD_SQUARE] == pytest.approx(found[:, LOAD] ** 2)
    before = (5 + 1 + 5) / 3
    assert found[:, LOAD_BEFORE].tolist() == pytest.approx([5 / before - 1, 0.0, 0.0, 1 / before - 1])


def test_load_is_what_residents_used_where_that_is_known():
    """Job a used 0.5 CPUs, b 2: machines then held 2.5 and 0.5."""
    past = PAST.drop(columns="shard").assign(cpu_s=[50.0, 50.0, 200.0], present_s=100.0)
    now = NOW.drop(columns="shard").assign(cpu_s=1.0, present_s=100.0)
    found = made(now, past)
    mean = (0.5 + 1 + 1 + 2) / 4
    assert found[:, LOAD].tolist() == pytest.approx([0.5 / mean - 1, 1 / mean - 1, 1 / mean - 1, 2 / mean - 1])


def test_load_follows_shards_and_a_new_shard_is_like_its_job():
    past = PAST.assign(cpu_s=[20.0, 80.0, 200.0], present_s=100.0)
    now = NOW.assign(cpu_s=1.0, present_s=100.0)
    found = made(now, past)
    busy = np.array([0.2, 0.8 + 0.5, 0.8 + 0.5, 2.0])
    assert found[:, LOAD] == pytest.approx(busy / busy.mean() - 1)


def test_nothing_of_the_study_but_who_is_where_matters():
    other = NOW.assign(value=[5.0, 6.0, 7.0, 8.0])
    np.testing.assert_array_equal(made(), made(other))


@pytest.mark.parametrize("counted", [False, True])
def test_loads_are_those_of_rows_one_by_one(counted):
    """Rates of shards, or else of their jobs, summed over a machine's rows of a period, each row by itself."""
    rng = np.random.default_rng(6)
    count = 80
    table = pd.DataFrame(
        {
            "period": rng.integers(0, 4, count),
            "job": rng.choice(["a", "b", "c"], count),
            "machine": rng.integers(0, 5, count),
            "shard": rng.integers(0, 6, count),
            "weight": rng.uniform(1, 3, count),
            "value": 1.0,
        }
    ).drop_duplicates(["period", "job", "machine", "shard"], ignore_index=True)
    if counted:
        table = table.assign(present_s=rng.uniform(10, 99, len(table)), cpu_s=rng.uniform(1, 9, len(table)))
    past, study = (table[side].reset_index(drop=True) for side in (table["period"] < 2, table["period"] >= 2))
    there = study.drop_duplicates(["job", "machine", "shard"], ignore_index=True)
    _, loads = covariates_module._loads(*numbered_together(past, study), "shard")

    def present(row):
        return row.get("present_s", 1.0)

    def rate(rows):
        return sum(row.get("cpu_s", row["weight"]) for row in rows) / sum(map(present, rows)) if rows else None

    def used(row):
        own = [other for other in before if other["job"] == row["job"]]
        of_shards = [
            rate([other for other in own if other["shard"] == shard]) for shard in {other["shard"] for other in own}
        ]
        exact = rate([other for other in own if other["shard"] == row["shard"]])
        return exact if exact is not None else sum(of_shards) / len(of_shards)

    before, now = past.to_dict("records"), study.to_dict("records")
    busy = [
        sum(
            used(other) * present(other)
            for other in now
            if (other["machine"], other["period"]) == (row["machine"], row["period"])
        )
        for row in now
    ]
    mean = sum(load * present(row) for load, row in zip(busy, now, strict=True)) / sum(map(present, now))
    for stay, found in zip(there.to_dict("records"), loads, strict=True):
        same = [
            at for at, row in enumerate(now) if all(row[name] == stay[name] for name in ("job", "machine", "shard"))
        ]
        load = sum((busy[at] / mean - 1.0) * present(now[at]) for at in same) / sum(present(now[at]) for at in same)
        assert found == pytest.approx(load, rel=1e-9, abs=1e-12)
