"""How far machines and services depart from what is typical: priors, and what own measurements and public scores add.

Logarithms are normal around spec sheets and published measurements of other services. The posterior is normal at its
mode (Gauss-Newton and Laplace; Gelman et al. 2013, section 13.3). A public score says how fast a server model is beyond
its spec sheet, as far as the benchmark is like the service; that likeness is the covariance of the two under the model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.crossplatform.costs import DepartingMachine, HardwareDepartures, ServiceDepartures
from models.arrays import Floats
from models.platforms import Platform

STEP = 1e-5
"""Of a derivative by difference."""
ROUNDS = 4
"""Gauss-Newton steps; the model is nearly linear in logarithms."""
SCALES = np.array([1.0, 1.4, 2.0, 2.8])
"""How many times farther than `Priors` say machines may depart from spec sheets; scores and logs weigh these."""
SCALE_PRIOR = np.array([0.55, 0.25, 0.15, 0.05])


@dataclass(frozen=True, slots=True)
class Priors:
    """What is known before anything is measured: deviations of logarithms, medians of services.

    Three of the first five, of hardware, are assumptions without a published source, and they are the very deviations
    with which the simulated worlds that come with this testbed are drawn: there they are right by construction. Worlds
    where they are wrong are what ``world/prediction`` shows. `SCALES` allow for hardware that departs farther.
    """

    cpi_log_sd: float = 0.12
    """Core CPI of a server model around its spec sheet's: a judgement of 0.10, and that a service of a few types suits
    a core better or worse than others do, as single programs do by 0.05 to 0.20 (Chen 2024-2026)."""
    latency_log_sd: float = 0.12
    """Every latency around its spec sheet's; a judgement, as the simulated worlds have it."""
    overlap_log_sd: float = 0.17
    """Misses at once, between server models: a judgement of 0.10, and reordering windows of 40 to 512 entries over
    which misses at once grow with a quarter of their logarithm, another judgement: 0.14."""
    held_log_sd: float = 0.10
    """Share of its caches that holds a service's data, between server models: associativity, code, kernel; a judgement,
    as the simulated worlds have it."""
    smt_log_sd: float = 0.20
    """Slowdown by a busy sibling, between server models; a judgement, as the simulated worlds have it."""
    core: tuple[float, float] = (0.0, 0.15)
    """Log core CPI of a service relative to that of spec sheets; a judgement."""
    overlap: tuple[float, float] = (0.30, 0.20)
    """Log of misses at once, from literature: out-of-order cores have 1.12 to 1.3 times those of in-order ones in
    commercial workloads, about 1.5 in all (Chou, Fahs and Abraham 2004; Chou, Spracklen and Abraham 2005). Its
    deviation is a judgement."""
    branches: tuple[float, float] = (-5.3, 0.5)
    """Log of mispredicted branches per instruction; a judgement: 2 to 12 in a thousand."""
    written: tuple[float, float] = (-3.0, 0.5)
    """Log of the share of first-level misses to lines that others write; a judgement, 2 to 12%: literature says no more
    than that in Java middleware much of the working set is shared between processors (Karlsson et al. 2003)."""
    smt: tuple[float, float] = (-0.4, 0.4)
    """Log of the growth of core CPI by a busy sibling, from literature: two threads do up to 1.3 times the work (Marr
    et al. 2002). Its deviation is a judgement."""
    exponent: tuple[float, float] = (-0.83, 0.10)
    """Exponent of the miss curve, from literature: −0.83, −0.77, −0.89 in three services (Stewart et al. 2008, section
    3.3); their deviation of 0.06 is widened, a judgement."""
    curve_log_sd: float = 0.05
    """Misses at one cache size around the power law, from literature: residuals up to 0.09 (the same, table 2)."""
    memory: tuple[float, float] = (0.0, 0.5)
    """Log of the growth of memory's latency with its traffic, in units of what was measured; a judgement."""
    likeness: float = 0.8
    """Correlation of service and benchmark in the traits that no counter tells, both on the same kind of server; a
    judgement."""
    score_log_sd: float = 0.03
    """What the model of a busy machine is wrong by on each platform; a judgement."""

    def of_hardware(self) -> Floats:
        """Return deviations in the order of `HardwareDepartures`: (7,)."""
        latencies = [self.latency_log_sd] * 3
        return np.array([self.cpi_log_sd, *latencies, self.overlap_log_sd, self.held_log_sd, self.smt_log_sd])

    def of_software(self, exponent_sd: float) -> tuple[Floats, Floats]:
        """Return means and deviations in the order of `ServiceDepartures`: (6,) each."""
        both = np.array([self.core, self.overlap, self.branches, self.written, self.smt, (0.0, exponent_sd)])
        return both[:, 0], both[:, 1]


