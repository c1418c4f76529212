"""A day's timeline keeps its promises; every check replays the timeline alone and shares no code with the scheduler."""

import dataclasses
from bisect import bisect_left
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from models.fleet.inventory import build_jobs, build_machines
from models.fleet.world import Churn, Feature, Fleet, Governor, Population, Rollout, Scheduler, World
from sim.fleet.control import plan_day, plan_roll_out
from sim.fleet.placement import ENDINGS
from sim.fleet.timeline import KINDS, Timeline, from_placement

FALSE_ALARM = 1e-6
QUIET = Churn(0.0, 0.0, 0.0, 1.0, 0.0, 1.0)
BUSY = Churn(
    restarts_per_instance_day=2.0,
    exits_per_instance_day=1.0,
    drains_per_machine_day=2.0,
    drain_s=1200.0,
    failures_per_machine_day=1.0,
    repair_s=2400.0,
)
FEW = Population(jobs=80, common_jobs=50, heavyweights=8, allocated_share=0.7)
FULL = dataclasses.replace(FEW, allocated_share=0.97)


def world_of(**asked):
    return World(**{"fleet": Fleet(machines=50, machines_per_rack=5), "population": FEW, "churn": BUSY, **asked})


def day_of(world):
    machines = build_machines(world)
    jobs = build_jobs(world, machines)
    return machines, jobs, plan_day(world, machines, jobs)


def stays_of(timeline):
    names = ("instance", "job", "shard", "machine", "start_s", "end_s", "start_epoch", "end_epoch")
    table = pd.DataFrame({name: getattr(timeline, name) for name in names})
    table["ended_by"] = np.array(ENDINGS)[timeline.ended_by]
    return table


def events_of(timeline):
    names = ("time_s", "machine", "instance")
    table = pd.DataFrame({name: getattr(timeline, f"event_{name}") for name in names})
    table["kind"] = np.array(KINDS)[timeline.event_kind]
    return table


def same(one, two, but=()):
    for field in dataclasses.fields(Timeline):
        if field.name not in but:
            np.testing.assert_array_equal(getattr(one, field.name), getattr(two, field.name), err_msg=field.name)


def peaks(stays, amount):
    """Return the most that is held at any instant, per machine; who leaves makes room for who comes."""
    changes = pd.concat(
        [
            pd.DataFrame({"machine": stays["machine"], "time_s": stays["start_s"], "change": amount}),
            pd.DataFrame({"machine": stays["machine"], "time_s": stays["end_s"], "change": -amount}),
        ]
    ).sort_values(["machine", "time_s", "change"])
    return changes.groupby("machine")["change"].cumsum().groupby(changes["machine"]).max()


def outages(events):
    """Yield (machine, down from, down to) of every drain and failure."""
    kinds = ["drain", "drain_end", "failure", "repair"]
    for machine, rows in events[events["kind"].isin(kinds)].groupby("machine"):
        down = None
        for row in rows.itertuples():
            if row.kind in ("drain", "failure"):
                assert down is None, f"machine {machine} goes down twice"
                down = row.time_s
            else:
                yield machine, down, row.time_s
                down = None
        if down is not None:
            yield machine, down, np.inf


def waiting(jobs, stays, events, times):
    """Return how many instances there are at each time that do not run."""
    arrivals, exits = (np.sort(events.loc[events["kind"] == kind, "time_s"]) for kind in ("arrival", "exit"))
    after = [np.searchsorted(np.sort(column), times, side="right") for column in (arrivals, exits)]
    started, ended = (np.searchsorted(np.sort(stays[c]), times, side="right") for c in ("start_s", "end_s"))
    return jobs.instances.sum() + after[0] - after[1] - (started - ended)


DAYS = {
    "roomy": world_of(),
    "full": world_of(population=FULL),
    "best fit": world_of(population=FULL, scheduler=Scheduler(policy="best_fit", candidates=2)),
    "memory": world_of(population=dataclasses.replace(FULL, memory_bytes_per_vcpu=3.7e9)),
    "racks": world_of(population=FULL, scheduler=Scheduler(policy="random", spread="rack")),
    "platforms": world_of(
        population=FULL,
        fleet=Fleet(machines=50, platforms={"haswell_2698v3": 0.5, "skylake_6148": 0.5}),
        scheduler=Scheduler(spread="none", preemption=False),
    ),
}


@pytest.fixture(scope="module", params=list(DAYS))
def day(request):
    world = DAYS[request.param]
    return world, *day_of(world)


