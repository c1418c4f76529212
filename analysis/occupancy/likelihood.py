"""How likely the departures of a log are under a policy, whatever the distribution of demands."""

import numpy as np
from scipy.special import betaln, gammaln, logsumexp

from analysis.occupancy.inversion import Reconstruction
from models.arrays import Floats

CLOSE_S = 1e-9
"""Demands that differ by less are the same."""
RESOLUTIONS = tuple(2**power for power in range(11))
"""Numbers of equal bins between 0 and the longest stay, and of bins equal in ratio."""
FLOOR = 1e-3
"""Least demand told apart on the ratio scale, relative to the longest stay."""


def log_likelihood(reconstruction: Reconstruction, longest_s: float, crowded: int, tick_s: float = 0.0) -> float:
    """Return the log density of a log's departures under a policy, given its arrivals.

    Demands are independent draws from a distribution that is not known. Departures are a one-to-one function of
    demands, and the derivative of a request's demand in its own departure is the rate at which it was served when it
    left; taken in order of departure no demand depends on a later departure, so the Jacobian is the product of these
    rates. It is what tells a policy that had to let this request leave next from one under which it might have been any
    of those present. Under `random` the rate comes with the probability of the choice that was made.
    The density of the demands is that of the sequence under histograms of many resolutions with a Dirichlet(1/2) prior
    (Krichevsky and Trofimov 1981) and under a gamma law less the price of its parameters (Schwarz 1978), mixed in equal
    parts: every distribution can be learnt, and none is learnt for free.

    Parameters
    ----------
    reconstruction : what the policy makes of the log; requests that have not left do not count
    longest_s : the longest stay in the log, seconds: no demand is larger
    crowded : departures while somebody waited: each may contradict the policy, how often is learnt with the rest
    tick_s : what stamps were rounded to. Demands are known no better, and those that happen to be multiples of it are
        no likelier for that: each is moved at random by up to a tick, alike under all policies

    Returns
    -------
    float
        Natural logarithm; differences between policies count, the larger explains the log better.
    """
    fit = reconstruction.fits & reconstruction.finished
    misfits = int(np.count_nonzero(~reconstruction.fits & reconstruction.finished))
    rates = float(np.log(reconstruction.rate[fit]).sum())
    crowded = max(crowded, misfits)
    stamps = float(betaln(misfits + 0.5, crowded - misfits + 0.5) - betaln(0.5, 0.5) - misfits * np.log(longest_s))
    moved_s = np.random.default_rng(0).uniform(-1.0, 1.0, len(fit))[fit] * tick_s
    return rates + stamps + _log_density(np.abs(reconstruction.demand_s[fit] + moved_s), longest_s)


def _log_density(demand_s: Floats, longest_s: float) -> float:
    """Return the log density of the demands under the mixture of histograms."""
    part = np.clip(demand_s / longest_s, 0.0, 1.0)
    small = part < FLOOR
    depth = np.log(part[~small])  # from log(FLOOR) to 0
    # Below the floor the density is level. Above it bins cover logarithms, so it is over the demand.
    sides = _counted(small.astype(np.float64), (2,))[0] - len(part) * np.log(2) - small.sum() * np.log(FLOOR)
    sides -= depth.sum() + len(depth) * np.log(-np.log(FLOOR))
    logs = _counted(part, RESOLUTIONS)
    logs += [sides + inside for inside in _counted(depth / np.log(FLOOR), RESOLUTIONS)]
    logs += [_gamma(np.maximum(part, FLOOR**2))]
    return float(logsumexp(logs) - np.log(len(logs)) - len(part) * np.log(longest_s))


def _counted(part: Floats, resolutions: tuple[int, ...]) -> list[float]:
    """Return the log density of points in 0..1 under histograms with a Dirichlet(1/2) prior.

    Numbers of bins are powers of two, rising: bins of a coarser histogram are sums of those of the finest.
    """
    finest, densities = resolutions[-1], []
    finely = np.bincount(np.minimum((part * finest).astype(np.int64), finest - 1), minlength=finest)
    for bins in resolutions:
        counts = finely.reshape(bins, -1).sum(axis=1)
        prior = gammaln(0.5 * bins) - gammaln(len(part) + 0.5 * bins) - bins * gammaln(0.5)
        densities.append(float(prior + gammaln(counts + 0.5).sum() + len(part) * np.log(bins)))
    return densities


def _gamma(part: Floats) -> float:
    """Return the log density of positive numbers under a gamma law, less the price of its parameters (Schwarz 1978)."""
    n, mean = len(part), float(part.mean()) if len(part) else 1.0
    if n < 2:
        return -np.inf
    mean_log = float(np.log(part).mean())
    gap = max(np.log(mean) - mean_log, 1e-4)
    shape = (3 - gap + np.sqrt((gap - 3) ** 2 + 24 * gap)) / (12 * gap)  # Minka (2002); within 1.5%
    fitted = (shape - 1) * mean_log - shape * (1 + np.log(mean / shape)) - gammaln(shape)
    return float(n * fitted - np.log(n))