COMMON = 2 * len(ServiceDepartures._fields) + 2
"""Parameters before those of machines: service, benchmark, memory's queueing, the benchmark's work."""


def model_of(platform: Platform) -> str:
    """Return the server model of which a platform is a configuration."""
    return platform.variant_of or platform.name


@dataclass(frozen=True, slots=True, eq=False)
class Parameters:
    """Named columns of D parameter vectors; each name gives (D, 1) arrays."""

    models: tuple[str, ...]
    among: Floats
    """(D, K): service, benchmark, memory's queueing, the benchmark's work, then server models one after another."""

    def machine(self, platform: Platform) -> DepartingMachine:
        """Return a platform with its server model's departures."""
        return DepartingMachine(platform, HardwareDepartures(*self._columns(self.places(model_of(platform)))))

    def service(self) -> ServiceDepartures:
        """Return the service's traits."""
        return ServiceDepartures(*self._columns(np.arange(len(ServiceDepartures._fields))))

    def benchmark(self) -> ServiceDepartures:
        """Return the benchmark's traits."""
        return ServiceDepartures(
            *self._columns(len(ServiceDepartures._fields) + np.arange(len(ServiceDepartures._fields)))
        )

    def memory(self) -> Floats:
        """Return how memory's latency grows with traffic, logarithm."""
        return self.among[:, COMMON - 2 : COMMON - 1]

    def benchmark_work(self) -> Floats:
        """Return what the benchmark does beyond its published instructions, logarithm."""
        return self.among[:, COMMON - 1 : COMMON]

    def places(self, model: str) -> NDArray[np.intp]:
        """Return which parameters are those of a server model."""
        return (
            COMMON
            + len(HardwareDepartures._fields) * self.models.index(model)
            + np.arange(len(HardwareDepartures._fields))
        )

    def _columns(self, places: NDArray[np.intp]) -> list[Floats]:
        return [self.among[:, place, None] for place in places]


@dataclass(frozen=True, slots=True, eq=False)
class Departures:
    """A normal posterior of the parameters."""

    models: tuple[str, ...]
    mean: Floats
    covariance: Floats
    hardware_sd: Floats
    """(7,) deviations of a server model of which nothing is known."""

    def including(self, model: str) -> "Departures":
        """Return the posterior with a server model of which nothing is known, if it is not yet there."""
        if model in self.models:
            return self
        known, more = self.mean.size, self.hardware_sd.size
        covariance = np.zeros((known + more, known + more))
        covariance[:known, :known] = self.covariance
        covariance[known:, known:] = np.diag(self.hardware_sd**2)
        mean = np.append(self.mean, np.zeros(more))
        return Departures((*self.models, model), mean, covariance, self.hardware_sd)


def prior(
    models: Sequence[str], priors: Priors, exponent_sd: tuple[float, float], work_sd: float
) -> tuple[Floats, Floats]:
    """Return mean and covariance of all parameters before measurements: (K,) and (K, K).

    Parameters
    ----------
    models : server models
    priors : as documented there
    exponent_sd : of the miss curves of service and benchmark
    work_sd : of the log of the benchmark's work per request
    """
    hardware = np.tile(priors.of_hardware(), len(models))
    service, benchmark = (priors.of_software(sd) for sd in exponent_sd)
    mean = np.concatenate([service[0], benchmark[0], [priors.memory[0], 0.0], np.zeros(hardware.size)])
    sd = np.concatenate([service[1], benchmark[1], [priors.memory[1], work_sd], hardware])
    covariance = np.diag(sd**2)
    alike = np.arange(len(ServiceDepartures._fields) - 1)
    other = alike + len(ServiceDepartures._fields)
    covariance[alike, other] = covariance[other, alike] = priors.likeness * sd[alike] * sd[other]
    return mean, covariance


