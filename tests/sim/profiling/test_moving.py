from dataclasses import replace

import numpy as np
import pytest

from sim.profiling.moving import (
    Snapshot,
    busy_threads,
    exchange,
    exchanged_sums,
    instance_sums,
    moved,
    moved_apart,
    neighbours,
    simulate,
    spent_for,
    wanted_instances,
)
from tests.helpers.profiled_fleets import small_fleet


@pytest.fixture(scope="module")
def snapshot():
    world = small_fleet()
    platforms = {"haswell_2698v3": 0.4, "broadwell_2698v4": 0.3, "skylake_6148": 0.3}
    return Snapshot.of(replace(world, fleet=replace(world.fleet, platforms=platforms)))


def test_jobs_keep_their_instances_and_shares_that_stay_move_none():
    rng = np.random.default_rng(1)
    now = rng.integers(0, 30, (50, 4))
    before, after = (rng.dirichlet(np.ones(4), 50) for _ in range(2))
    wanted = wanted_instances(now, before, after)
    assert (wanted.sum(axis=1) == now.sum(axis=1)).all()
    assert (wanted >= 0).all()
    assert (wanted_instances(now, before, before) == now).all()
    share = now / np.maximum(now.sum(axis=1, keepdims=True), 1)
    exact = wanted_instances(now, share, after)
    assert (np.abs(exact - after * now.sum(axis=1, keepdims=True)) < 1 + 1e-9).all()


def test_moves_reach_what_is_wanted_where_there_is_room(snapshot):
    now = snapshot.instances(snapshot.machine)
    wanted = now.copy()
    job = int(np.argmax((now > 0).sum(axis=1) * now.sum(axis=1)))
    here, there = (
        int(now[job].argmax()),
        int(np.where(np.arange(now.shape[1]) == now[job].argmax(), -1, now[job]).argmax()),
    )
    wanted[job, here] -= 1
    wanted[job, there] += 1
    machine = moved(snapshot, wanted)
    assert (snapshot.instances(machine) == wanted).all()
    assert (machine != snapshot.machine).sum() == 1
    changed = int(np.flatnonzero(machine != snapshot.machine)[0])
    last = snapshot.shard[(snapshot.job == job) & (snapshot.machine_platform[snapshot.machine] == here)].max()
    assert snapshot.shard[changed] == last


def test_no_machine_is_filled_beyond_the_fullest_before(snapshot):
    now = snapshot.instances(snapshot.machine)
    wanted = np.zeros_like(now)
    wanted[:, 0] = now.sum(axis=1)
    machine = moved(snapshot, wanted)
    allocated = [np.bincount(m, snapshot.quota_vcpu, snapshot.vcpus.size) for m in (snapshot.machine, machine)]
    most = max(1.0, (allocated[0] / snapshot.vcpus).max())
    assert (allocated[1] / snapshot.vcpus <= most + 1e-9).all()
    assert (snapshot.instances(machine) != wanted).any()
    assert (snapshot.instances(machine)[:, 0] >= now[:, 0]).all()


def test_the_same_places_give_the_same_day_and_all_jobs_run(snapshot):
    one, other = (simulate(snapshot, snapshot.machine) for _ in range(2))
    assert (one[0] == other[0]).all()
    assert (one[1] == other[1]).all()
    there = snapshot.instances(snapshot.machine) > 0
    assert ((one[1] > 0) == there).all()
    load = one[1].sum(axis=1)
    assert spent_for(load, *one, np.ones(one[0].shape[1])) == pytest.approx(one[0].sum(), rel=1e-12)


def test_moving_a_job_moves_its_instructions(snapshot):
    now = snapshot.instances(snapshot.machine)
    job = int(np.argmax(now.min(axis=1)))
    wanted = now.copy()
    wanted[job] = 0
    wanted[job, int(now[job].argmin())] = now[job].sum()
    machine = moved(snapshot, wanted)
    went = snapshot.instances(machine)[job] > 0
    assert ((simulate(snapshot, machine)[1][job] > 0) == went).all()


def test_time_is_spent_at_the_clock_of_each_platform():
    """8 instructions of 4 measured, which took 2 cycles at 1 Hz and 6 at 2 Hz: 8 / 4 × (2 + 3) seconds."""
    cycles, executed = np.array([[2.0, 6.0], [0.0, 0.0]]), np.array([[2.0, 2.0], [0.0, 0.0]])
    assert spent_for(np.array([8.0, 5.0]), cycles, executed, np.array([1.0, 2.0])) == 10.0


def full(snapshot):
    """Return the same fleet with every machine full but one of the first platform, which is empty."""
    here = np.flatnonzero(snapshot.machine_platform == 0)[0]
    allocated = np.bincount(snapshot.machine, snapshot.quota_vcpu, snapshot.vcpus.size)
    roomy = np.where(np.arange(snapshot.vcpus.size) == here, 2 * allocated, allocated)
    return replace(snapshot, vcpus=np.maximum(roomy, 1e-9))


