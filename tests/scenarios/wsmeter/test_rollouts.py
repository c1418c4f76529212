"""Really rolled-out test clusters against composed ones: equal where nothing couples machines, else different."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.statistics import NotEnoughDataError
from models.fleet.world import Interference
from scenarios.wsmeter.loop import observe
from scenarios.wsmeter.rollouts import OnAdded, OnInstances, OnMachines, OnPacked, compare, moved
from sim.fleet.arms import everywhere, on_machines
from sim.fleet.day import prepare
from sim.fleet.testclusters import packed
from tests.helpers.rollout_worlds import CODE, MACHINES, NO_CAPS, NO_CONDITIONS, NO_INTERFERENCE, TIGHT, same, twins


def drawn(design, of, draws=3, seed=0):
    return list(design.draw(of, np.random.default_rng(seed), draws))


def test_without_shared_power_a_roll_out_is_what_is_composed_to_the_last_bit():
    pairs = drawn(OnMachines(5), twins(MACHINES))
    assert all(same(real, composed) for real, composed in pairs)
    assert not same(pairs[0][0], pairs[1][0])


def test_machines_that_share_a_power_budget_feel_whether_their_neighbours_have_the_feature():
    ((real, composed),) = drawn(OnMachines(5), twins(TIGHT, "ips"), draws=1)
    assert set(real["residence"]) == set(composed["residence"])
    assert not same(real, composed)


def test_the_feature_is_there_and_nowhere_else():
    of = twins(MACHINES)
    ((real, _),) = drawn(OnMachines(5), of, draws=1)
    there = real["machine"].unique()
    arm = observe(of.day, on_machines(of.day, there), "ipc")
    changed = arm.merge(of.without, on="residence", suffixes=("", "_without")).query("value != value_without")
    assert set(changed["machine"]) == set(there)
    assert len(there) == 5


def test_clusters_of_one_fleet_share_no_machine():
    clusters = [set(real["machine"]) for real, _ in drawn(OnMachines(20), twins(MACHINES), draws=4)]
    assert len(set.union(*clusters)) == 80


def test_more_clusters_than_machines_are_refused():
    with pytest.raises(NotEnoughDataError, match=r"^100 machines are needed, 80 given$"):
        drawn(OnMachines(20), twins(MACHINES), draws=5)


@pytest.mark.parametrize("world", [MACHINES, TIGHT], ids=["apart", "sharing power"])
def test_new_machines_that_are_like_the_old_ones_change_nothing(world):
    of = twins(replace(world, conditions=NO_CONDITIONS))
    for (migrated, _), (stayed, _) in zip(drawn(OnAdded(10), of), drawn(OnMachines(10), of), strict=True):
        assert same(migrated.drop(columns="rack"), stayed.drop(columns="rack"))


def test_new_machines_stand_in_racks_of_their_own_and_have_conditions_of_their_own():
    of = twins(MACHINES)
    pairs = drawn(OnAdded(10), of)
    racks = [set(real["rack"]) for real, _ in pairs]
    assert racks == [{8}, {9}, {10}]
    assert not any(same(real.drop(columns="rack"), composed.drop(columns="rack")) for real, composed in pairs)
    assert all(set(real["residence"]) == set(composed["residence"]) for real, composed in pairs)


def test_packed_clusters_hold_the_planned_instances_and_nothing_else():
    of, design = twins(MACHINES), OnPacked(margin=0.05, top_jobs=15)
    planned = of.allocation(0.05, 15).set_index("job")["instances"]
    assert planned.between(4, 40).all()
    for real, composed in drawn(design, of):
        for table in (real, composed):
            assert table["job"].value_counts().sort_index().to_dict() == planned.to_dict()
        quota = real.groupby("machine")["weight"].sum()
        assert quota.max() <= 64
        assert quota.sum() > 64 * (len(quota) - 1.5)


@pytest.mark.statistical
def test_packing_is_unbiased_where_co_runners_share_nothing():
    """False-alarm rate 1e-4: a two-sided t test of the mean difference over 20 packed clusters of one fleet."""
    quiet = replace(MACHINES, interference=NO_INTERFERENCE, power=NO_CAPS)
    drawn = compare(twins(quiet), OnPacked(0.05, 15), 20, "test")
    made = stats.ttest_1samp(drawn["real"] - drawn["composed"], 0.0)
    assert made.pvalue > 1e-4
    assert (made.confidence_interval(0.9999).high - made.confidence_interval(0.9999).low) / 2 < 0.05


def by_shard(of, table):
    """Performance of a table's stays by job and shard."""
    timeline = of.day.timeline
    shard = timeline.shard[table["residence"]]
    return table.assign(shard=shard).set_index(["job", "shard"])["value"].sort_index()


