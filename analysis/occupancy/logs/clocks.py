"""Stamps without a zone: clocks that were set back by an hour, and what the zone makes of them."""

from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from models.arrays import Floats
from models.errors import InputError

HOUR_S = 3600.0
_NEAR = 0.1
"""A step back within a tenth of an hour is one."""
_LOOKED_AT = 20
"""Rows after the step that must all be as far back, or more."""


def set_back(stamp_s: Floats) -> int | None:
    """Return the row from which on stamps are an hour earlier than they should be, by the order of the rows.

    A log is nearly in order of time. Where the clock is set back, all rows that follow are an hour before the latest
    row above them, and no row before was.

    Parameters
    ----------
    stamp_s : (n,) array, seconds, in the order of the file; NaN or a very small number where there is none

    Examples
    --------
    >>> rows = np.arange(100.0) * 60
    >>> set_back(np.where(np.arange(100) < 70, rows, rows - 3600)), set_back(rows)
    (70, None)
    """
    known = np.flatnonzero(np.isfinite(stamp_s) & (stamp_s > -1e12))
    stamps = stamp_s[known]
    if len(stamps) < _LOOKED_AT:
        return None
    behind = np.maximum.accumulate(stamps) - stamps
    far = np.flatnonzero(behind > (1 - _NEAR) * HOUR_S)
    if not len(far):
        return None
    first = int(far[0])
    # What follows at once is as far behind, less the time that passes meanwhile; and nothing leaps forward again.
    after, since = behind[first : first + _LOOKED_AT], stamps[first:] - stamps[first]
    if len(after) < _LOOKED_AT or not np.all(np.abs(after + since[:_LOOKED_AT] - HOUR_S) < _NEAR * HOUR_S):
        return None
    leaps = np.diff(np.maximum.accumulate(since))
    return int(known[first]) if float(leaps.max()) < HOUR_S / 2 else None


def localised(times: pd.Series, zone: str) -> pd.Series:
    """Return stamps of a zone as points in time; an hour that comes twice is told apart by the order of the rows.

    Parameters
    ----------
    times : stamps without a zone, in the order of the file
    zone : such as Europe/Berlin

    Examples
    --------
    >>> twice = pd.to_datetime(pd.Series(["2024-10-27 02:30", "2024-10-27 02:10"] + ["2024-10-27 02:40"] * 30))
    >>> int(localised(twice, "UTC").dt.hour.iloc[0])
    2
    """
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise InputError(f"zone: should be a time zone such as Europe/Berlin, got {zone}") from None
    seconds = np.where(times.isna(), np.nan, times.astype("datetime64[us]").astype("int64") / 1e6)
    step = set_back(seconds)
    summer = np.arange(len(times)) < (len(times) if step is None else step)
    zoned: pd.Series = times.dt.tz_localize(zone, ambiguous=summer, nonexistent="shift_forward").dt.tz_convert("UTC")
    return zoned