def test_cpu_and_memory_are_never_over_committed(day):
    _, machines, jobs, timeline = day
    stays = stays_of(timeline)
    for capacity, request in (
        (machines.vcpus, jobs.instance_quota_vcpu),
        (machines.memory_bytes, jobs.instance_memory_bytes),
    ):
        most = peaks(stays, request[stays["job"]])
        assert (most <= capacity[most.index] * (1 + 1e-9)).all()


def test_nor_are_they_at_any_epoch(day):
    world, machines, jobs, timeline = day
    stays = stays_of(timeline)
    for epoch in range(0, world.epochs, 7):
        there = stays[(stays["start_epoch"] <= epoch) & (epoch < stays["end_epoch"])]
        used = np.bincount(there["machine"], jobs.instance_quota_vcpu[there["job"]], machines.count)
        assert (used <= machines.vcpus * (1 + 1e-9)).all()
        assert there["instance"].is_unique


def test_nothing_runs_on_a_machine_that_is_down(day):
    *_, timeline = day
    stays, down = stays_of(timeline), list(outages(events_of(timeline)))
    assert len(down) > 50
    for machine, from_s, to_s in down:
        there = stays[stays["machine"] == machine]
        assert not ((there["end_s"] > from_s) & (there["start_s"] < to_s)).any()


@pytest.mark.parametrize("owner", [["instance"], ["job", "shard"]])
def test_an_instance_is_in_one_place_and_a_shard_served_once_at_a_time(day, owner):
    *_, timeline = day
    stays = stays_of(timeline).sort_values([*owner, "start_s"])
    follows = stays[owner].eq(stays[owner].shift(-1)).all(axis=1)
    assert follows.sum() > 1000
    assert (stays["end_s"] <= stays["start_s"].shift(-1))[follows].all()


def test_an_instance_keeps_its_job_and_shard(day):
    *_, timeline = day
    stays = stays_of(timeline)
    assert len(stays.drop_duplicates(["instance", "job", "shard"])) == stays["instance"].nunique()


def test_instances_that_came_and_have_not_left_run_or_wait(day):
    world, _, jobs, timeline = day
    stays, events = stays_of(timeline), events_of(timeline)
    times = np.sort(events["time_s"])
    wait = waiting(jobs, stays, events, times[times < world.horizon_s])
    assert (wait >= 0).all()
    if world.population is FEW:
        assert not wait.any()
    last = stays.groupby("instance")["ended_by"].last()
    gone = events.loc[events["kind"] == "exit", "instance"]
    assert set(last.index[last == "exit"]) == set(gone)
    assert (last == "horizon").sum() == jobs.instances.sum() + (events["kind"] == "arrival").sum() - len(gone) - wait[
        -1
    ]


def test_stays_are_in_order_of_their_starts_and_within_the_horizon(day):
    world, *_, timeline = day
    assert (np.diff(timeline.start_s) >= 0).all()
    assert (timeline.start_s < timeline.end_s).all()
    assert ((timeline.end_s == world.horizon_s) == (timeline.ended_by == ENDINGS.index("horizon"))).all()


def test_epochs_are_those_that_begin_during_the_stay(day):
    world, *_, timeline = day
    boundaries = [epoch * world.epoch_s for epoch in range(world.epochs)]
    assert timeline.start_epoch.tolist() == [bisect_left(boundaries, s) for s in timeline.start_s.tolist()]
    assert timeline.end_epoch.tolist() == [bisect_left(boundaries, s) for s in timeline.end_s.tolist()]


def test_events_tell_the_same_story_as_stays(day):
    *_, timeline = day
    stays, events = stays_of(timeline), events_of(timeline)
    assert events["time_s"].is_monotonic_increasing
    for kind in ("exit", "restart", "preemption"):
        ended = stays[stays["ended_by"] == kind].sort_values(["end_s", "instance"])
        told = events[events["kind"] == kind].sort_values(["time_s", "instance"])
        columns = zip(("end_s", "machine", "instance"), ("time_s", "machine", "instance"), strict=True)
        assert all(ended[one].tolist() == told[other].tolist() for one, other in columns)
    down = {(machine, from_s) for machine, from_s, _ in outages(events)}
    moved = stays[stays["ended_by"].isin(["drain", "failure"])]
    assert set(zip(moved["machine"], moved["end_s"], strict=True)) <= down


def test_only_best_effort_instances_are_evicted(day):
    world, _, jobs, timeline = day
    evicted = stays_of(timeline).query("ended_by == 'preemption'")
    assert not jobs.latency_critical[evicted["job"]].any()
    assert (len(evicted) > 0) == (world.population is not FEW and world.scheduler.preemption)


