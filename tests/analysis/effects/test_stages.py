"""Staged roll-outs from potential outcomes: each draw says what `staged` says of the table that would be seen."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.effects.cells import NEVER, Stages
from analysis.effects.estimators.staged import Staged
from analysis.effects.stages import rolled_out, stage_rows, sums_of
from analysis.effects.study import Study
from models.randomness import stream
from tests.helpers.effect_studies import small_study
from tests.helpers.readable_staged import staged

STARTS = (3, 4, 6)
JOBS = 7


def courses(seed, machines=40, presence=True):
    """A past of three days and a study of six without and with the feature; instances come and go."""
    rng = stream(seed, "courses")
    count = machines * 6
    machine, job = rng.integers(machines, size=count), rng.integers(JOBS, size=count)
    shard = np.arange(count)
    own = (1.0 + job) * np.exp(0.05 * rng.standard_normal(machines))[machine] * np.exp(0.1 * rng.standard_normal(count))
    rows = []
    for day in range(9):
        there = rng.random(count) < 0.9
        value = own * (1.0 + 0.02 * day * (job - 3) / 10) * np.exp(0.02 * rng.standard_normal(count))
        table = pd.DataFrame({"period": day, "job": job, "machine": machine, "shard": shard, "instance": shard})
        table = table.assign(weight=1.0 + job, value=value, treated=False, change=1.0 + 0.02 + 0.01 * (job - 3))
        if presence:
            table = table.assign(present_s=rng.uniform(2e4, 8e4, count), cpu_s=rng.uniform(1e3, 1e4, count))
        rows.append(table[there])
    whole = pd.concat(rows, ignore_index=True)
    before, off = (whole[arm].reset_index(drop=True) for arm in (whole["period"] < 3, whole["period"] >= 3))
    on = off.assign(value=off["value"] * off["change"], treated=True)
    return before.drop(columns="change"), off.drop(columns="change"), on.drop(columns="change")


def by_stage(off, on, since):
    """The table that is seen, one row per stay and stage, with loops."""
    rows, groups = [], {}
    without, with_it = off.to_dict("records"), on.to_dict("records")
    stage = np.searchsorted(STARTS, off["period"], side="right") - 1
    for place, (row, at) in enumerate(zip(without, stage.tolist(), strict=True)):
        groups.setdefault((*(row[name] for name in ("job", "machine", "shard", "instance")), at), []).append(place)
    for (*_, at), places in groups.items():
        having = at >= since[without[places[0]]["machine"]]
        part = [(with_it if having else without)[place] for place in places]
        row = part[0] | {"period": STARTS[at], "treated": having}
        row["value"] = float(
            np.average([each["value"] for each in part], weights=[each.get("cpu_s", 1.0) for each in part])
        )
        for name in {"present_s", "cpu_s"} & {*row}:
            row[name] = sum(each[name] for each in part)
        rows.append(row)
    return pd.DataFrame(rows).sort_values("period", kind="stable")


@pytest.mark.parametrize("presence", [True, False])
def test_each_draw_says_what_staged_says_of_the_table_that_is_seen(presence):
    before, off, on = courses(1, presence=presence)
    quota = pd.DataFrame({"job": range(JOBS), "quota": [30.0, 20, 10, 5, 3, 2, 1]})
    scale = before.groupby("job")["value"].mean().to_numpy()
    sums, machines = sums_of(stage_rows(before, off, on, STARTS), quota.assign(scale=scale))
    rng = stream(2, "roll-outs")
    since = np.stack([rolled_out(len(machines), sizes, rng) for sizes in ([2, 5, 10], [4, 10, 20], [1, 2, 3])])
    found = Staged(since).many(Machines(len(machines), Stages(sums)), since < NEVER)
    for place, draw in enumerate(since):
        seen = pd.concat([before, by_stage(off, on, dict(zip(machines, draw, strict=True)))], ignore_index=True)
        told = staged(seen, quota)
        assert found.change[place] == pytest.approx(told.change, rel=1e-9)
        assert found.error[place] == pytest.approx(told.error, rel=1e-8)
        assert found.freedom[place] == pytest.approx(told.freedom, rel=1e-8)
        one = Staged().estimate(Study.of(seen, quota, staged=True))
        for name in ("change", "error", "freedom", "low", "high", "quota_coverage"):
            assert getattr(one, name) == pytest.approx(getattr(told, name), rel=1e-8)
        assert (one.machines, one.controls, one.jobs, one.notes) == (
            told.machines,
            told.controls,
            told.jobs,
            told.notes,
        )


class Machines:
    """All of the cells that is looked at."""

    def __init__(self, count, stages):
        self.machines, self.stages = range(count), stages


@pytest.mark.statistical
def test_a_roll_out_has_the_sizes_asked_for_and_stages_by_chance():
    """Each of 8 machines takes part in 200 ± 10 draws and is first in 50 ± 6.6; 16 bounds of 3 deviations: 2%."""
    rng = stream(3, "roll-outs")
    since = np.stack([rolled_out(8, [1, 3, 4], rng) for _ in range(400)])
    assert {tuple(np.bincount(draw.clip(max=3), minlength=4)) for draw in since} == {(1, 2, 1, 4)}
    assert ((since < NEVER).mean(axis=0) > 0.425).all()
    assert ((since == 0).mean(axis=0) > 0.075).all()


def test_other_machines_than_those_that_were_drawn_are_refused():
    since, study = np.full((1, 12), NEVER), small_study()
    with pytest.raises(ValueError, match="stages are known of other machines than the 6 with the feature"):
        Staged(since).estimate(replace(study, cells=replace(study.cells, stages=Stages(None))))


def test_courses_of_other_rows_are_refused():
    before, off, on = courses(4)
    with pytest.raises(ValueError, match="the same stays and periods row by row"):
        stage_rows(before, off, on.iloc[::-1], STARTS)
