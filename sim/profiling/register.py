"""The machine database: what each machine is at a time, where it stands and when it is out of service."""

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints
from models.fleet.inventory import Machines
from models.profiling.world import Kernel, ProfileWorld
from models.randomness import stream
from sim.fleet.arms import Arm
from sim.fleet.day import Day
from sim.fleet.timeline import KINDS


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
    """Return the platforms of a world, those that the hardware feature and a trial bring included."""
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


_BACK = {"drain": "drain_end", "failure": "repair"}
"""What ends each kind of time out of service."""


@dataclass(frozen=True, slots=True)
class Register:
    """Facts of the M machines of a fleet over the horizon.

    `platform` is (M, 2), an index into `platform_names` before and from epoch `feature_from` on; `datacentre` an index
    into `datacentre_names`; `kernel_from_s` the time of the second of `kernel_names`, NaN: never. `out` is (D, 3):
    machine, and the first epoch and the one after the last that it is out of service, by machine and start.
    """

    epoch_s: float
    platform_names: tuple[str, ...]
    platform: Ints
    feature_from: Ints
    datacentre_names: tuple[str, ...]
    datacentre: Ints
    kernel_names: tuple[str, ...]
    kernel_from_s: Floats
    out: Ints

    @property
    def count(self) -> int:
        """Number of machines."""
        return int(self.datacentre.size)

    def platform_at(self, machine: Ints, epoch: Ints) -> Ints:
        """Return the platform that each machine is in that epoch, an index into `platform_names`."""
        return np.asarray(self.platform[machine, (epoch >= self.feature_from[machine]).astype(np.int64)])

    def kernel_at(self, machine: Ints, epoch: Ints) -> Ints:
        """Return 1 where the machine has the new kernel at the start of that epoch, else 0.

        Examples
        --------
        >>> same = np.zeros((1, 2), np.int64), np.zeros(1, np.int64)
        >>> from_s, out = np.array([600.0]), np.empty((0, 3), np.int64)
        >>> register = Register(300.0, ("a",), *same, ("x",), np.zeros(1, np.int64), ("old", "new"), from_s, out)
        >>> register.kernel_at(np.array([0, 0]), np.array([1, 2]))
        array([0, 1])
        """
        return (epoch * self.epoch_s >= self.kernel_from_s[machine]).astype(np.int64)

    def down(self, machine: int, epoch: int) -> bool:
        """Return whether the machine is drained or broken in that epoch or a part of it."""
        here = self.out[slice(*np.searchsorted(self.out[:, 0], [machine, machine + 1]))]
        return bool(((here[:, 1] <= epoch) & (epoch < here[:, 2])).any())

    def up_s(self, machines: slice, length: int, count: int) -> Floats:
        """Return how long each machine is in service in each stretch of time.

        Parameters
        ----------
        machines : M machines, first and after the last
        length : epochs of a stretch
        count : stretches, from the start of the horizon

        Returns
        -------
        (M, count) array, seconds
        """
        up = np.full((machines.stop - machines.start, length * count), True)
        for machine, begin, end in self.out[(self.out[:, 0] >= machines.start) & (self.out[:, 0] < machines.stop)]:
            up[machine - machines.start, begin:end] = False
        return np.asarray(self.epoch_s * up.reshape(len(up), count, length).sum(axis=2))


def machine_register(world: ProfileWorld, day: Day, arm: Arm, places: Places) -> Register:
    """Return the register of a day's machines.

    Parameters
    ----------
    world : length of an epoch
    day : events that put machines out of service
    arm : who has the hardware feature from when
    places : where the machines are, and what they are
    """
    return Register(
        epoch_s=world.epoch_s,
        platform_names=places.platforms,
        platform=places.platform,
        feature_from=arm.machine_from,
        datacentre_names=places.datacentres,
        datacentre=places.datacentre,
        kernel_names=places.kernels,
        kernel_from_s=places.kernel_from_s,
        out=_out_of_service(world, day),
    )


def _out_of_service(world: ProfileWorld, day: Day) -> Ints:
    """Return machine, first epoch and epoch after the last of every time out of service, by machine and start."""
    rows = []
    for begins, ends in _BACK.items():
        back: dict[int, list[float]] = {}
        for machine, time_s in _events(day, ends):
            back.setdefault(machine, []).append(time_s)
        for machine, time_s in _events(day, begins):
            end_s = min((later_s for later_s in back.get(machine, ()) if later_s >= time_s), default=world.horizon_s)
            rows.append((machine, int(time_s // world.epoch_s), int(np.ceil(end_s / world.epoch_s))))
    return np.array(sorted(rows), np.int64).reshape(-1, 3)


def _events(day: Day, kind: str) -> list[tuple[int, float]]:
    """Return machine and time of every event of a kind."""
    timeline = day.timeline
    which = timeline.event_kind == KINDS.index(kind)
    return list(zip(timeline.event_machine[which].tolist(), timeline.event_time_s[which].tolist(), strict=True))