def test_the_same_world_has_the_same_day_and_another_seed_another():
    world = DAYS["full"]
    _, _, one = day_of(world)
    same(one, day_of(world)[2])
    other = day_of(dataclasses.replace(world, seed=world.seed + 1))[2]
    assert one.machine[:100].tolist() != other.machine[:100].tolist()


def test_how_often_the_control_plane_wakes_does_not_matter():
    """With room for everybody nobody waits for an epoch's end."""
    often, seldom = (day_of(world_of(epoch_s=epoch_s))[2] for epoch_s in (60.0, 21600.0))
    same(often, seldom, but=("start_epoch", "end_epoch"))


def test_epochs_of_a_tenth_of_a_second_begin_where_they_should():
    """3 * 0.1 is 0.30000000000000004, and a tenth goes more than three times into that; waiting ends there."""
    population = dataclasses.replace(FEW, allocated_share=1.4, instance_quota_vcpu=4.0)
    churn = dataclasses.replace(QUIET, restarts_per_instance_day=1e5)
    _, _, timeline = day_of(world_of(horizon_s=0.7, epoch_s=0.1, churn=churn, population=population))
    boundaries = [epoch * 0.1 for epoch in range(7)]
    assert {3 * 0.1, 6 * 0.1} <= set(timeline.start_s)
    assert timeline.start_epoch.tolist() == [bisect_left(boundaries, s) for s in timeline.start_s.tolist()]
    assert timeline.end_epoch.tolist() == [bisect_left(boundaries, s) for s in timeline.end_s.tolist()]


FEATURES = [
    None,
    Feature("governor", governor=Governor(policy="stall_aware")),
    Feature("racks", governor=Governor("ondemand"), rollout=Rollout(share=0.3, unit="rack", waves=3)),
    Feature("instances", governor=Governor("ondemand"), rollout=Rollout(unit="instance", start_s=600.0)),
]


@pytest.mark.parametrize("feature", FEATURES[1:], ids=lambda feature: feature.name)
def test_no_feature_and_no_roll_out_changes_any_stay(feature):
    plain, changed = (day_of(dataclasses.replace(DAYS["full"], feature=f))[2] for f in (None, feature))
    same(
        plain, changed, but=[name for name in Timeline.__slots__ if name.startswith(("event", "feature", "instance_"))]
    )
    without = events_of(changed).query("kind != 'rollout'").reset_index(drop=True)
    pd.testing.assert_frame_equal(without, events_of(plain))


@pytest.mark.parametrize(("unit", "share"), [("machine", 0.5), ("rack", 0.3), ("instance", 0.25)])
def test_the_roll_out_reaches_its_share_in_equal_waves(unit, share):
    rollout = Rollout(share=share, unit=unit, start_s=1000.0, waves=3, interval_s=500.0)
    machines, _, timeline = day_of(world_of(churn=QUIET, feature=Feature("f", rollout=rollout)))
    since = timeline.instance_feature_from_s if unit == "instance" else timeline.feature_from_s
    if unit == "rack":
        racks = pd.DataFrame({"rack": machines.rack, "since": since}).drop_duplicates()
        assert racks["rack"].is_unique
        since = racks["since"].to_numpy()
    assert (~np.isnan(since)).sum() == round(share * len(since))
    times, sizes = np.unique(since[~np.isnan(since)], return_counts=True)
    assert times.tolist() == [1000.0, 1500.0, 2000.0]
    assert np.ptp(sizes) <= 1
    other = timeline.feature_from_s if unit == "instance" else timeline.instance_feature_from_s
    assert np.isnan(other).all()


@pytest.mark.statistical
def test_who_is_reached_and_when_is_drawn_at_random():
    """Rank tests of machine numbers, reached against not and first wave against second; false alarm 1e-6 each."""
    rollout = Rollout(share=0.5, waves=2)
    world = world_of(fleet=Fleet(machines=120), feature=Feature("f", rollout=rollout))
    from_s = plan_roll_out(world, build_machines(world), 0).machine_from_s
    first, second = (np.flatnonzero(from_s == time_s) for time_s in (0.0, rollout.interval_s))
    rest = np.setdiff1d(np.arange(120), [*first, *second])
    assert stats.mannwhitneyu(first, second).pvalue > FALSE_ALARM
    assert stats.mannwhitneyu([*first, *second], rest).pvalue > FALSE_ALARM