def jacobian(
    of: Callable[[Floats], Floats], at: Floats, places: NDArray[np.intp] | None = None
) -> tuple[Floats, Floats]:
    """Return a vectorised function's values at a point and their derivatives there.

    Parameters
    ----------
    of : from (D, K) parameter vectors to (D, n) values
    at : (K,) point
    places : (P,) parameters to derive by; None: all

    Returns
    -------
    (n,) values and (n, P) derivatives
    """
    steps = np.eye(at.size) if places is None else np.eye(at.size)[places]
    shifted = of(np.vstack([at, at + STEP * steps]))
    return shifted[0], (shifted[1:] - shifted[0]).T / STEP


def posterior(
    of: Callable[[Floats], Floats],
    measured: tuple[Floats, Floats],
    before: tuple[Floats, Floats],
    first_hardware: int,
) -> tuple[Floats, Floats, float]:
    """Return the mean and covariance of parameters given measurements, and how far machines depart.

    The deviations of machines are common to all: the scores say by how much they are greater than assumed. The
    posterior is that of the mixture over `SCALES`, by its first two moments. Where measurements contradict the prior at
    every scale, chi-square per measurement above 1, all deviations count as too small by its root (Birge 1932, Physical
    Review 40): intervals widen, while the mean stays where the wrong prior has drawn it.

    Parameters
    ----------
    of : from (D, K) parameter vectors to (D, n) values
    measured : (n,) values and their deviations
    before : (K,) mean and (K, K) covariance of the prior
    first_hardware : from which parameter on they are departures of machines

    Returns
    -------
    (K,), (K, K), root mean square scale
    """
    modes, weights, contradictions = [], [], []
    at = before[0]
    for scale, weight in zip(SCALES, SCALE_PRIOR, strict=True):
        farther = np.where(np.arange(at.size) < first_hardware, 1.0, scale)
        supposed = before[0], before[1] * np.outer(farther, farther)
        at, covariance, chi_square, log_evidence = _mode(of, measured, supposed, at)
        modes.append((at, covariance))
        weights.append(np.log(weight) + log_evidence)
        contradictions.append(chi_square / measured[0].size)
    share = np.exp(np.array(weights) - max(weights))
    share /= share.sum()
    middle = np.einsum("s,sk->k", share, np.stack([mode[0] for mode in modes]))
    spread = [mode[1] + np.outer(mode[0] - middle, mode[0] - middle) for mode in modes]
    wider = max(1.0, min(contradictions))
    return middle, wider * np.einsum("s,skl->kl", share, np.stack(spread)), float(np.sqrt(wider * share @ SCALES**2))


def _mode(
    of: Callable[[Floats], Floats], measured: tuple[Floats, Floats], before: tuple[Floats, Floats], start: Floats
) -> tuple[Floats, Floats, float, float]:
    """Return mode, covariance there, chi-square before and log evidence of a normal prior and errors, from a start."""
    (observed, seen_sd), (mean, variance), at = measured, before, start
    for _ in range(ROUNDS):
        values, slopes = jacobian(of, at)
        innovation = observed - values + slopes @ (at - mean)
        total = slopes @ variance @ slopes.T + np.diag(seen_sd**2)
        gain = np.linalg.solve(total, slopes @ variance).T
        at = mean + gain @ innovation
    covariance = variance - gain @ slopes @ variance
    chi_square = float(innovation @ np.linalg.solve(total, innovation))
    return at, (covariance + covariance.T) / 2, chi_square, -0.5 * (chi_square + float(np.linalg.slogdet(total)[1]))
