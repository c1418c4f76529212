"""Who is profiled when: oracles are counts by hand, brute force over the timeline, and theory of sampling."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from models.fleet.world import Churn, Fleet, Population
from models.profiling.world import Collector, ProfileWorld, Profiling, Watch
from sim.fleet.arms import nowhere
from sim.fleet.day import prepare
from sim.fleet.timeline import KINDS
from sim.profiling.collector import DOWN, FAILED, OK, REFUSED, STATUSES, STOPPED, Gatekeepers, plan_visits, quota_share
from sim.profiling.register import machine_register, place

WORLD = ProfileWorld(
    seed=3,
    horizon_s=86400.0,
    epoch_s=300.0,
    fleet=Fleet(40, {"haswell_2698v3": 0.5, "skylake_6148": 0.5}, machines_per_rack=4, racks_per_power_domain=1),
    population=Population(60, 50),
)
RATES = {"haswell_2698v3": 25.0, "skylake_6148": 25.0}
DAY = prepare(WORLD)


def planned(watches=(), day=DAY, world=WORLD, **collector):
    asked = Collector(
        **{"one_in": 8, "failure_share": 0.0, "stop_failures": 1.0, "watches": tuple(watches), **collector}
    )
    world = replace(world, profiling=Profiling(collector=asked))
    register = machine_register(world, day, nowhere(day), place(world, day.machines))
    names = ("fleet", *(watch.name for watch in world.profiling.collector.watches))
    return plan_visits(world, day, register, dict.fromkeys(names, RATES)), register


def test_weights_are_inverse_inclusion_probabilities_of_machine_and_epoch():
    """Every pair of machine and epoch is visited once in 8 × 12 collectors' draws, to 5 standard errors in the mean."""
    hits, draws = np.zeros((40, 288)), 200
    for seed in range(draws):
        plan, _ = planned(seed=seed)
        assert (plan.weight == 96).all()
        np.add.at(hits, (plan.machine, plan.epoch), 1)
    assert hits.sum() * 96 == pytest.approx(draws * 40 * 288, rel=1e-12)
    error = np.sqrt(draws * (1 / 96) * (95 / 96))
    assert abs(hits.mean(axis=1) - draws / 96).max() < 5 * error / np.sqrt(288)
    assert abs(hits.mean(axis=0) - draws / 96).max() < 5 * error / np.sqrt(40)


def test_weights_of_a_round_estimate_machines_times_epochs_when_one_in_does_not_divide():
    """The mean over 250 collectors of the sum of weights is that of all pairs, within 5 standard errors."""
    totals = [int(planned(seed=seed, one_in=7)[0].weight.sum()) for seed in range(250)]
    assert len(set(totals)) > 1
    assert abs(np.mean(totals) - 40 * 288) < 5 * np.std(totals) / np.sqrt(250)


def test_last_round_that_is_cut_short_has_smaller_weights():
    plan, _ = planned(round_s=36000.0)
    rounds = plan.epoch // 120
    assert set(plan.weight[rounds == 1]) == {8 * 120}
    assert set(plan.weight[rounds == 2]) == {8 * 48}


def test_visits_are_in_order_of_time_and_answered_ones_in_order_of_machines():
    plan, _ = planned([Watch("dense", one_in=2)], failure_share=0.2)
    assert (np.diff(plan.epoch) >= 0).all()
    answered = plan.answered
    assert sorted(answered) == np.flatnonzero(plan.status == OK).tolist()
    pairs = list(zip(plan.machine[answered].tolist(), plan.epoch[answered].tolist(), strict=True))
    assert pairs == sorted(set(pairs))


def test_gatekeeper_refuses_the_second_collection_at_the_same_time():
    plan, _ = planned([Watch("all", one_in=1)], one_in=1, round_s=300.0)
    assert Counter((plan.names[c], STATUSES[s]) for c, s in zip(plan.collection, plan.status, strict=True)) == {
        ("fleet", "ok"): 40 * 288,
        ("all", "refused"): 40 * 288,
    }
    gate = Gatekeepers(3)
    assert [gate.admit(2, 4), gate.admit(2, 4), gate.admit(2, 5), gate.admit(2, 5)] == [True, False, True, False]


def test_a_watch_changes_no_visit_of_the_fleet():
    alone, _ = planned()
    beside, _ = planned([Watch("dense", one_in=2)])
    fleet = beside.collection == 0
    for name in ("machine", "epoch", "weight"):
        assert (getattr(beside, name)[fleet] == getattr(alone, name)).all()


def test_watch_of_a_job_goes_where_the_job_lists_have_it():
    job = DAY.jobs.names[5]
    plan, _ = planned([Watch("one job", job=job, one_in=1)])
    timeline = DAY.timeline
    visits = np.flatnonzero(plan.collection == 1)
    assert visits.size > 100
    for visit in visits:
        runs = (timeline.job == 5) & (timeline.machine == plan.machine[visit])
        runs &= (timeline.start_epoch <= plan.epoch[visit]) & (plan.epoch[visit] < timeline.end_epoch)
        assert runs.any()


