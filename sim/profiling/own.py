"""What a machine does of its own: housekeeping of the kernel, and the daemon that monitors and profiles."""

import numpy as np

from models.arrays import Floats, Ints
from models.profiling.images import MODULE
from models.profiling.programs import Programs
from sim.profiling.addresses import Addresses
from sim.profiling.rates import NOMINAL_CPI, NOMINAL_PER_INSTRUCTION

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


def own_functions(programs: Programs, addresses: Addresses) -> tuple[tuple[Ints, Floats], tuple[Ints, Floats]]:
    """Return the functions of each own process and their shares: the kernel's mix is that of the mean program.

    Parameters
    ----------
    programs : whose kernel functions are averaged
    addresses : code of all images

    Examples
    --------
    >>> from sim.profiling.images import example
    >>> of = example()
    >>> (_, kernel), (daemon, _) = own_functions(of.programs, of.addresses)
    >>> round(float(kernel.sum()), 12), of.addresses.code.name[daemon[1]]
    (1.0, 'fleetd::Loop::run')
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
