"""The machines of a fleet: where they stand, what they are and what makes each a little different."""

from dataclasses import dataclass, replace

import numpy as np

from models.arrays import Floats, Ints
from models.fleet.world import World
from models.platforms import PLATFORMS
from models.randomness import stream


@dataclass(frozen=True, slots=True)
class Machines:
    """Arrays over machines, numbered rack by rack and power domain by power domain.

    The last three fields are multiplicative conditions of each machine (1 is the spec sheet): memory latency, memory
    bandwidth and power at equal work. They persist, and machines of one rack share a part of them.
    """

    platform_names: tuple[str, ...]
    platform: Ints
    rack: Ints
    power_domain: Ints
    vcpus: Floats
    memory_bytes: Floats
    latency_factor: Floats
    bandwidth_factor: Floats
    power_factor: Floats

    @property
    def count(self) -> int:
        """Number of machines."""
        return int(self.platform.size)


def build_machines(world: World) -> Machines:
    """Return the machines that a world asks for; the same for every feature and roll-out.

    Examples
    --------
    >>> from models.fleet.world import Fleet
    >>> build_machines(World(fleet=Fleet(machines=100))).rack[[0, 39, 40, 99]]
    array([0, 0, 1, 2])
    """
    fleet, count = world.fleet, world.fleet.machines
    names = tuple(fleet.platforms)
    rng = stream(world.seed, "platforms of machines")
    platform = rng.permutation(_apportion(np.array(list(fleet.platforms.values())), count))
    rack = np.arange(count) // fleet.machines_per_rack
    sheets = [PLATFORMS[name] for name in names]
    conditions = _conditions(world, rack, "machines")
    return Machines(
        platform_names=names,
        platform=platform,
        rack=rack,
        power_domain=rack // fleet.racks_per_power_domain,
        vcpus=np.array([float(sheet.vcpus) for sheet in sheets])[platform],
        memory_bytes=np.array([sheet.memory_bytes for sheet in sheets])[platform],
        latency_factor=conditions[0],
        bandwidth_factor=conditions[1],
        power_factor=conditions[2],
    )


def replaced(machines: Machines, world: World, which: Ints) -> Machines:
    """Return the fleet in which new machines, in racks of their own, have taken the place of `which`.

    The new machines keep numbers and neighbours in the power budget, but have conditions of their own: what happens
    when a test cluster is built by adding machines to which instances migrate (Lee et al. 2018, section 5.2.2).

    Examples
    --------
    >>> world = World()
    >>> old = build_machines(world)
    >>> new = replaced(old, world, np.array([7]))
    >>> np.flatnonzero(new.latency_factor != old.latency_factor), bool(new.rack[7] > old.rack.max())
    (array([7]), True)
    """
    rack = machines.rack.copy()
    rack[which] = rack.max() + 1 + np.arange(which.size) // world.fleet.machines_per_rack
    fresh = _conditions(world, rack, "added machines")
    factors = [machines.latency_factor.copy(), machines.bandwidth_factor.copy(), machines.power_factor.copy()]
    for factor, new in zip(factors, fresh, strict=True):
        factor[which] = new[which]
    return replace(machines, rack=rack, latency_factor=factors[0], bandwidth_factor=factors[1], power_factor=factors[2])


def _conditions(world: World, rack: Ints, owner: str) -> tuple[Floats, Floats, Floats]:
    given, count, racks = world.conditions, rack.size, int(rack.max()) + 1
    rng = stream(world.seed, f"conditions of {owner}")
    own = rng.standard_normal((3, count))
    shared = rng.standard_normal((2, racks))
    latency = given.machine_latency_log_sd * own[0] + given.rack_latency_log_sd * shared[0][rack]
    bandwidth = given.machine_bandwidth_log_sd * own[1]
    power = given.machine_power_log_sd * own[2] + given.rack_power_log_sd * shared[1][rack]
    return np.exp(latency), np.exp(bandwidth), np.exp(power)


def _apportion(shares: Floats, count: int) -> Ints:
    """Return `count` category numbers in proportion to `shares`, by largest remainder."""
    exact = shares / shares.sum() * count
    whole = np.floor(exact).astype(np.int64)
    short = count - int(whole.sum())
    whole[np.argsort(whole - exact, kind="stable")[:short]] += 1
    return np.repeat(np.arange(shares.size), whole)