def test_quota_share_is_that_of_a_count_by_hand():
    epoch = np.arange(40) * 7
    expected, timeline = np.zeros(40), DAY.timeline
    for i in range(timeline.job.size):
        machine = timeline.machine[i]
        if timeline.job[i] == 2 and timeline.start_epoch[i] <= epoch[machine] < timeline.end_epoch[i]:
            expected[machine] += DAY.jobs.instance_quota_vcpu[2] / DAY.machines.vcpus[machine]
    assert quota_share(DAY, DAY.jobs.names[2], epoch) == pytest.approx(expected)
    assert expected.sum() > 0
    assert quota_share(DAY, "nobody's", epoch).sum() == 0


def test_watch_of_a_platform_or_kernel_keeps_to_it():
    plan, register = planned([Watch("new", platform="skylake_6148", one_in=2), Watch("os", kernel="6.6.30", one_in=2)])
    mine = plan.collection == 1
    assert mine.sum() > 50
    assert set(register.platform_at(plan.machine[mine], plan.epoch[mine])) == {1}
    assert (plan.collection == 2).sum() == 0


def test_watch_with_a_target_stops_when_its_expected_samples_are_there():
    job = DAY.jobs.names[0]
    endless, _ = planned([Watch("heavy", job=job, one_in=1)])
    aimed, _ = planned([Watch("heavy", job=job, one_in=1, target_samples=4000)])
    visits = np.flatnonzero((aimed.collection == 1) & (aimed.status == OK))
    assert 0 < visits.size < (endless.collection == 1).sum()
    expected = np.zeros(24)
    for visit in visits:
        share = quota_share(DAY, job, np.full(40, aimed.epoch[visit]))[aimed.machine[visit]]
        expected[aimed.epoch[visit] // 12] += 0.55 * share * 25.0 * 40.0
    last = int(aimed.epoch[visits].max()) // 12
    assert expected.sum() >= 4000 > expected[:last].sum()


def test_watch_keeps_to_its_time():
    plan, _ = planned([Watch("noon", one_in=4, start_s=36000.0, end_s=43200.0)])
    assert set(plan.epoch[plan.collection == 1] // 12) == {10, 11}


@pytest.mark.statistical
def test_failures_come_at_the_rate_asked_for():
    """False-alarm rate below 1e-6 (5 standard errors of a binomial share)."""
    calm = replace(WORLD, churn=Churn(drains_per_machine_day=0.0, failures_per_machine_day=0.0))
    plan, _ = planned(day=prepare(calm), world=calm, one_in=1, round_s=300.0, failure_share=0.1)
    share = (plan.status == FAILED).mean()
    assert abs(share - 0.1) < 5 * np.sqrt(0.1 * 0.9 / plan.status.size)


def test_machines_out_of_service_do_not_answer():
    busy = replace(WORLD, churn=Churn(drains_per_machine_day=3.0, failures_per_machine_day=1.0))
    day = prepare(busy)
    plan, _ = planned(day=day, world=busy, one_in=1, round_s=300.0)
    timeline, down = day.timeline, np.zeros((40, 288), bool)
    for i in range(timeline.event_time_s.size):
        kind, machine, time_s = KINDS[timeline.event_kind[i]], timeline.event_machine[i], timeline.event_time_s[i]
        if kind not in {"drain", "failure"}:
            continue
        ends = KINDS.index({"drain": "drain_end", "failure": "repair"}[kind])
        later = (timeline.event_machine == machine) & (timeline.event_kind == ends) & (timeline.event_time_s >= time_s)
        end_s = timeline.event_time_s[later].min() if later.any() else 86400.0
        for epoch in range(288):
            down[machine, epoch] |= epoch * 300.0 < end_s and (epoch + 1) * 300.0 > time_s
    assert down.mean() > 0.05
    assert ((plan.status == DOWN) == down[plan.machine, plan.epoch]).mean() > 0.999


def test_an_outage_stops_profiling_for_the_rest_of_the_day():
    long = replace(WORLD, horizon_s=2 * 86400.0)
    plan, _ = planned(day=prepare(long), world=long, outage_s=(43300.0,), stop_failures=0.5)
    rounds = plan.epoch // 12
    assert (plan.status[rounds < 12] == OK).mean() > 0.9
    in_outage = plan.status[rounds == 12]
    assert in_outage.tolist() == [FAILED] * 3 + [STOPPED] * 2
    assert set(plan.status[(rounds > 12) & (rounds < 24)]) == {STOPPED}
    assert (plan.status[rounds >= 24] == OK).mean() > 0.9


def test_stopped_visits_keep_their_weights():
    with_outage, _ = planned(outage_s=(43300.0,), stop_failures=0.5)
    without, _ = planned()
    assert (with_outage.weight == without.weight).all()
    assert (with_outage.machine == without.machine).all()
    assert REFUSED not in with_outage.status
