"""Numbers as people write them: 500m, 1.5GiB, 12ms; and points in time, as ISO 8601 or counted from 1970."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from models.arrays import Bools, Floats

Scale = Literal["quantity", "duration"]
"""What a unit means: ``m`` is a thousandth of a quantity (as of Kubernetes' CPUs), a minute of a duration."""

QUANTITIES: Mapping[str, float] = {
    **{"n": 1e-9, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "m": 1e-3},
    **{letter: 10.0 ** (3 * place) for place, letter in enumerate(("k", "M", "G", "T", "P", "E"), 1)},
    **{f"{letter}i": 1024.0**place for place, letter in enumerate(("K", "M", "G", "T", "P", "E"), 1)},
    **{f"{letter}iB": 1024.0**place for place, letter in enumerate(("K", "M", "G", "T", "P", "E"), 1)},
    **{f"{letter}B": 10.0 ** (3 * place) for place, letter in enumerate(("k", "M", "G", "T", "P", "E"), 1)},
    **{"K": 1e3, "KB": 1e3, "B": 1.0, "%": 0.01},
}
"""Factors of quantities by their unit (the SI's prefixes, IEC 80000-13's, and what Kubernetes takes)."""
DURATIONS: Mapping[str, float] = {
    **{"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0},
    **{"m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0},
}
"""Seconds of a duration's unit."""
_WRITTEN = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-zµμ%]*)")
_FRACTION = re.compile(r"(\d[T ]\d\d:?\d\d:?\d\d),(?=\d)")
"""Of a time of day, with the comma after its seconds."""
_PADDED = r"[+-]?0[0-9]"
_EPOCHS = ((1e8, 1e11, 1.0), (1e11, 1e14, 1e3), (1e14, 1e17, 1e6), (1e17, 1e20, 1e9))
"""Stamps from here to there count units since 1970, so many to a second; all lie between 1973 and 5138."""
_NUMERIC = 0.5
"""A column is one of numbers if at least so large a share of its cells is."""


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """A column of texts as numbers.

    Attributes
    ----------
    value : (N,) float; NaN where a cell is no number
    scale : what the units of the column mean; None where there are none
    bare : (N,) cells without a unit, other than 0, beside others that are times or percentages; None where there are
        no such others
    """

    value: Floats
    scale: Scale | None = None
    bare: Bools | None = None


def numbers(texts: "pd.Series[str]", scale: Scale | None = None) -> Numbers:
    """Read a column of numbers with units or without.

    The whole column decides what ``m`` means: it is a minute beside any other unit of time, else a thousandth.

    Parameters
    ----------
    texts : cells, "" where there is none
    scale : what units mean, if that is known

    Examples
    --------
    >>> numbers(pd.Series(["500m", "2", "N/A"])).value.tolist()
    [0.5, 2.0, nan]
    >>> numbers(pd.Series(["5m", "30s"])).value.tolist()
    [300.0, 30.0]
    """
    codes, distinct = pd.factorize(texts)
    cells = list(map(str, distinct))
    value = pd.to_numeric(pd.Series(cells, dtype=object), errors="coerce").to_numpy(np.float64, copy=True)
    rest = np.flatnonzero(np.isnan(value))
    matches = {int(at): match for at in rest if (match := _WRITTEN.fullmatch(cells[at].strip()))}
    units = {match[2] for match in matches.values()} - {""}
    if not units:
        return Numbers(_values(value, codes))
    scale = scale or _scale(units)
    factors = DURATIONS if scale == "duration" else QUANTITIES
    for at, match in matches.items():
        value[at] = float(match[1]) * factors.get(match[2], np.nan) if match[2] else float(match[1])
    if scale != "duration" and "%" not in units:
        return Numbers(_values(value, codes), scale)
    bare = np.array([at not in matches or not matches[at][2] for at in range(len(cells))]) & (value != 0.0)
    return Numbers(_values(value, codes), scale, (bare & np.isfinite(value))[codes] & (codes >= 0))


def is_numeric(texts: "pd.Series[str]", value: Floats) -> bool:
    """Return whether a column is one of numbers, rather than of names of which some look like numbers.

    Examples
    --------
    >>> cells = pd.Series(["007", "012"])
    >>> is_numeric(cells, numbers(cells).value)
    False
    """
    filled = (texts != "").to_numpy()
    share = np.isfinite(value[filled]).mean() if filled.any() else 0.0
    return bool(share >= _NUMERIC) and not texts.str.match(_PADDED).any()


def with_points(texts: pd.Series) -> pd.Series:
    """Return points in time whose fractions of a second are after a point; ISO 8601 has a comma, too.

    Examples
    --------
    >>> with_points(pd.Series(["2026-01-01 09:54:00,040", "1,5"])).tolist()
    ['2026-01-01 09:54:00.040', '1,5']
    """
    return texts.str.replace(_FRACTION, r"\1.", regex=True)


def times_s(cells: pd.Series, zone: str = "UTC") -> tuple[Floats, bool]:
    """Read points in time: ISO 8601 with a zone or without, or counts since 1970 in s, ms, us or ns.

    Parameters
    ----------
    cells : texts, numbers or time stamps; "" or null where there is none
    zone : of stamps that name none; an IANA name

    Returns
    -------
    value : (N,) seconds since 1970 UTC; NaN where a cell is no point in time
    zoneless : whether a stamp named no zone

    Examples
    --------
    >>> times_s(pd.Series(["1970-01-02", "1970-01-01T01:00:00+01:00", "soon"]))[0].tolist()
    [86400.0, 0.0, nan]
    >>> times_s(pd.Series([1_700_000_000_123]))[0].tolist()
    [1700000000.123]
    """
    if isinstance(cells.dtype, np.dtype) and cells.dtype.kind in "iuf":
        return _since_1970(cells.to_numpy(np.float64)), False
    if not isinstance(cells.dtype, np.dtype) and isinstance(cells.dtype, pd.DatetimeTZDtype):
        return _seconds(cells), False
    codes, distinct = pd.factorize(cells)
    texts = with_points(pd.Series(distinct).astype(str))
    count = _since_1970(pd.to_numeric(texts, errors="coerce").to_numpy(np.float64))
    rest = np.isnan(count)
    if not rest.any():
        return _values(count, codes), False
    named = texts.str.contains(r"(?:[zZ]|[+-]\d\d:?\d\d)\s*$", regex=True).to_numpy() & rest
    bare = rest & ~named
    stamps = pd.to_datetime(texts.where(named), format="ISO8601", errors="coerce", utc=True)
    local = pd.to_datetime(texts.where(bare), format="ISO8601", errors="coerce")
    count[named] = _seconds(stamps)[named]
    count[bare] = _seconds(local.dt.tz_localize(zone, ambiguous="NaT", nonexistent="NaT"))[bare]
    return _values(count, codes), bool(np.isfinite(count[bare]).any())


def periods(time_s: Floats, length_s: float, zone: str = "UTC") -> Floats:
    """Return the number of the period in which each point in time lies, counted from 1970 in the zone's own time.

    Examples
    --------
    >>> periods(np.array([0.0, 86399.0, 86400.0]), 86400.0).tolist()
    [0.0, 0.0, 1.0]
    """
    if zone == "UTC":
        return np.floor(time_s / length_s)
    local = pd.to_datetime(pd.Series(time_s), unit="s", utc=True).dt.tz_convert(zone).dt.tz_localize(None)
    return np.floor(_seconds(local.dt.tz_localize("UTC")) / length_s)


def _scale(units: set[str]) -> Scale:
    unlike = units - {"m"}
    return "duration" if unlike and unlike <= DURATIONS.keys() else "quantity"


def _values(value: Floats, codes: "np.typing.NDArray[np.intp]") -> Floats:
    """Return the value of every cell; code -1 is a null."""
    return np.where(codes >= 0, value[codes], np.nan) if len(value) else np.full(len(codes), np.nan)


def _since_1970(count: Floats) -> Floats:
    """Return seconds of counts since 1970 in one unit, which their size tells; NaN of counts in none."""
    finite = count[np.isfinite(count)]
    if not len(finite):
        return np.full(len(count), np.nan)
    middle = float(np.median(finite))
    for low, high, per_s in _EPOCHS:
        if low <= middle < high:
            return np.asarray(count / per_s, dtype=np.float64)
    return np.full(len(count), np.nan)


def _seconds(stamps: "pd.Series[pd.Timestamp]") -> Floats:
    absent: Bools = stamps.isna().to_numpy()
    whole = stamps.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy("datetime64[ns]").astype(np.int64)
    return np.where(absent, np.nan, whole / 1e9)
