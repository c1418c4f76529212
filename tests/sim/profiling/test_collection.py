from dataclasses import replace

import numpy as np
import pytest

from sim.fleet.arms import run_arm
from sim.profiling.collection import Collection, cycles_of_visits
from sim.profiling.setting import ProfileSetting
from tests.helpers.profiled_fleets import small_fleet


def counting(*events):
    asked = small_fleet().profiling
    collector = replace(asked.collector, events=events, stacks_per_s=0.0)
    return replace(small_fleet(), profiling=replace(asked, collector=collector))


def test_visits_count_the_cycles_that_the_sampler_finds_function_by_function():
    setting = ProfileSetting.of(counting("cycles"))
    made = Collection.of(setting)
    for block in run_arm(setting.day, setting.arm, visits=made.visits):
        taken = made.sampler.take(block, setting.rows)
        visit = np.asarray(taken.processes["visit"])[np.asarray(taken.raw_samples["process"])]
        count = np.bincount(visit, np.asarray(taken.raw_samples["count"]))
        found = cycles_of_visits(setting, made, block).set_index("visit").sort_index()
        columns = made.sampler.visit_columns()
        rates = setting.rates.set_index("platform").query("collection == 'fleet' and event == 'cycles'")
        each = (rates["period"] * rates["duty"])[columns["platform"].to_pylist()].to_numpy()
        expected = (count * each[: len(count)] * columns["weight"][: len(count)])[found.index]
        assert (expected > 0).sum() > 40
        np.testing.assert_allclose(found["value"], expected, rtol=1e-12)
        np.testing.assert_array_equal(found["frequency_hz"], columns["frequency_hz"][found.index])


def test_a_collector_that_counts_other_events_too_is_refused():
    setting = ProfileSetting.of(counting("cycles", "instructions"))
    made = Collection.of(setting)
    block = next(run_arm(setting.day, setting.arm, visits=made.visits))
    with pytest.raises(ValueError, match="only event, got cycles, instructions"):
        cycles_of_visits(setting, made, block)
