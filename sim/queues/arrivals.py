"""When requests arrive from outside: a renewal process in operational time, at a rate that varies and bursts."""

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats
from models.errors import InputError
from models.queues.world import Arrivals, Bursts, LoadPoint
from models.randomness import stream
from sim.queues.distributions import LEAST_CV, gamma


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate over time, a straight line in each piece; jumps are where one piece ends and the next begins.

    Piece i runs from ``time_s[i]`` to ``time_s[i + 1]``, the rate from ``begin_per_s[i]`` to ``end_per_s[i]``.
    """

    time_s: Floats
    begin_per_s: Floats
    end_per_s: Floats

    def expected(self) -> Floats:
        """Return the expected number of arrivals up to each time, the integral of the rate.

        Returns
        -------
        (pieces + 1,) array, non-decreasing, from 0
        """
        pieces = (self.begin_per_s + self.end_per_s) / 2 * np.diff(self.time_s)
        return np.concatenate(([0.0], np.cumsum(pieces)))

    def times(self, expected: Floats) -> Floats:
        """Return when the expected number of arrivals reaches each value: the inverse of the integral, exact.

        In a piece with rate r + s·x the integral y = r·x + s·x²/2 has the root x = 2y / (r + √(r² + 2sy)), in the form
        that loses no digits (Press et al. 2007, Numerical Recipes, section 5.6).

        Parameters
        ----------
        expected : (n,) array, non-decreasing, from 0 to the integral over all pieces

        Returns
        -------
        (n,) array, seconds, non-decreasing
        """
        cumulative, length_s = self.expected(), np.diff(self.time_s)
        piece = np.clip(np.searchsorted(cumulative, expected, "right") - 1, 0, len(length_s) - 1)
        within = expected - cumulative[piece]
        begin, slope = self.begin_per_s[piece], ((self.end_per_s - self.begin_per_s) / length_s)[piece]
        denominator = begin + np.sqrt(np.maximum(begin**2 + 2 * slope * within, 0.0))
        after_s = np.divide(2 * within, denominator, out=np.zeros_like(within), where=denominator > 0)
        return np.maximum.accumulate(self.time_s[piece] + np.minimum(after_s, length_s[piece]))


def rate(arrivals: Arrivals, horizon_s: float, seed: int) -> Rate:
    """Return the rate of arrivals over the horizon: mean rate times load curve times bursts.

    The load curve may jump: of two points at one time, the first ends what was before and the second begins what is
    after. The bursts begin in equilibrium, and leave the mean rate as it is (a two-state Markov-modulated process;
    Fischer and Meier-Hellstern 1993, Performance Evaluation 18).

    Parameters
    ----------
    arrivals : mean rate, load curve and bursts
    horizon_s : seconds, above 0
    seed : of the bursts
    """
    switch_s, first = _switches(arrivals.bursts, horizon_s, seed)
    load_s = np.array([point.time_s for point in arrivals.load])
    if (back := np.flatnonzero(np.diff(load_s) < 0)).size:
        i = int(back[0]) + 1
        raise InputError(f"load: point {i} at {load_s[i]} s is earlier than the one before, at {load_s[i - 1]} s")
    inside_s = np.concatenate((load_s, switch_s))
    time_s = np.unique(np.concatenate(([0.0, horizon_s], inside_s[(inside_s > 0) & (inside_s < horizon_s)])))
    begin, end = _load(arrivals.load, time_s)
    now = first[np.searchsorted(switch_s, time_s[:-1], "right")] * arrivals.rate_per_s
    return Rate(time_s, begin * now, end * now)


def _load(points: tuple[LoadPoint, ...], time_s: Floats) -> tuple[Floats, Floats]:
    """Return the load curve at the begin and at the end of each piece between consecutive times."""
    if not points:
        return np.ones(len(time_s) - 1), np.ones(len(time_s) - 1)
    at_s, factor = np.array([[point.time_s, point.factor] for point in points]).T
    before = np.searchsorted(at_s, time_s[:-1], "right") - 1  # the last point of several at one time
    left, right = np.maximum(before, 0), np.minimum(before + 1, len(points) - 1)
    span_s = at_s[right] - at_s[left]
    slope = np.divide(factor[right] - factor[left], span_s, out=np.zeros(len(left)), where=span_s > 0)
    begin, end = (factor[left] + slope * (edge - at_s[left]) for edge in (time_s[:-1], time_s[1:]))
    return np.maximum(begin, 0.0), np.maximum(end, 0.0)


def _switches(bursts: Bursts | None, horizon_s: float, seed: int) -> tuple[Floats, Floats]:
    """Return when calm and burst alternate, and the relative rate before the first, after the first, … of these."""
    if bursts is None:
        return np.empty(0), np.ones(1)
    rng = stream(seed, "bursts")
    cycle_s = bursts.burst_s + bursts.calm_s
    calm = cycle_s / (bursts.calm_s + bursts.factor * bursts.burst_s)
    levels, lengths_s = np.array([calm, calm * bursts.factor]), np.array([bursts.calm_s, bursts.burst_s])
    state = int(rng.random() * cycle_s < bursts.burst_s)
    order = np.array([state, 1 - state])
    spells = np.empty(0)
    while spells.sum() < horizon_s:
        more = rng.standard_exponential((1 + int(horizon_s / cycle_s), 2)) * lengths_s[order]
        spells = np.concatenate((spells, more.ravel()))
    return np.cumsum(spells), levels[order[np.arange(len(spells) + 1) % 2]]


def arrival_times(arrivals: Arrivals, horizon_s: float, seed: int, name: str = "arrivals") -> Floats:
    """Return when requests, or sessions, arrive: none after the horizon.

    Gamma gaps of mean 1 in operational time are mapped through the inverse of the integrated rate (Gerhardt and Nelson
    2009, INFORMS Journal on Computing 21, "inversion"). The first gap is that of a process long under way (Cox 1962,
    Renewal Theory, chapter 5), so that the expected number up to any time is the integrated rate.

    Parameters
    ----------
    arrivals : rate, variability of the gaps, load curve and bursts
    horizon_s : seconds, above 0
    seed : all random draws follow from it
    name : of the random stream of the gaps

    Returns
    -------
    (n,) array, seconds, non-decreasing, below `horizon_s`
    """
    curve = rate(arrivals, horizon_s, seed)
    total = float(curve.expected()[-1])
    moments = _moments(total, arrivals.cv, stream(seed, name))
    arrival_s = curve.times(moments)
    return arrival_s[arrival_s < horizon_s]


def _moments(total: float, cv: float, rng: np.random.Generator) -> Floats:
    """Return the arrivals of a stationary renewal process of rate 1 on 0 to `total`."""
    # The gap that covers time 0 is drawn in proportion to its length: a gamma variable of shape one higher.
    covering = float(rng.standard_gamma(1 + 1 / cv**2) * cv**2) if cv >= LEAST_CV else 1.0
    gaps = np.array([covering * rng.random()])
    while (reached := float(gaps.sum())) < total:
        missing = total - reached
        more = gamma(rng, 1.0, cv, int(missing + 6 * cv * np.sqrt(missing)) + 16)
        gaps = np.concatenate((gaps, more))
    moments = np.cumsum(gaps)
    return moments[moments < total]