def test_waves_after_the_horizon_do_not_happen_and_the_others_are_events():
    rollout = Rollout(share=1.0, waves=4, start_s=80000.0, interval_s=3000.0)
    _, _, timeline = day_of(world_of(churn=QUIET, feature=Feature("f", rollout=rollout)))
    told = events_of(timeline).query("kind == 'rollout'")
    reached = np.flatnonzero(~np.isnan(timeline.feature_from_s))
    assert set(told["time_s"]) == {80000.0, 83000.0, 86000.0}
    assert sorted(told["machine"]) == reached.tolist()
    assert len(reached) == 38


def test_without_churn_everybody_stays():
    _, jobs, timeline = day_of(world_of(churn=QUIET))
    assert len(timeline.job) == jobs.instances.sum()
    assert len(timeline.event_kind) == 0
    assert np.bincount(timeline.job, minlength=jobs.count).tolist() == jobs.instances.tolist()
    assert (stays_of(timeline).groupby("job")["shard"].max() == jobs.instances - 1).all()


@pytest.mark.statistical
def test_events_are_as_frequent_as_asked_for():
    """Six Poisson counts and a chi-square over jobs; false alarm 1e-6 each, 7e-6 in all. A machine that is down is
    not taken down, which a drain of one second makes rarer than one in 10,000.
    """
    churn = dataclasses.replace(BUSY, drain_s=1.0, repair_s=1.0)
    world = world_of(churn=churn, fleet=Fleet(machines=200))
    _, jobs, timeline = day_of(world)
    told = events_of(timeline)["kind"].value_counts()
    instances, machines = jobs.instances.sum(), 200
    expected = {"arrival": instances, "exit": instances, "restart": 2 * instances, "drain": 2 * machines}
    expected |= {"failure": machines, "repair": machines}
    for kind, mean in expected.items():
        low, high = stats.poisson.interval(1 - FALSE_ALARM, mean)
        assert low <= told[kind] <= high, kind
    first = instances + np.arange(told["arrival"])
    stays = stays_of(timeline).drop_duplicates("instance").set_index("instance")
    arrived = np.bincount(stays.loc[first, "job"], minlength=jobs.count)
    big = jobs.instances >= 10
    observed, share = (
        np.append(arrived[big], arrived[~big].sum()),
        np.append(jobs.instances[big], jobs.instances[~big].sum()),
    )
    assert stats.chisquare(observed, share / share.sum() * observed.sum()).pvalue > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize(("kind", "back", "mean_s"), [("drain", "drain_end", 900.0), ("failure", "repair", 1800.0)])
def test_machines_come_back_after_exponential_times(kind, back, mean_s):
    """Kolmogorov-Smirnov; false alarm 1e-6 each. Those still down at the end are under 2 in 100: no matter."""
    churn = dataclasses.replace(BUSY, drain_s=900.0, repair_s=1800.0, failures_per_machine_day=2.0)
    _, _, timeline = day_of(world_of(churn=churn, fleet=Fleet(machines=150)))
    told = events_of(timeline).query("kind in @names", local_dict={"names": [kind, back]})
    lengths = [
        two.time_s - one.time_s
        for _, rows in told.groupby("machine")
        for one, two in pairwise(rows.itertuples())
        if one.kind == kind
    ]
    assert len(lengths) > 200
    assert stats.kstest(lengths, stats.expon(scale=mean_s).cdf).pvalue > FALSE_ALARM


@pytest.mark.statistical
def test_every_running_instance_is_as_likely_to_exit():
    """Of those placed at time 0, as many exit of the first half placed as of the second; binomial, false alarm 1e-6."""
    _, jobs, timeline = day_of(world_of(churn=dataclasses.replace(QUIET, exits_per_instance_day=0.5)))
    half = jobs.instances.sum() // 2
    ended = timeline.ended_by == ENDINGS.index("exit")
    first, second = ended[:half].sum(), ended[half : 2 * half].sum()
    assert first + second > 300
    assert stats.binomtest(int(first), int(first + second)).pvalue > FALSE_ALARM


def doubled(stays, domain):
    """Return how many pairs of instances of one job share a failure domain at the start."""
    there = stays[stays["start_s"] == 0]
    count = there.groupby(["job", domain[there["machine"]]]).size()
    return (count * (count - 1) / 2).sum()


def fewest_pairs(instances, domains):
    """Return how many pairs share a domain when the instances are spread evenly."""
    fewer, fuller = divmod(instances, domains)
    return fuller * fewer * (fewer + 1) / 2 + (domains - fuller) * fewer * (fewer - 1) / 2


