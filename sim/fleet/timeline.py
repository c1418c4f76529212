"""What the control plane decides: who runs where and when, and who has the feature since when."""

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints
from models.errors import InputError
from models.fleet.world import World
from sim.fleet.placement import HORIZON

KINDS = ("arrival", "exit", "restart", "drain", "drain_end", "failure", "repair", "preemption", "rollout")
"""What can happen; `Timeline.event_kind` holds the index."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Who runs where and when, decided from requests alone; and when each machine gets the feature.

    The first nine arrays have one entry per residence, in order of their starts. `start_s` and `end_s` are event
    times, the horizon at most; epochs ``start_epoch <= epoch < end_epoch`` are those that begin during the stay, or on
    the event-driven machine those that it reaches into.
    `shard` counts within the job; `ended_by` is an index into `ENDINGS`. `feature_from_s` has one entry per machine
    and `instance_feature_from_s` one per instance; NaN: never. `event_*` are the rows of the events table in order of
    time; `event_kind` is an index into `KINDS`, −1 stands for no machine or no instance.
    """

    instance: Ints
    job: Ints
    shard: Ints
    machine: Ints
    start_s: Floats
    end_s: Floats
    start_epoch: Ints
    end_epoch: Ints
    ended_by: Ints
    feature_from_s: Floats
    instance_feature_from_s: Floats
    event_time_s: Floats
    event_kind: Ints
    event_machine: Ints
    event_instance: Ints


def from_placement(world: World, machines_count: int, job: Ints, machine: Ints, shard: Ints | None = None) -> Timeline:
    """Return the timeline in which the given instances run on the given machines over the whole horizon.

    Parameters
    ----------
    world : horizon and epoch
    machines_count : number of machines
    job, machine : (I,) arrays, each instance's job and machine
    shard : (I,) array; 0, 1, 2, … within each job if not given

    Raises
    ------
    ValueError
        If the lengths differ or a machine does not exist.
    """
    shard = _order_within(job) if shard is None else shard
    if not len(job) == len(machine) == len(shard):
        raise InputError(f"job, machine and shard have {len(job)}, {len(machine)} and {len(shard)} entries")
    if len(machine) and not 0 <= machine.min() <= machine.max() < machines_count:
        raise InputError(f"machines are 0 to {machines_count - 1}, got {machine.min()} to {machine.max()}")
    count = len(job)
    return Timeline(
        instance=np.arange(count),
        job=job.astype(np.int64),
        shard=shard.astype(np.int64),
        machine=machine.astype(np.int64),
        start_s=np.zeros(count),
        end_s=np.full(count, world.horizon_s),
        start_epoch=np.zeros(count, np.int64),
        end_epoch=np.full(count, world.epochs),
        ended_by=np.full(count, HORIZON),
        feature_from_s=np.full(machines_count, np.nan),
        instance_feature_from_s=np.full(count, np.nan),
        event_time_s=np.zeros(0),
        event_kind=np.zeros(0, np.int64),
        event_machine=np.zeros(0, np.int64),
        event_instance=np.zeros(0, np.int64),
    )


def _order_within(group: Ints) -> Ints:
    """Return each entry's place among the entries of its group."""
    order = np.argsort(group, kind="stable")
    first = np.searchsorted(group[order], group[order])
    place = np.empty(len(group), np.int64)
    place[order] = np.arange(len(group)) - first
    return place
