"""What a machine is to those who look at programs: its platform over time, data centre and operating-system kernel."""

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints
from models.fleet.machines import Machines
from models.profiling.world import Kernel, ProfileWorld
from models.randomness import stream


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Arrays over M machines, and the texts that their numbers stand for."""

    platforms: tuple[str, ...]
    datacentres: tuple[str, ...]
    kernels: tuple[str, ...]
    """Versions of the operating-system kernel, the old one first."""
    platform: Ints
    """(M, 2) before and after the hardware feature."""
    datacentre: Ints
    kernel_from_s: Floats
    """(M,) when each gets the new kernel; NaN: never."""


def place(world: ProfileWorld, machines: Machines) -> Places:
    """Return where a world's machines stand and what is rolled out over them.

    Parameters
    ----------
    world : data centres, hardware feature and kernel roll-out
    machines : M machines

    Examples
    --------
    >>> from models.fleet.machines import build_machines
    >>> from models.fleet.world import Fleet
    >>> world = ProfileWorld(horizon_s=14 * 86400.0, fleet=Fleet(40, machines_per_rack=4, racks_per_power_domain=1))
    >>> made = place(world, build_machines(world))
    >>> made.kernels, np.bincount(made.datacentre), np.unique(made.kernel_from_s / 86400.0)
    (('6.1.90', '6.6.30'), array([24, 16]), array([5., 6., 7., 8.]))
    """
    names = platform_names(world)
    becomes = world.feature.platforms if world.feature else {}
    before = [names.index(name) for name in machines.platform_names]
    after = [names.index(becomes.get(name, name)) for name in machines.platform_names]
    kernel = world.profiling.kernel
    return Places(
        platforms=names,
        datacentres=tuple(world.profiling.datacentres),
        kernels=(kernel.old, kernel.new) if kernel else (Kernel().old,),
        platform=np.array([before, after])[:, machines.platform].T,
        datacentre=_datacentres(world, machines),
        kernel_from_s=_kernel_from_s(world, machines.count),
    )


def platform_names(world: ProfileWorld) -> tuple[str, ...]:
    """Return the platforms of a world, those that the hardware feature and a trial bring included.

    Examples
    --------
    >>> from models.fleet.world import Feature, Fleet
    >>> upgrade = Feature("upgrade", {"haswell_2698v3": "skylake_6148"})
    >>> platform_names(ProfileWorld(fleet=Fleet(platforms={"haswell_2698v3": 1.0}), feature=upgrade))
    ('haswell_2698v3', 'skylake_6148')
    """
    before = list(world.fleet.platforms)
    after = [world.feature.platforms.get(name, name) for name in before] if world.feature else []
    tried = [world.trial.platforms[name] for name in before if name in world.trial.platforms] if world.trial else []
    return tuple(dict.fromkeys([*before, *after, *tried]))


def _datacentres(world: ProfileWorld, machines: Machines) -> Ints:
    """Return each machine's data centre: whole power domains, in the order of their numbers."""
    upper = np.cumsum(list(world.profiling.datacentres.values()))
    domains = int(machines.power_domain.max()) + 1
    middle = (machines.power_domain + 0.5) / domains * upper[-1]
    return np.asarray(np.minimum(np.searchsorted(upper, middle, side="right"), upper.size - 1))


def _kernel_from_s(world: ProfileWorld, count: int) -> Floats:
    """Return when each machine gets the new kernel: equal waves of machines in random order."""
    kernel, from_s = world.profiling.kernel, np.full(count, np.nan)
    if kernel is None:
        return from_s
    order = stream(world.seed, "kernel roll-out").permutation(count)
    for wave, machines in enumerate(np.array_split(order, kernel.waves)):
        time_s = kernel.start_s + wave * kernel.interval_s
        from_s[machines] = time_s if time_s < world.horizon_s else np.nan
    return from_s
