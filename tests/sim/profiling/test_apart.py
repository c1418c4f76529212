from dataclasses import replace

import numpy as np
import pytest

from sim.profiling.apart import moved_apart, neighbours
from sim.profiling.moving import Snapshot, instance_sums, simulate
from sim.profiling.setting import example


@pytest.fixture(scope="module")
def snapshot():
    world = example()
    platforms = {"haswell_2698v3": 0.6, "skylake_6148": 0.4}
    return Snapshot.of(replace(world, fleet=replace(world.fleet, platforms=platforms)))


def pairs_of(snapshot):
    """Return pairs of jobs that share a machine, of which the second is on a third of the machines at most."""
    machines = [set(snapshot.machine[snapshot.job == job].tolist()) for job in range(len(snapshot.jobs))]
    few = [job for job, on in enumerate(machines) if 0 < len(on) <= snapshot.vcpus.size // 3]
    return [(job, other) for other in few for job, on in enumerate(machines) if job != other and on & machines[other]]


def test_instances_go_to_machines_of_their_platform_without_the_other_job(snapshot):
    moves = 0
    before = np.bincount(snapshot.machine, snapshot.quota_vcpu, snapshot.vcpus.size) / snapshot.vcpus
    for job, other in pairs_of(snapshot):
        avoided = set(snapshot.machine[snapshot.job == other].tolist())
        found = neighbours(snapshot, job, other).tolist()
        assert found == [
            k for k in range(snapshot.job.size) if snapshot.job[k] == job and snapshot.machine[k] in avoided
        ]
        machine = moved_apart(snapshot, job, other)
        went = np.flatnonzero(machine != snapshot.machine).tolist()
        assert set(went) <= set(found)
        assert avoided.isdisjoint(machine[went].tolist())
        assert (snapshot.machine_platform[machine] == snapshot.machine_platform[snapshot.machine]).all()
        after = np.bincount(machine, snapshot.quota_vcpu, snapshot.vcpus.size) / snapshot.vcpus
        assert after.max() <= max(1.0, before.max()) + 1e-9
        moves += len(went)
    assert moves > 10


def test_without_room_nobody_moves(snapshot):
    job, other = pairs_of(snapshot)[0]
    allocated = np.bincount(snapshot.machine, snapshot.quota_vcpu, snapshot.vcpus.size)
    full = replace(snapshot, vcpus=np.maximum(allocated, 1e-9))
    assert (moved_apart(full, job, other) == snapshot.machine).all()


def test_instances_add_up_to_jobs_and_platforms(snapshot):
    cycles, instructions = instance_sums(snapshot, snapshot.machine)
    sums = simulate(snapshot, snapshot.machine)
    np.testing.assert_allclose(sums[0].sum(axis=1), np.bincount(snapshot.job, cycles, len(snapshot.jobs)), rtol=1e-12)
    platform = snapshot.machine_platform[snapshot.machine]
    np.testing.assert_allclose(sums[1].sum(axis=0), np.bincount(platform, instructions, 2), rtol=1e-12)
