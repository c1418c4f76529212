"""Visited machines: what the fleet's physics says of the residents of each, and what it does of its own."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.arrays import Bools, Floats, Ints
from models.profiling.images import MODULE
from models.profiling.programs import ProgramArrays
from sim.fleet.arms import Block
from sim.fleet.day import Day
from sim.profiling.addresses import Addresses
from sim.profiling.collector import VisitPlan
from sim.profiling.rates import NOMINAL_CPI, NOMINAL_PER_INSTRUCTION
from sim.profiling.register import Register
from sim.profiling.rows import CounterRows

OWN = 2
"""Processes of each machine besides its residents: its kernel's and its daemon's, the last two."""


@dataclass(frozen=True, slots=True, eq=False)
class Visited:
    """Arrays over the V answered visits to a block's machines, and over the N residents of all of them.

    `first` (V + 1) numbers the processes of each visit: residents, then the machine's own.
    """

    visit: Ints
    """(V,) number in the plan."""
    machine: Ints
    epoch: Ints
    platform: Ints
    collection: Ints
    new_kernel: Ints
    frequency_hz: Floats
    """(V,) mean of busy threads, base frequency where none is."""
    vcpus: Floats
    first: Ints
    of: Ints
    """(N,) the visit, 0 to V − 1."""
    process: Ints
    """(N,) number among the block's processes."""
    stay: Ints
    rows: CounterRows
    totals: Floats
    """(N, 5) cycles, instructions, misses, CPU seconds, cycles but for memory stalls."""

    @property
    def count(self) -> int:
        """Number of visits."""
        return int(self.visit.size)

    @property
    def own(self) -> Ints:
        """(V, 2) numbers of each machine's own processes."""
        return self.first[1:, None] - OWN + np.arange(OWN)

    @property
    def busy(self) -> Bools:
        """(V,) whether any resident ran."""
        return np.bincount(self.of, self.totals[:, 3], self.count) > 0

    def visit_of(self, process: Ints | NDArray[np.int32]) -> Ints:
        """Return the visit, 0 to V − 1, that each process was seen on.

        Parameters
        ----------
        process : (n,) array of numbers among the block's processes
        """
        return np.searchsorted(self.first, process, side="right") - 1


def visited(day: Day, register: Register, plan: VisitPlan, block: Block, rows: CounterRows) -> Visited:
    """Return what happened on the visited machines of a block.

    Parameters
    ----------
    day, register, plan : the fleet and the visits
    block : of the arm that was run with the plan's answered visits
    rows : all counter rows of the day
    """
    answered = plan.answered
    bounds = np.searchsorted(plan.machine[answered], [block.machines.start, block.machines.stop])
    visit = answered[slice(*bounds)]
    machine, epoch = plan.machine[visit], plan.epoch[visit]
    platform = register.platform_at(machine, epoch)
    of, slot = np.nonzero(block.visit_rows >= 0)
    row = int(day.row_start[block.stays.start]) + block.visit_rows[of, slot]
    totals = block.visit_sums[of, slot]
    sheets = [day.world.sheets[name] for name in register.platform_names]
    base = np.array([sheet.base_frequency_hz for sheet in sheets])[platform]
    cycles, cpu_s = (np.bincount(of, totals[:, i], visit.size) for i in (0, 3))
    visits = np.arange(visit.size + 1)
    return Visited(
        visit=visit,
        machine=machine,
        epoch=epoch,
        platform=platform,
        collection=plan.collection[visit],
        new_kernel=register.kernel_at(machine, epoch),
        frequency_hz=np.where(cpu_s > 0, cycles / np.where(cpu_s > 0, cpu_s, 1.0), base),
        vcpus=np.array([sheet.vcpus for sheet in sheets], np.float64)[platform],
        first=np.searchsorted(of, visits) + OWN * visits,
        of=of,
        process=np.arange(of.size) + OWN * of,
        stay=day.order[np.searchsorted(day.row_start, row, side="right") - 1],
        rows=rows.take(row),
        totals=totals,
    )


APPLICATIONS = ("[kernel]", "[daemons]")
"""The machine's own processes, as applications."""
DAEMONS = 1
"""The one of them that profiles, and that is charged with what samples cost."""
SHARES = (0.002, 0.01)
"""Share of a machine's hardware threads that each keeps busy."""
THREADS = (0, 6)
"""Threads of each that wait most of the time."""
OWN_SHARE = sum(SHARES)
"""Both together: what no instance's counters hold."""
DAEMON_ZIPF = 1.0
"""How fast the shares of the daemon's functions fall."""


def own_functions(programs: ProgramArrays, addresses: Addresses) -> tuple[tuple[Ints, Floats], tuple[Ints, Floats]]:
    """Return the functions of each own process and their shares: the kernel's mix is that of the mean program.

    Parameters
    ----------
    programs : whose kernel functions are averaged
    addresses : code of all images
    """
    code = addresses.code
    kernel = np.flatnonzero(code.image <= MODULE)
    weight = np.bincount(programs.function, programs.weight[0], code.count)[kernel]
    daemon = np.flatnonzero(code.image == addresses.daemon)
    zipf = np.arange(1.0, daemon.size + 1)[::-1] ** -DAEMON_ZIPF
    return (kernel, weight / weight.sum()), (daemon, zipf / zipf.sum())


def own_events(cycles: Floats, weights: Floats, events: tuple[str, ...]) -> Floats:
    """Return the events of an own process by function, all in fixed proportion to its cycles.

    Parameters
    ----------
    cycles : (V,) array, on each machine
    weights : (F,) shares of its functions
    events : generic events

    Returns
    -------
    (V, F, K) array

    Examples
    --------
    >>> own_events(np.array([100.0]), np.array([0.75, 0.25]), ("cycles", "instructions"))
    array([[[75., 60.],
            [25., 20.]]])
    """
    per_cycle = [1.0 if event == "cycles" else NOMINAL_PER_INSTRUCTION[event] / NOMINAL_CPI for event in events]
    return np.asarray(cycles[:, None, None] * weights[:, None] * np.array(per_cycle))