@pytest.mark.parametrize(("interference", "power"), [(NO_INTERFERENCE, NO_CAPS), (Interference(), NO_CAPS)])
def test_packing_changes_instances_only_by_what_co_runners_share(interference, power):
    behaviour = replace(MACHINES.population.behaviour, instance_log_sd=0.0, job_log_sd=0.0)
    world = replace(MACHINES, conditions=NO_CONDITIONS, interference=interference, power=power)
    of = twins(replace(world, population=replace(world.population, behaviour=behaviour)))
    rows = of.chosen(np.random.default_rng(0), of.allocation(0.05, 15))
    day = moved(packed(of.day, rows["instance"].to_numpy()), 1)
    real = by_shard(replace(of, day=day), observe(day, everywhere(day), "ipc"))
    apart = (real / by_shard(of, of.composed(rows)) - 1).abs()
    if interference == NO_INTERFERENCE:
        assert apart.max() < 1e-12
    else:
        assert apart.min() > 0
        assert apart.median() > 0.005


def test_only_the_chosen_instances_run_new_code():
    of = twins(CODE, "requests_per_s")
    assert of.jobs["job"].map(dict(enumerate(of.day.jobs.names))).tolist() == ["shop"]
    ((real, composed),) = drawn(OnInstances(0.05), of, draws=1)
    assert len(real) == of.allocation(0.05, 200)["instances"].item()
    assert set(real["residence"]) == set(composed["residence"])
    gain = real.set_index("residence")["value"] / of.without.set_index("residence")["value"]
    assert gain.dropna().min() > 1.05


def test_chosen_instances_differ_from_composed_ones_by_their_neighbours_alone():
    world = replace(CODE, interference=NO_INTERFERENCE, power=NO_CAPS)
    ((real, composed),) = drawn(OnInstances(0.05), twins(world), draws=1)
    assert same(real, composed)
    ((real, composed),) = drawn(OnInstances(0.05), twins(CODE), draws=1)
    assert not same(real, composed)


def test_a_comparison_says_what_both_clusters_estimate_and_what_is_true():
    of = twins(MACHINES)
    made = compare(of, OnMachines(10), 3, "test")
    assert made["real"].tolist() == made["composed"].tolist()
    assert made["margin"].tolist() == made["composed_margin"].tolist()
    assert made["machines"].tolist() == [10, 10, 10]
    mean = [table.groupby("job")["value"].mean() for table in (of.without, of.having)]
    weight = of.jobs.set_index("job")["quota"][mean[0].index]
    assert made["truth"].tolist() == pytest.approx([(weight @ mean[1]) / (weight @ mean[0]) - 1] * 3)


def test_the_reference_is_the_change_of_just_the_covered_jobs():
    of = twins(MACHINES)
    pairs = drawn(OnMachines(4), of, draws=1)

    class Again:
        def draw(self, *_):
            return iter(pairs)

    made = compare(of, Again(), 1, "test")
    count = pairs[0][0]["job"].value_counts()
    jobs = of.jobs[of.jobs["job"].isin(count.index[count >= 4])]
    assert made["reference"].item() == pytest.approx(replace(of, jobs=jobs).change())
    assert made["quota_coverage"].item() == pytest.approx(jobs["quota"].sum() / of.jobs["quota"].sum())
    assert made["reference"].item() != made["truth"].item()


def test_the_same_name_draws_the_same_clusters_and_another_name_others():
    of = twins(MACHINES)
    one, two, other = (compare(of, OnMachines(5), 2, name) for name in ("a", "a", "b"))
    pd.testing.assert_frame_equal(one, two)
    assert one["real"].tolist() != other["real"].tolist()


def test_a_day_moved_to_other_machines_keeps_who_runs_beside_whom():
    of = twins(MACHINES)
    day = packed(of.day, np.arange(200))
    days = [moved(day, number) for number in (0, 1, 1)]
    for name in ("job", "shard", "machine", "start_epoch", "end_epoch"):
        assert all((getattr(one.timeline, name) == getattr(day.timeline, name)).all() for one in days)
    assert sorted(days[1].timeline.instance) == sorted(day.timeline.instance)
    assert not set(days[0].machines.rack) & set(days[1].machines.rack)
    assert not np.isin(days[0].machines.latency_factor, days[1].machines.latency_factor).any()
    assert (days[1].machines.latency_factor == days[2].machines.latency_factor).all()
    assert (days[0].timeline.instance != days[1].timeline.instance).any()


def test_a_day_moved_to_other_machines_leaves_new_code_with_its_instances():
    day = prepare(CODE)
    before, after = day.timeline, moved(day, 2).timeline
    by_stay = [each.instance_feature_from_s[each.instance] for each in (before, after)]
    np.testing.assert_array_equal(*by_stay)
    assert np.isnan(by_stay[0]).any()
    assert not np.isnan(by_stay[0]).all()