@pytest.mark.parametrize("spread", ["machine", "rack"])
def test_spreading_keeps_a_jobs_instances_apart(spread):
    """With 200 draws out of 50 machines hardly one is overlooked, and a job hardly doubles up before it must."""
    worlds = [world_of(scheduler=Scheduler(candidates=200, spread=s)) for s in (spread, "none")]
    (machines, jobs, apart), (*_, together) = (day_of(world) for world in worlds)
    domain = machines.rack if spread == "rack" else np.arange(machines.count)
    least = sum(fewest_pairs(n, int(domain.max()) + 1) for n in jobs.instances.tolist())
    excess = [doubled(stays_of(timeline), domain) - least for timeline in (apart, together)]
    assert 0 <= excess[0] <= 0.02 * least + 5
    assert excess[1] > 10 * excess[0] + 100


def test_who_waits_gets_the_first_room_at_an_epochs_beginning():
    """Two machines, filled by four instances; while one is drained its two wait, and return when it does."""
    world = world_of(
        fleet=Fleet(machines=2),
        churn=dataclasses.replace(QUIET, drains_per_machine_day=3.0, drain_s=3000.0),
        scheduler=Scheduler(preemption=False),
    )
    machines = dataclasses.replace(build_machines(world), vcpus=np.full(2, 4.0), memory_bytes=np.full(2, 1e12))
    jobs = build_jobs(world_of(population=Population(jobs=2, common_jobs=1, heavyweights=1)), machines)
    jobs = dataclasses.replace(jobs, instances=np.array([3, 1]), instance_quota_vcpu=np.full(2, 2.0))
    timeline = plan_day(world, machines, jobs)
    stays, events = stays_of(timeline), events_of(timeline)
    down = [span for span in outages(events) if span[2] < np.inf]
    assert len(down) >= 2
    for machine, from_s, to_s in down:
        back = stays[(stays["machine"] == machine) & (stays["start_s"] > from_s)]["start_s"].min()
        if not any(other != machine and start < to_s + 300 and end > to_s for other, start, end in down):
            assert back == np.ceil(to_s / 300) * 300
    quiet = [t for t in np.arange(150.0, 86400.0, 300.0) if all(t < a or t > b + 300 for _, a, b in outages(events))]
    assert not waiting(jobs, stays, events, np.array(quiet)).any()


def test_preemption_lets_latency_critical_instances_wait_less():
    """All are placed as they come, too many; one epoch later those who wait are best-effort, if eviction is allowed."""
    missing = {}
    for preemption in (True, False):
        population = dataclasses.replace(FEW, allocated_share=1.4, instance_quota_vcpu=4.0)
        churn = dataclasses.replace(BUSY, exits_per_instance_day=0.0)
        world = world_of(population=population, scheduler=Scheduler(preemption=preemption), churn=churn)
        _, jobs, timeline = day_of(world)
        assert timeline.end_s.min() > 0
        there = stays_of(timeline).query("start_epoch <= 1 < end_epoch")["job"]
        absent = jobs.instances - np.bincount(there, minlength=jobs.count)
        missing[preemption] = absent[jobs.latency_critical].sum() / jobs.instances[jobs.latency_critical].sum()
    assert missing[True] < 0.01
    assert missing[False] > 0.04


def test_a_given_placement_holds_all_day():
    world = world_of(feature=FEATURES[1])
    timeline = from_placement(world, 3, job=np.array([4, 4, 1, 4]), machine=np.array([2, 0, 0, 2]))
    assert timeline.shard.tolist() == [0, 1, 0, 2]
    assert timeline.instance.tolist() == [0, 1, 2, 3]
    assert set(zip(timeline.start_epoch, timeline.end_epoch, strict=True)) == {(0, world.epochs)}
    assert set(timeline.end_s) == {world.horizon_s}
    assert timeline.feature_from_s.shape == (3,)
    assert len(timeline.event_kind) == 0
    given = from_placement(world, 3, job=np.array([4, 4]), machine=np.array([2, 0]), shard=np.array([9, 7]))
    assert given.shard.tolist() == [9, 7]


@pytest.mark.parametrize(
    ("machine", "shard", "message"),
    [
        ([0, 3], None, "machines are 0 to 2, got 0 to 3"),
        ([-1, 2], None, "machines are 0 to 2, got -1 to 2"),
        ([0], None, "job, machine and shard have 2, 1 and 2 entries"),
        ([0, 1], [5], "job, machine and shard have 2, 2 and 1 entries"),
    ],
)
def test_an_impossible_placement_is_refused(machine, shard, message):
    with pytest.raises(ValueError, match=message):
        from_placement(World(), 3, np.array([1, 1]), np.array(machine), None if shard is None else np.array(shard))
