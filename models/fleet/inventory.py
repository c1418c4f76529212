"""What a WSC consists of, drawn from its seed: machines, and the jobs that fill them.

Machines differ a little from their spec sheets. Jobs differ in size and in how they use cores, caches and memory. Every
WSC of a universe runs the same common jobs (infrastructure: the heavyweights and some lighter ones) beside local ones
of its own (Lee et al. 2018, section 3.2). A job's memory accesses per instruction follow from a mixture of reuse
distances: at a cache share of S bytes they are ::

    mpi(S) = floor + gain_1 / (set_1 + S²) + gain_2 / (set_2 + S²)

that is, two log-logistic working sets and a streaming part that no cache size removes.
"""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.arrays import Bools, Floats, Ints
from models.errors import InputError
from models.fleet.concentration import COMMON_RATIO, WSMETER, expected_places, stretched_quota
from models.fleet.processors import FACTORS, REFERENCE_WIDTH, Loadings
from models.fleet.world import Fleet, Population, Service, World
from models.randomness import stream

REFERENCE_SHARE_BYTES = 4.0 * 2**20
"""Cache share at which a job's memory accesses per instruction are quoted: 80 MiB among 20 instances."""
REFERENCE_FREQUENCY_HZ = 2.8e9
REFERENCE_LATENCY_S = 90e-9
"""The reference machine of quoted CPI values: Haswell at its all-core turbo, idle memory."""
COMMON_LOG_SHIFT = 1.5
"""How much heavier a common light job is than a local one, in log quota: common jobs hold 95% of it (Fig. 5a)."""
WSC_LOG_SD = 0.3
"""Spread of a common job's quota from one WSC to the next."""
LEAST_PRESENT = 0.1
"""Least share of the working sets' accesses taken to miss at the reference share: a job whose sets are small does not
miss many times more often when its cache is taken away."""
SMALL_SET_RATIO = 0.2
"""Size of the smaller working set relative to the larger; each has half of the cacheable misses."""


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


def places(fleet: Fleet) -> tuple[Ints, Ints]:
    """Return the rack and the power domain of each machine; the last of either may have fewer machines.

    Examples
    --------
    >>> places(Fleet(machines=5, machines_per_rack=2, racks_per_power_domain=2))
    (array([0, 0, 1, 1, 2]), array([0, 0, 0, 0, 1]))
    """
    rack = np.arange(fleet.machines) // fleet.machines_per_rack
    return rack, rack // fleet.racks_per_power_domain