def test_who_finds_no_room_keeps_his_own(snapshot):
    tight = full(snapshot)
    now = tight.instances(tight.machine)
    stayed = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        wanted = np.array([rng.permutation(row) for row in now])
        machine = moved(tight, wanted)
        allocated = np.bincount(machine, tight.quota_vcpu, tight.vcpus.size)
        assert (allocated <= tight.vcpus * (1 + 1e-9)).all()
        assert (machine != tight.machine).any()
        stayed += (tight.instances(machine) != wanted).any()
    assert stayed


@pytest.fixture(scope="module")
def mixed():
    world = small_fleet()
    platforms = {"haswell_2698v3": 0.6, "skylake_6148": 0.4}
    return Snapshot.of(replace(world, fleet=replace(world.fleet, platforms=platforms)))


def pairs_of(mixed):
    """Return pairs of jobs that share a machine, of which the second is on a third of the machines at most."""
    machines = [set(mixed.machine[mixed.job == job].tolist()) for job in range(len(mixed.jobs))]
    few = [job for job, on in enumerate(machines) if 0 < len(on) <= mixed.vcpus.size // 3]
    return [(job, other) for other in few for job, on in enumerate(machines) if job != other and on & machines[other]]


def test_instances_go_to_machines_of_their_platform_without_the_other_job(mixed):
    moves = 0
    before = np.bincount(mixed.machine, mixed.quota_vcpu, mixed.vcpus.size) / mixed.vcpus
    for job, other in pairs_of(mixed):
        avoided = set(mixed.machine[mixed.job == other].tolist())
        found = neighbours(mixed, job, other).tolist()
        assert found == [k for k in range(mixed.job.size) if mixed.job[k] == job and mixed.machine[k] in avoided]
        machine = moved_apart(mixed, job, other)
        went = np.flatnonzero(machine != mixed.machine).tolist()
        assert set(went) <= set(found)
        assert avoided.isdisjoint(machine[went].tolist())
        assert (mixed.machine_platform[machine] == mixed.machine_platform[mixed.machine]).all()
        after = np.bincount(machine, mixed.quota_vcpu, mixed.vcpus.size) / mixed.vcpus
        assert after.max() <= max(1.0, before.max()) + 1e-9
        moves += len(went)
    assert moves > 10


def test_without_room_nobody_moves(mixed):
    job, other = pairs_of(mixed)[0]
    allocated = np.bincount(mixed.machine, mixed.quota_vcpu, mixed.vcpus.size)
    full = replace(mixed, vcpus=np.maximum(allocated, 1e-9))
    assert (moved_apart(full, job, other) == mixed.machine).all()


def test_instances_add_up_to_jobs_and_platforms(mixed):
    cycles, instructions = instance_sums(mixed, mixed.machine)
    sums = simulate(mixed, mixed.machine)
    np.testing.assert_allclose(sums[0].sum(axis=1), np.bincount(mixed.job, cycles, len(mixed.jobs)), rtol=1e-12)
    platform = mixed.machine_platform[mixed.machine]
    np.testing.assert_allclose(sums[1].sum(axis=0), np.bincount(platform, instructions, 2), rtol=1e-12)


def test_as_many_threads_come_as_leave_in_the_mean(snapshot):
    busy, machines = busy_threads(snapshot), np.unique(snapshot.machine)
    job = int(np.bincount(snapshot.job).argmax())
    each = busy[snapshot.job == job].mean()
    rng = np.random.default_rng(1)
    draws = [exchange(snapshot, job, busy, 3.0, machines=machines, rng=rng) for _ in range(100)]
    for change in draws:
        assert change.threads == pytest.approx(np.bincount(snapshot.machine[change.left], busy[change.left], 16))
        assert (np.abs(np.bincount(change.machine, minlength=16) * each - change.threads) < each).all()
    left = np.array([change.threads[machines].mean() for change in draws])
    came = np.array([change.machine.size * each / machines.size for change in draws])
    assert left.mean() == pytest.approx(3.0, rel=0.1)
    assert came.mean() == pytest.approx(left.mean(), abs=4 * (came - left).std() / 10)
    alone = exchange(snapshot, job, busy, 3.0, machines=machines[:1], rng=rng)
    assert set(alone.machine) | set(snapshot.machine[alone.left]) == {machines[0]}


def test_who_stays_meets_the_same_random_numbers(snapshot):
    """Without an exchange a day is the same to the last bit; with one, only the same power domain differs."""
    busy, rng = busy_threads(snapshot), np.random.default_rng(2)
    before = np.array(instance_sums(snapshot, snapshot.machine))
    nothing = exchange(snapshot, 0, busy, 3.0, machines=np.zeros(0, np.int64), rng=rng)
    assert (np.array(exchanged_sums(snapshot, nothing)) == before).all()
    change = exchange(snapshot, 0, busy, 3.0, machines=np.array([0]), rng=rng)
    after = np.array(exchanged_sums(snapshot, change))
    elsewhere = snapshot.machine >= 8
    assert (after[:, elsewhere] == before[:, elsewhere]).all()
    assert (after[0, change.left] < 0.05 * before[0, change.left]).all()
    stays = (snapshot.machine == 0) & ~change.left
    assert (after[1, stays] != before[1, stays]).all()
    around = np.array(exchanged_sums(snapshot, change, np.array([0])))
    assert (around[:, ~elsewhere] == after[:, ~elsewhere]).all()
    assert not around[:, elsewhere].any()
