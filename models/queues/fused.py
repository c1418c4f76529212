"""Open queues of any length in bounded memory: requests are drawn, served and tallied in one go.

Requests are drawn in blocks that fit a cache, and the compiled kernels of the array form carry on from block to block.
Memory follows how many are present at once, not how many are served.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Ints
from models.code.compiled import njit
from models.errors import InputError
from models.queues import kernels, slices
from models.queues.draws import Drawn, Traffic, fill, rows, traffic
from models.queues.kernels import JobBatch, QueueState
from models.queues.open import check_policy, check_servers
from models.queues.policies import PolicyName
from models.queues.slices import Ring
from models.queues.world import Distribution

BLOCK = 1 << 12
"""Requests drawn at once: what is known of them fits a core's own cache."""
LEAST, OCTAVES = -20, 40
"""Response times are told apart from 2**-20 s (a microsecond) over so many doublings; others count at the ends."""


class ResponseTally(NamedTuple):
    """What has been counted so far, by class.

    Without its lower `cut` bits, a float says its bin: its exponent and the first bits of its mantissa.
    """

    response: Floats
    """A row a class: number, mean and sum of squared deviations."""
    histogram: Ints
    total: Floats
    """Work done, and the last departure."""
    cut: int


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """What a simulated queue did, by class of request."""

    served: Ints
    """(classes,) requests served."""
    mean_s: Floats
    """(classes,) mean response time; 0 where none was served."""
    squares_s2: Floats
    """(classes,) sum of squared deviations of response times from their mean."""
    histogram: Ints
    """(classes, bins) response times; the first and the last bin also hold what is beyond the edges."""
    edges_s: Floats
    """(bins + 1,) edges of the bins: each doubling of time is cut into equal parts, exact in binary."""
    busy_s: float
    """Time served by all servers together."""
    span_s: float
    """Time from 0 to the last departure."""

    @property
    def requests(self) -> int:
        """Requests served in all classes."""
        return int(self.served.sum())

    @property
    def response_s(self) -> float:
        """Mean response time over all classes."""
        return float(self.served @ self.mean_s / self.requests)

    @property
    def variance_s2(self) -> float:
        """Variance of response times over all classes."""
        between = self.served @ (self.mean_s - self.response_s) ** 2
        return float((self.squares_s2.sum() + between) / self.requests)

    @property
    def mean_jobs(self) -> float:
        """Mean number of requests present from 0 to the last departure: their time there over the span."""
        return self.requests * self.response_s / self.span_s

    def quantile_s(self, share: float) -> float:
        """Return the upper edge of the bin in which that share of all response times is reached."""
        reached = np.cumsum(self.histogram.sum(axis=0)) >= share * self.requests
        return float(self.edges_s[1 + np.argmax(reached)])


@njit(cache=True, error_model="numpy")
def _settle(jobs: JobBatch, n: int, row: Ints, tally: ResponseTally) -> int:
    """Tally who has left and move the others to the front; return how many they are, and their new rows in `row`.

    Means and squares follow Welford (1962).
    """
    present, least, last = 0, (1023 + LEAST) << (52 - tally.cut), tally.histogram.shape[1] - 1
    bits = (jobs.departure_s[:n] - jobs.arrival_s[:n]).view(np.int64)
    for i in range(n):
        c, departure_s, row[i] = jobs.priority[i], jobs.departure_s[i], -1
        if np.isnan(departure_s):
            jobs.arrival_s[present], jobs.demand_s[present] = jobs.arrival_s[i], jobs.demand_s[i]
            jobs.start_s[present], jobs.departure_s[present] = jobs.start_s[i], np.nan
            jobs.priority[present], row[i] = c, present
            present += 1
            continue
        tally.total[0] += jobs.demand_s[i]
        tally.total[1] = max(tally.total[1], departure_s)
        tally.histogram[c, min(max((bits[i] >> tally.cut) - least, 0), last)] += 1
        tally.response[c, 0] += 1.0
        off = departure_s - jobs.arrival_s[i] - tally.response[c, 1]
        tally.response[c, 1] += off / tally.response[c, 0]
        tally.response[c, 2] += off * (departure_s - jobs.arrival_s[i] - tally.response[c, 1])
    return present


def _grown(jobs: JobBatch) -> JobBatch:
    """Return the rows with room for as many again."""
    return JobBatch._make(map(kernels.doubled, jobs))


def _serve(policy: PolicyName, state: QueueState | Ring, source: Traffic, requests: int, tally: ResponseTally) -> None:
    """Draw, serve and tally block by block."""
    kit: ModuleType = slices if policy == "rr" else kernels
    jobs, row, present, drawn = rows(BLOCK), np.empty(BLOCK, np.int64), 0, Drawn(0, 0.0)
    while drawn.requests < requests:
        n = min(row.size, present + requests - drawn.requests)
        drawn = fill(jobs, present, n, drawn, source)
        getattr(kit, policy)(jobs, state, present, n, drawn.requests == requests)
        present = _settle(jobs, n, row, tally)
        kit.renumber(state, row[:n])
        if 2 * present > row.size:
            jobs, state, row = _grown(jobs), kit.grown(state), np.empty(2 * row.size, np.int64)


def simulate(
    policy: PolicyName, rate_per_s: float, demand: Distribution, servers: int, requests: int, *, seed: int,
    quantum_s: float = 0.1, class_shares: Sequence[float] = (1.0,), per_octave: int = 32,
) -> Summary:  # fmt: skip
    """Serve requests drawn on the way and return what the queue did; memory does not grow with their number.

    The queue is empty at time 0, and the run ends when the last request has left. Beyond a block of requests memory
    follows how many are present.

    Parameters
    ----------
    policy : fcfs, ps, priority, srpt or rr
    rate_per_s, demand, seed, class_shares : as for `draws.traffic`; classes are told apart under every policy
    servers : k >= 1, of speed 1
    requests : how many are served, at least 1
    quantum_s : time slice of rr, seconds
    per_octave : bins of the histogram to each doubling of response time, a power of two

    Raises
    ------
    ValueError
        As `draws.traffic` does, and if the policy is unknown, there is no server, quantum or request, or `per_octave`
        is no power of two.

    Examples
    --------
    >>> queue = simulate("fcfs", 0.5, Distribution("exponential", mean=1.0), servers=1, requests=100_000, seed=1)
    >>> queue.requests, round(queue.response_s, 1)
    (100000, 2.0)
    """
    check_policy(policy)
    check_servers(servers, quantum_s)
    source = traffic(rate_per_s, demand, seed, class_shares)
    if requests < 1:
        raise InputError(f"requests is {requests}, at least 1 is needed")
    if per_octave < 1 or per_octave & (per_octave - 1):
        raise InputError(f"per_octave is {per_octave}, a power of two is needed")
    classes, bins = source.shares.size + 1, OCTAVES * per_octave
    cut = 53 - per_octave.bit_length()
    tally = ResponseTally(np.zeros((classes, 3)), np.zeros((classes, bins), np.int64), np.zeros(2), cut)
    state = slices.ring(BLOCK, servers, quantum_s) if policy == "rr" else kernels.line(BLOCK, servers)
    _serve(policy, state, source, requests, tally)
    octave, part = np.divmod(np.arange(bins + 1), per_octave)
    edges_s = np.ldexp(1.0 + part / per_octave, octave + LEAST)
    served, mean_s, squares_s2 = tally.response.T.copy()
    return Summary(served.astype(np.int64), mean_s, squares_s2, tally.histogram, edges_s, *map(float, tally.total))