def build_machines(world: World) -> Machines:
    """Return the machines that a world asks for; the same for every feature and roll-out."""
    fleet, count = world.fleet, world.fleet.machines
    names = tuple(fleet.platforms)
    rng = stream(world.seed, "platforms of machines")
    platform = rng.permutation(_apportion(np.array(list(fleet.platforms.values())), count))
    rack, domain = places(fleet)
    sheets = [world.sheets[name] for name in names]
    conditions = _conditions(world, rack, "machines")
    return Machines(
        platform_names=names,
        platform=platform,
        rack=rack,
        power_domain=domain,
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
    slow = rng.random(count) < given.slow_memory_share
    latency = given.machine_latency_log_sd * own[0] + given.rack_latency_log_sd * shared[0][rack]
    bandwidth = given.machine_bandwidth_log_sd * own[1]
    power = given.machine_power_log_sd * own[2] + given.rack_power_log_sd * shared[1][rack]
    return np.exp(latency) * np.where(slow, given.slow_memory_factor, 1.0), np.exp(bandwidth), np.exp(power)


def _apportion(shares: Floats, count: int) -> Ints:
    """Return `count` category numbers in proportion to `shares`, by largest remainder."""
    exact = shares / shares.sum() * count
    whole = np.floor(exact).astype(np.int64)
    short = count - int(whole.sum())
    whole[np.argsort(whole - exact, kind="stable")[:short]] += 1
    return np.repeat(np.arange(shares.size), whole)


@dataclass(frozen=True, slots=True)
class Jobs:
    """Arrays over jobs in order of falling quota."""

    names: tuple[str, ...]
    instances: Ints
    instance_quota_vcpu: Floats
    instance_memory_bytes: Floats
    latency_critical: Bools
    core_cpi: Floats
    """On the reference core, which retires four instructions a cycle at most."""
    memory_accesses_per_instruction: Floats
    working_set_bytes: Floats
    streaming_share: Floats
    overlap: Floats
    smt_slowdown: Floats
    utilisation: Floats
    input_log_sd: Floats
    instance_log_sd: Floats
    job_log_sd: Floats
    diurnal_amplitude: Floats
    peak_hour: Floats
    spin_share: Floats
    core_traits: Floats
    """(J, 3)"""
    prefetched_share: Floats
    open_load: Bools
    instructions_per_request: Floats
    network_s_per_request: Floats

    @property
    def count(self) -> int:
        """Number of jobs."""
        return len(self.names)

    @property
    def quota_vcpu(self) -> Floats:
        """CPU quota of each whole job, in hardware threads."""
        return self.instances * self.instance_quota_vcpu

    @property
    def curve(self) -> "MissCurve":
        """How each job's memory accesses depend on its share of the cache."""
        return miss_curve(self.memory_accesses_per_instruction, self.working_set_bytes, self.streaming_share)

    @property
    def reference_cpi(self) -> Floats:
        """CPI of each job alone on the reference machine, at the reference cache share."""
        waited = self.memory_accesses_per_instruction - self.prefetched_share * self.curve.floor
        return self.core_cpi + waited * (REFERENCE_LATENCY_S * REFERENCE_FREQUENCY_HZ / self.overlap)

    @property
    def stall_share(self) -> Floats:
        """Share of the reference CPI that is memory stall."""
        return 1.0 - self.core_cpi / self.reference_cpi


def build_jobs(world: World, machines: Machines) -> Jobs:
    """Return the jobs that a world asks for, sized to fill the allocated share of the machines.

    Raises
    ------
    ValueError
        If the services alone ask for more than the allocated share, or heavyweights or other jobs get no share.
    """
    population = world.population
    services = population.services
    room = population.allocated_share * world.fleet.overcommit * float(machines.vcpus.sum())
    taken = sum(service.instances * service.quota_vcpu for service in services)
    if taken >= room:
        raise InputError(f"population.services ask for {taken:.0f} vCPUs; the allocated share holds {room:.0f}")
    drawn = _drawn(world, room - taken, float(machines.vcpus.min()))
    columns = [_together(drawn[name], [_said(service)[name] for service in services]) for name in _ARRAYS]
    order = np.argsort(-columns[0] * columns[1], kind="stable")
    names = [*drawn_names(population, world.seed), *(service.name for service in services)]
    arrays = {name: column[order] for name, column in zip(_ARRAYS, columns, strict=True)}
    arrays["core_cpi"] = np.maximum(arrays["core_cpi"], 1.0 / REFERENCE_WIDTH)
    return Jobs(names=tuple(names[i] for i in order), **arrays)


def _together(drawn: NDArray[Any], stated: list[Any]) -> NDArray[Any]:
    return np.concatenate([drawn, np.array(stated, drawn.dtype).reshape(-1, *drawn.shape[1:])])


_ARRAYS = tuple(field.name for field in fields(Jobs) if field.name != "names")


def _drawn(world: World, room_vcpu: float, machine_vcpus: float) -> dict[str, NDArray[Any]]:
    population = world.population
    size = {"common": population.common_jobs, "local": population.jobs - population.common_jobs}
    seed = {"common": population.universe, "local": world.seed}
    parts = [_traits(population, stream(seed[kind], f"traits of {kind} jobs"), size[kind]) for kind in size]
    traits = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    share = _quota_shares(world, size)
    quota = share * room_vcpu
    instance_vcpu = np.minimum(np.minimum(traits.pop("instance_quota_vcpu"), quota), machine_vcpus / 4)
    instances = np.maximum(1, np.rint(quota / instance_vcpu)).astype(np.int64)
    instance_vcpu = quota / instances
    size_factor = (share / np.median(share)) ** population.behaviour.size_exponent if share.size else share
    traits["core_cpi"] *= size_factor
    traits["memory_accesses_per_instruction"] *= size_factor
    traits["instance_memory_bytes"] = instance_vcpu * traits.pop("memory_bytes_per_vcpu")
    return {
        "instances": instances,
        "instance_quota_vcpu": instance_vcpu,
        **traits,
    }


def drawn_names(population: Population, seed: int) -> list[str]:
    """Return the names of the jobs that are drawn; a common one has the same name in every WSC of its universe.

    Examples
    --------
    >>> drawn_names(Population(jobs=3, common_jobs=2, heavyweights=1), seed=7)
    ['heavyweight-01', 'common-00001', 'local-7-00001']
    """
    heavy, common = population.heavyweights, population.common_jobs
    return [
        *(f"heavyweight-{i + 1:02d}" for i in range(heavy)),
        *(f"common-{i + 1:05d}" for i in range(common - heavy)),
        *(f"local-{seed}-{i + 1:05d}" for i in range(population.jobs - common)),
    ]


def _quota_shares(world: World, size: dict[str, int]) -> Floats:
    if world.population.preset == "google2011":
        return _stretched_shares(world, size)
    population, heavy = world.population, world.population.heavyweights
    classes = WSMETER if population.preset == "wsmeter" else population.stated_classes
    universe = stream(population.universe, "quota of common jobs")
    here = stream(world.seed, "quota of this WSC")
    shared = universe.standard_normal(size["common"])
    log_heavy = classes.heavyweight_log_sd * shared[:heavy]
    log_light = classes.light_log_sd * shared[heavy:] + COMMON_LOG_SHIFT
    log_local = classes.light_log_sd * here.standard_normal(size["local"])
    jitter = WSC_LOG_SD * here.standard_normal(size["common"])
    heavyweights = np.exp(log_heavy + jitter[:heavy])
    light = np.exp(np.concatenate([log_light + jitter[heavy:], log_local]))
    if not (heavyweights.size and light.size):
        every = np.concatenate([heavyweights, light])
        return np.asarray(every / every.sum())
    heavy_share = classes.heavyweight_share
    if not 0 < heavy_share < 1:
        raise InputError(
            f"population.heavyweight_share should leave quota to {heavy} heavyweights and {light.size} other jobs, "
            f"got {heavy_share:g}"
        )
    return np.concatenate([heavy_share * heavyweights / heavyweights.sum(), (1 - heavy_share) * light / light.sum()])


def _stretched_shares(world: World, size: dict[str, int]) -> Floats:
    """Return shares of quota that fall with rank along one smooth curve.

    Common jobs stand at the expected places of the curve, the largest first, and move a little from WSC to WSC; local
    jobs are drawn from it.
    """
    here = stream(world.seed, "quota of this WSC")
    jitter = np.exp(WSC_LOG_SD * here.standard_normal(size["common"]))
    common = COMMON_RATIO * stretched_quota(expected_places(size["common"])) * jitter
    every = np.concatenate([common, stretched_quota(here.standard_exponential(size["local"]))])
    return np.asarray(every / every.sum())


def _traits(population: Population, rng: np.random.Generator, count: int) -> dict[str, NDArray[Any]]:
    how = population.behaviour

    def lognormal(median: float, log_sd: float) -> Floats:
        return median * np.exp(log_sd * rng.standard_normal(count))

    def share(mean: float, concentration: float = 12.0) -> Floats:
        if mean in {0.0, 1.0}:
            return np.full(count, mean)
        return rng.beta(mean * concentration, (1 - mean) * concentration, count)

    critical = rng.random(count) < how.latency_critical_share
    traits = {
        "instance_quota_vcpu": lognormal(population.instance_quota_vcpu, population.instance_quota_log_sd),
        "memory_bytes_per_vcpu": lognormal(population.memory_bytes_per_vcpu, 0.3),
        "latency_critical": critical,
        "core_cpi": lognormal(how.core_cpi, how.core_cpi_log_sd),
        "memory_accesses_per_instruction": lognormal(how.memory_accesses_per_instruction, how.memory_accesses_log_sd),
        "working_set_bytes": lognormal(how.working_set_bytes, how.working_set_log_sd),
        "streaming_share": share(how.streaming_share, 6.0),
        "overlap": np.maximum(1.0, lognormal(how.overlap, how.overlap_log_sd)),
        "smt_slowdown": lognormal(how.smt_slowdown, 0.25),
        "utilisation": share(how.utilisation),
        "input_log_sd": lognormal(how.input_log_sd, how.input_log_sd_spread),
        "instance_log_sd": np.full(count, how.instance_log_sd),
        "job_log_sd": lognormal(how.job_log_sd, 0.4),
        "diurnal_amplitude": np.where(critical, np.minimum(1.0, lognormal(how.diurnal_amplitude, 0.5)), 0.0),
        "peak_hour": rng.normal(14.0, 2.0, count) % 24.0,
        "spin_share": np.minimum(0.5, lognormal(how.spin_share, 0.8)),
        "open_load": critical,
        "instructions_per_request": lognormal(2.0e6, 1.0),
        "network_s_per_request": np.zeros(count),
        "core_traits": how.core_trait_sd * rng.standard_normal((count, FACTORS)),
        "prefetched_share": share(how.prefetched_share, 6.0),
    }
    traits["core_cpi"] += how.inner_miss_cycles * traits["memory_accesses_per_instruction"]
    return traits


def _said(service: Service) -> dict[str, float | int | bool | Loadings]:
    return {
        "instances": service.instances,
        "instance_quota_vcpu": service.quota_vcpu,
        "instance_memory_bytes": service.quota_vcpu * 2.5e9,
        "latency_critical": service.latency_critical,
        "core_cpi": service.core_cpi,
        "memory_accesses_per_instruction": service.memory_accesses_per_instruction,
        "working_set_bytes": service.working_set_bytes,
        "streaming_share": service.streaming_share,
        "overlap": service.overlap,
        "smt_slowdown": service.smt_slowdown,
        "utilisation": service.utilisation,
        "input_log_sd": service.input_log_sd,
        "instance_log_sd": service.instance_log_sd,
        "job_log_sd": service.job_log_sd,
        "diurnal_amplitude": 0.0,
        "peak_hour": 14.0,
        "spin_share": 0.0,
        "core_traits": service.core_traits,
        "prefetched_share": service.prefetched_share,
        "open_load": service.open_load,
        "instructions_per_request": service.instructions_per_request,
        "network_s_per_request": service.network_s_per_request,
    }


@dataclass(frozen=True, slots=True)
class MissCurve:
    """Coefficients of mpi(S) for each job: streaming floor, and gain and squared size of the two working sets."""

    floor: Floats
    gain_1: Floats
    set_1: Floats
    gain_2: Floats
    set_2: Floats

    def __call__(self, share_bytes: float | Floats) -> Floats:
        """Return memory accesses per instruction at a cache share in bytes."""
        square = np.square(share_bytes)
        return self.floor + self.gain_1 / (self.set_1 + square) + self.gain_2 / (self.set_2 + square)


def miss_curve(accesses: Floats, working_set_bytes: Floats, streaming_share: Floats) -> MissCurve:
    """Return the miss curve that has `accesses` per instruction at the reference cache share.

    Parameters
    ----------
    accesses : (J,) array, memory accesses per instruction at `REFERENCE_SHARE_BYTES`
    working_set_bytes : (J,) array, size of the larger working set
    streaming_share : (J,) array in 0..1, share of `accesses` that no cache removes
    """
    set_1, set_2 = np.square(working_set_bytes), np.square(SMALL_SET_RATIO * working_set_bytes)
    reference = REFERENCE_SHARE_BYTES**2
    present = 0.5 * (set_1 / (set_1 + reference) + set_2 / (set_2 + reference))
    scale = 0.5 * accesses * (1 - streaming_share) / np.maximum(present, LEAST_PRESENT)
    floor = accesses * (1 - (1 - streaming_share) * (present / np.maximum(present, LEAST_PRESENT)))
    return MissCurve(floor, scale * set_1, set_1, scale * set_2, set_2)
