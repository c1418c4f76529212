"""One machine's fixed point, with everybody on one cache and one memory."""

import numpy as np

from sim.fleet import interference, slots
from sim.fleet.layout import Residents


def solved(hot, count, contention, latency_s):
    """Solve it in place; return memory latency, misses per second and the residual."""
    mark = np.zeros((slots.MARKS, hot.shape[1]), np.int64)
    nodes, scratch = np.array([latency_s]), np.zeros((interference.SCRATCH, max(1, hot.shape[1])))
    misses_per_s, residual = interference.solve(Residents(hot, mark, count), contention, nodes, scratch)
    return nodes[0], misses_per_s, residual
