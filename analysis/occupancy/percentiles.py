"""Percentiles of response and waiting times, with bands for another day of the same load."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtrit

from analysis.occupancy.logs.log import in_seconds
from models.arrays import Floats, Ints

LEVELS = (0.5, 0.9, 0.95, 0.99, 0.999)
"""Percentiles that a table shows: p50 to p99.9."""
CONFIDENCE = 0.95
_BLOCKS = 12
"""Blocks of time that a log is divided into: their percentiles are drawn again. Shorter ones are no pieces by
themselves where servers are nearly full: with 40, brackets of p99 held 75% of simulated days, other days than those
that the documents count (`benchmarks/percentile_bands.py`)."""
_LEAST_BLOCKS = 8
"""With fewer blocks there is no band."""
_DRAWS = 500
_BINS = 2_000
"""Steps of the distribution that drawn percentiles are read from, each of as many requests."""
STEPS = np.linspace(0, 1, _BINS + 1)[1:]
"""Shares of the requests at the ends of these steps."""
TAIL = 10
"""A percentile beyond which fewer requests lie in the log has no band."""
_MOST_APART = 100.0
"""A band that ends further from the percentile than by this factor says nothing, and is left out."""


@dataclass(frozen=True, slots=True)
class Percentile:
    """One percentile, and where that of another day of such requests lies."""

    level: float
    """0..1: 0.99 is p99."""
    value_s: float
    low_s: float
    """NaN, as `high_s`, where the log is too short to tell."""
    high_s: float

    @property
    def name(self) -> str:
        """p50, p99, p99.9."""
        return f"p{100 * self.level:.4g}"

    def __str__(self) -> str:
        """Its value, with the band in brackets: 0.296 s (0.21 to 0.417)."""
        band = f" ({_three_digits(self.low_s)} to {_three_digits(self.high_s)})" if np.isfinite(self.high_s) else ""
        return in_seconds(self.value_s) + band


def _three_digits(value_s: float) -> str:
    text = f"{value_s:.3g}"
    return f"{float(text):,.0f}" if "e+" in text else text


def percentiles(
    time_s: Floats, at_s: Floats, levels: Sequence[float] = LEVELS, confidence: float = CONFIDENCE
) -> tuple[Percentile, ...]:
    """Return percentiles of times, with bands that hold those of another day.

    The band is for what another day of the same load shows, not for a limit of endless days: it has the error of this
    log's percentile and the other day's, both by drawing blocks of time with replacement (Kunsch 1989, circular), on
    the logarithm. Blocks keep requests together that waited in one queue. Few blocks say little about their spread:
    the drawn spread is widened as Student's t is against the normal. Its degrees of freedom are one more than Kish's
    effective number of blocks (1965) that hold the requests beyond the percentile: the p99 of a day is often made in
    one busy hour, and then other blocks say nothing of it.

    Parameters
    ----------
    time_s : (n,) response or waiting times, seconds, at least 0; NaN are left out
    at_s : (n,) when each request arrived, seconds
    levels : 0..1
    confidence : of the band

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> half, *_ = percentiles(rng.exponential(1.0, 10_000), np.arange(10_000.0), levels=[0.5])
    >>> half.name, bool(half.low_s < np.log(2) < half.high_s), bool(half.high_s / half.low_s < 1.2)
    ('p50', True, True)
    """
    known = ~np.isnan(time_s)
    times, arrived = time_s[known], at_s[known]
    if not len(times):
        return tuple(Percentile(level, np.nan, np.nan, np.nan) for level in levels)
    values = np.quantile(times, levels, method="inverted_cdf")
    first_s, span_s, counts = float(arrived.min()), float(np.ptp(arrived)), None
    if has_bands(len(times), span_s):
        edges = np.unique(np.quantile(times, STEPS, method="inverted_cdf"))
        counts = block_counts(times, arrived, first_s, span_s, edges)
    return banded(values, levels, len(times), None if counts is None else (counts, edges), confidence)


def banded(
    values_s: Floats,
    levels: Sequence[float],
    requests: int,
    blocks: tuple[Ints, Floats] | None,
    confidence: float = CONFIDENCE,
) -> tuple[Percentile, ...]:
    """Return percentiles with their bands.

    Parameters
    ----------
    values_s : (levels,) array, the percentiles
    levels : 0..1
    requests : how many there are
    blocks : as of `block_counts`, and the edges; None: the log is too short for bands
    confidence : of the band
    """
    if blocks is None:
        return tuple(
            Percentile(float(level), float(value), np.nan, np.nan)
            for level, value in zip(levels, values_s, strict=True)
        )
    drawn = _drawn(*blocks, np.asarray(levels, dtype=np.float64))
    rows = []
    for at, (level, value) in enumerate(zip(levels, values_s.tolist(), strict=True)):
        low, high = np.nan, np.nan
        if requests * (1 - level) >= TAIL and (drawn[:, at] > 0).all():
            low, high = _band(drawn[:, at], value, confidence, 1.0 + _blocks_beyond(*blocks, value))
        if high > _MOST_APART * value:
            low, high = np.nan, np.nan
        rows.append(Percentile(float(level), value, low, high))
    return tuple(rows)


def why_without(rows: Sequence[Percentile], requests: int, *, of_several: bool = False) -> str:
    """Return why some percentiles have no band, and how many requests would give them one; empty if all have one.

    Parameters
    ----------
    rows : percentiles
    requests : how many they are of
    of_several : whether it is said of several such logs at once, so that their own numbers of requests stay out

    Examples
    --------
    >>> p99, most = Percentile(0.99, 1.2, 1.0, 1.4), Percentile(0.999, 2.0, np.nan, np.nan)
    >>> why_without([p99, most], 5_000)
    'no bracket for p99.9: fewer than 10 of 5,000 requests beyond; 10,000 would give one'
    >>> why_without([p99], 5_000)
    ''
    >>> why_without([Percentile(0.5, 0.0, np.nan, np.nan), p99], 5_000)
    'no bracket for p50: 0 s in logs drawn from this one'
    >>> why_without([Percentile(0.99, 1.2, np.nan, np.nan)], 5_000)
    'no bracket for p99: made in so few stretches of time that this log does not tell what another day has'
    >>> why_without([most], 5_000, of_several=True)
    'no bracket for p99.9: fewer than 10 of the requests of each beyond; 10,000 would give one'
    """
    least = {row.name: max(int(np.ceil(TAIL / (1 - row.level) - 1e-6)), _LEAST_BLOCKS * TAIL) for row in rows}
    without = [row for row in rows if np.isnan(row.high_s) and np.isfinite(row.value_s)]
    short = [row.name for row in without if requests < least[row.name]]
    zero = [row.name for row in without if row.name not in short and row.value_s == 0]
    wide = [row.name for row in without if row.name not in short and row.value_s > 0]
    this, that = ("each", "they do") if of_several else ("this one", "this log does")
    whys = {f"0 s in logs drawn from {this}": zero}
    whys[f"made in so few stretches of time that {that} not tell what another day has"] = wide
    reasons = [f"no bracket for {_in_words(names)}: {why}" for why, names in whys.items() if names]
    if not short:
        return "; ".join(reasons)
    counts = [f"{number:,}" for number in sorted({least[name] for name in short})]
    those = "the requests of each" if of_several else f"{requests:,} request{'s' * (requests != 1)}"
    why = f"fewer than {TAIL} of {those} beyond"
    if requests < _LEAST_BLOCKS * TAIL:
        why = f"{those} {'is' if requests == 1 and not of_several else 'are'} too few"
    reasons.append(f"no bracket for {_in_words(short)}: {why}; {_in_words(counts)} would give one")
    return "; ".join(reasons)


def why_no_waiting(response: Sequence[Percentile], waiting: Sequence[Percentile]) -> str:
    """Return why percentiles of waiting have no band where those of the response have one; empty if all have one.

    Parameters
    ----------
    response, waiting : of the same levels; no waiting where it is not known

    Examples
    --------
    >>> p50, none = Percentile(0.5, 1.2, 1.0, 1.4), Percentile(0.5, 0.0, np.nan, np.nan)
    >>> why_no_waiting([p50], [none])
    'no bracket for waiting at p50: no request waited, so this log does not tell how long those of another day would'
    >>> why_no_waiting([p50], [p50]), why_no_waiting([p50], [])
    ('', '')
    """
    both = zip(response, waiting, strict=False)
    names = [own.name for own, wait in both if np.isnan(wait.high_s) and not np.isnan(own.high_s)]
    why = "no request waited, so this log does not tell how long those of another day would"
    return f"no bracket for waiting at {_in_words(names)}: {why}" if names else ""


def _in_words(texts: Sequence[str]) -> str:
    """Return two texts with ``and`` between them, of more the first and the last."""
    return " to ".join((texts[0], texts[-1])) if len(texts) > 2 else " and ".join(texts)


def has_bands(requests: int, span_s: float) -> bool:
    """Return whether a log of so many requests, which arrived within such a time, is long enough for bands."""
    return requests >= _LEAST_BLOCKS * TAIL and span_s > 0


def block_counts(times: Floats, arrived: Floats, first_s: float, span_s: float, edges: Floats) -> Ints:
    """Return how many times of each block of a log lie in each step of their distribution, (blocks, edges).

    Parameters
    ----------
    times, arrived : (n,) arrays, seconds, of all requests or of some: the counts add up
    first_s, span_s : the log's first arrival, and how long after it the last one came
    edges : (m,) increasing, the last times of the steps
    """
    block = np.minimum(((arrived - first_s) / span_s * _BLOCKS).astype(np.int64), _BLOCKS - 1)
    counts = np.zeros((_BLOCKS, len(edges)), dtype=np.int64)
    np.add.at(counts, (block, np.searchsorted(edges, times)), 1)
    return counts


def _blocks_beyond(counts: Ints, edges: Floats, value_s: float) -> float:
    """Return over how many blocks the requests are spread that take a percentile or longer (Kish 1965): 1 to all.

    Those of the whole step that ends at the percentile count.

    Examples
    --------
    >>> edges = np.array([1.0, 2.0])
    >>> _blocks_beyond(np.array([[9, 3], [9, 3], [9, 0]]), edges, 2.0)
    2.0
    """
    beyond = counts[:, np.searchsorted(edges, value_s) :].sum(axis=1).astype(np.float64)
    return float(beyond.sum() ** 2 / (beyond @ beyond))


def _band(drawn_s: Floats, value_s: float, confidence: float, freedom: float) -> tuple[float, float]:
    """Return where another day's percentile lies, given drawn ones: of both days' errors, on the logarithm."""
    half = len(drawn_s) // 2
    logs = np.log(drawn_s)
    apart = np.quantile(logs[:half] - logs[half : 2 * half], [(1 - confidence) / 2, (1 + confidence) / 2])
    tail = (1 + confidence) / 2
    wider = float(stdtrit(freedom, tail) / ndtri(tail))
    reach = wider * float(max(-apart[0], apart[1]))
    return value_s * float(np.exp(-reach)), value_s * float(np.exp(reach))


def _drawn(counts: Ints, edges: Floats, levels: Floats) -> Floats:
    """Return the percentiles of logs drawn from blocks of time, (draws, levels)."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, _BLOCKS, (2 * _DRAWS, _BLOCKS // 2))
    weight = np.zeros((2 * _DRAWS, _BLOCKS))
    for step in (0, 1):  # two blocks in a row, so that what goes on over the edge stays together
        np.add.at(weight, (np.arange(2 * _DRAWS)[:, None], (first + step) % _BLOCKS), 1.0)
    reached = np.cumsum(weight @ counts, axis=1)
    return _read_off(reached, levels, edges)


def _read_off(reached: Floats, levels: Floats, edges: Floats) -> Floats:
    """Return for each drawn log the edges that these shares of its requests do not exceed."""
    total = reached[:, -1:]
    place: Ints = np.stack([(reached < level * total - 1e-9).sum(axis=1) for level in levels], axis=1)
    return edges[np.minimum(place, len(edges) - 1)]
