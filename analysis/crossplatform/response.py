"""Mean response time from service time: the published queueing term, and the same for k logical processors."""

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Floats
from models.platforms import Platform
from models.queues.birth_death import law, present

ROUNDING = 1e-12
"""Load that counts as full when it is this close: utilisations of 1 may be off by their last bits."""


def queueing(service_time_s: ArrayLike, rate_per_s: ArrayLike) -> Floats:
    """Return the mean wait of a request on one virtual processor: U² / (1 − U) / λ with U = s λ.

    This is the wait of M/M/1 (Stewart et al. 2008, section 4.1.4, with λ a rate); times the number of requests it is
    the paper's second term.

    Parameters
    ----------
    service_time_s : (m,) seconds, utilisation over arrival rate
    rate_per_s : (m,) or one, requests per second

    Returns
    -------
    (m,) array, seconds
        0 where nothing comes; infinity where more comes than can be served.
    """
    service, rate = np.broadcast_arrays(np.asarray(service_time_s, float), np.asarray(rate_per_s, float))
    used = service * rate
    with np.errstate(divide="ignore", invalid="ignore"):
        wait = service * used / (1.0 - used)
    return np.where(rate == 0.0, 0.0, np.where(used >= 1.0 - ROUNDING, np.inf, wait))


def thread_rates(platform: Platform, slower: ArrayLike) -> Floats:
    """Return the work per second of all busy logical processors together, in seconds of a thread alone on its core.

    Requests take idle cores first; from then on each further one shares a core, whose threads are slowed down.

    Parameters
    ----------
    platform : spec sheet, k logical processors
    slower : (n,) or one, how much longer a request takes while its siblings are busy, relative

    Returns
    -------
    (n, k) array
        While 1, 2, …, k are busy.
    """
    busy = np.arange(1.0, platform.vcpus + 1)
    more = platform.vcpus - platform.cores
    shared = platform.cores * np.maximum(busy - platform.cores, 0.0) / more if more else np.zeros_like(busy)
    full = platform.threads_per_core / (1.0 + np.atleast_1d(np.asarray(slower, float)))
    return np.asarray(np.minimum(busy, platform.cores) + shared * (full[:, None] - 1.0))


def busy(offered: ArrayLike, rates: Floats) -> Floats:
    """Return the mean number of busy logical processors in steady state.

    Poisson arrivals share k processors, at most one each, whose speed depends on how many are busy: a birth and death
    process, whatever the distribution of work (Kelly 1979, section 3.3).

    Parameters
    ----------
    offered : (n,) work that comes per second, in seconds of a processor
    rates : (n, k) or (1, k) work per second while 1, 2, …, k are busy, positive

    Returns
    -------
    (n,) array
        k where more comes than can be done.
    """
    return np.asarray(law(np.atleast_1d(offered), rates) @ np.arange(rates.shape[1] + 1.0))


def stay_s(platform: Platform, service_time_s: Floats, rate_per_s: Floats) -> Floats:
    """Return the mean time that a request is on logical processors or waits for them.

    They are k servers that requests share, not one large one: a request alone takes its whole CPU time, k times the
    service time of the machine. A busy sibling's slowdown is part of that: processors count as equally fast here.

    Parameters
    ----------
    platform : spec sheet
    service_time_s : (m,) seconds, utilisation over arrival rate
    rate_per_s : (m,) requests per second, positive

    Returns
    -------
    (m,) array, seconds
        Infinite where all processors are busy all the time.
    """
    offered = service_time_s * rate_per_s * platform.vcpus
    number, _ = present(offered, np.arange(1.0, platform.vcpus + 1))
    return np.where(offered >= platform.vcpus * (1.0 - ROUNDING), np.inf, number / rate_per_s)
