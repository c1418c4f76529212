"""The machine database: what each machine is at a time, where it stands and when it is out of service."""

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints
from models.profiling.world import ProfileWorld
from sim.fleet.fleet import Arm, Day
from sim.fleet.timeline import KINDS
from sim.profiling.places import Places

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
        """Number of machines.

        Examples
        --------
        >>> ones = np.zeros((2, 2), np.int64), np.zeros(2, np.int64)
        >>> never, out = np.full(2, np.nan), np.empty((0, 3), np.int64)
        >>> Register(300.0, ("a",), *ones, ("x",), np.zeros(2, np.int64), ("k", "k"), never, out).count
        2
        """
        return int(self.datacentre.size)

    def platform_at(self, machine: Ints, epoch: Ints) -> Ints:
        """Return the platform that each machine is in that epoch, an index into `platform_names`.

        Examples
        --------
        >>> rebuilt = np.array([[0, 1]]), np.array([7])
        >>> never, out = np.full(1, np.nan), np.empty((0, 3), np.int64)
        >>> made = Register(300.0, ("a", "b"), *rebuilt, ("x",), np.zeros(1, np.int64), ("k", "k"), never, out)
        >>> made.platform_at(np.array([0, 0]), np.array([6, 7]))
        array([0, 1])
        """
        return np.asarray(self.platform[machine, (epoch >= self.feature_from[machine]).astype(np.int64)])

    def kernel_at(self, machine: Ints, epoch: Ints) -> Ints:
        """Return 1 where the machine has the new kernel at the start of that epoch, else 0.

        Examples
        --------
        >>> same = np.zeros((1, 2), np.int64), np.zeros(1, np.int64)
        >>> from_s, out = np.array([600.0]), np.empty((0, 3), np.int64)
        >>> made = Register(300.0, ("a",), *same, ("x",), np.zeros(1, np.int64), ("old", "new"), from_s, out)
        >>> made.kernel_at(np.array([0, 0]), np.array([1, 2]))
        array([0, 1])
        """
        return (epoch * self.epoch_s >= self.kernel_from_s[machine]).astype(np.int64)

    def down(self, machine: int, epoch: int) -> bool:
        """Return whether the machine is drained or broken in that epoch or a part of it.

        Examples
        --------
        >>> same = np.zeros((1, 2), np.int64), np.zeros(1, np.int64)
        >>> never, out = np.full(1, np.nan), np.array([[0, 3, 5]])
        >>> made = Register(300.0, ("a",), *same, ("x",), np.zeros(1, np.int64), ("k", "k"), never, out)
        >>> [made.down(0, epoch) for epoch in range(6)]
        [False, False, False, True, True, False]
        """
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

        Examples
        --------
        >>> same = np.zeros((2, 2), np.int64), np.zeros(2, np.int64)
        >>> never, out = np.full(2, np.nan), np.array([[0, 3, 5], [0, 4, 7]])
        >>> made = Register(300.0, ("a",), *same, ("x",), np.zeros(2, np.int64), ("k", "k"), never, out)
        >>> made.up_s(slice(0, 2), 4, 2)
        array([[ 900.,  300.],
               [1200., 1200.]])
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

    Examples
    --------
    >>> from models.fleet.world import Fleet, Population
    >>> from sim.fleet.fleet import nowhere, prepare
    >>> from sim.profiling.places import place
    >>> world = ProfileWorld(3, 900.0, 300.0, Fleet(20), Population(60, 50))
    >>> day = prepare(world)
    >>> made = machine_register(world, day, nowhere(day), place(world, day.machines))
    >>> made.platform_names, made.kernel_names, made.datacentre_names
    (('haswell_2698v3',), ('6.1.90', '6.6.30'), ('east', 'west'))
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
