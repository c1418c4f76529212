from dataclasses import replace

import numpy as np
import pytest

from analysis.profiling.metrics import core_seconds
from scenarios.profiling import core_seconds as module
from scenarios.profiling.collectors import frame
from scenarios.profiling.core_seconds import CollectorSeconds, CollectorStudy, judged, many, summary, world_of
from sim.fleet.arms import run_arm
from sim.profiling.collection import Collection
from sim.profiling.setting import ProfileSetting

SMALL = CollectorStudy("profiled_small", 3, ("fleet.machines=16", "population.jobs=20", "population.common_jobs=12"))


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(module, "TOGETHER", 3)


def test_a_collector_among_several_is_right_by_as_much_as_one_that_looks_at_functions(few):
    told = judged(SMALL, 0)["draws"]
    assert [one["seed"] for one in told] == [0, 1, 2]
    setting = ProfileSetting.of(world_of(SMALL)).with_collector(1)
    made, values, monitor = Collection.of(setting), {}, 0.0
    for block in run_arm(setting.day, setting.arm, visits=made.visits):
        taken = made.sampler.take(block, setting.rows)
        visit = np.asarray(taken.processes["visit"])
        for process, count in zip(taken.raw_samples["process"], taken.raw_samples["count"], strict=True):
            values[visit[process]] = values.get(visit[process], 0) + count
        monitor += module.monitor_columns(setting, made, block)["busy_s"].sum()
    visits = frame(made.sampler.visit_columns())
    rates = setting.rates.set_index("platform")
    each = (rates["period"] * rates["duty"]).reindex(visits["platform"]).to_numpy() * visits["weight"]
    cycles = visits[["visit"]].assign(value=visits["visit"].map(values).fillna(0) * each)
    alone = core_seconds(visits, cycles, machine_epochs=16 * setting.world.epochs)
    assert told[1]["error"] == pytest.approx(alone.core_s / monitor - 1, abs=1e-4)
    assert told[1]["standard_error"] == pytest.approx(alone.standard_error / monitor, rel=1e-3)
    assert told[1]["visits"] == alone.answered - (visits["status"] == "down").sum()


def test_what_is_judged_is_kept_and_told_together(few, tmp_path):
    done = []
    found = many(SMALL, tmp_path, lambda what, share: done.append((what, share)))
    assert (found.draws, done[-1]) == (3, ("counting core-seconds", 1.0))
    assert [file.stem for file in tmp_path.glob("core-seconds-profiled_small-*/*.json")] == ["0"]
    assert many(SMALL, tmp_path, lambda what, share: done.append((what, share))) == found
    assert found == summary([CollectorSeconds(**draw) for draw in judged(SMALL, 0)["draws"]])


def test_collectors_together_tell_coverage_bias_and_spread():
    right = CollectorSeconds(0, 9, 0.01, 0.01, half_width=0.02, covered=1, by_platform_error=0.0, by_fleet_error=0.02)
    trial = summary([right, replace(right, error=-0.03, covered=0)])
    assert (trial.coverage, trial.bias) == (0.5, pytest.approx(-0.01))
    assert trial.spread == pytest.approx(np.sqrt(8.0))
    assert summary([right]).spread is None


def test_a_scenario_of_another_kind_is_refused():
    with pytest.raises(ValueError, match="cpu_upgrade: should be of kind profile"):
        world_of(CollectorStudy("cpu_upgrade", 25))
