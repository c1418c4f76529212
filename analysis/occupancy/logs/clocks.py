"""Zones of stamps: clocks set back by an hour, what a zone makes of stamps without one, offsets that stamps say."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from models.arrays import Bools, Floats, Small
from models.errors import InputError

HOUR_S = 3600.0
_NEAR = 0.1
"""A step back within a tenth of an hour is one."""
_LOOKED_AT = 20
"""Rows after the step that must all be as far back, or more."""

_OFFSET = re.compile(r"(?:[T ]|:\d\d)\S*?(?:(?P<utc>[Zz])|\s*(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>\d\d)?)\]?$")
"""The offset at the end of a stamp: Z, +02:00, +0200 or +02."""
NO_OFFSET = -128
QUARTER_S = 900.0
_CHANGES_A_YEAR = 4
"""More changes of the offset are of several writers, not of clocks."""
_YEAR_S = 366 * 86_400.0


@dataclass(frozen=True, slots=True)
class OwnClock:
    """The clock that the stamps of a log were written by: its offset from UTC, from when on."""

    since_s: tuple[float, ...]
    """Seconds since 1970, increasing; the first offset holds before, too."""
    offset_s: tuple[float, ...]
    """Seconds by which the clock is ahead of UTC from then on."""
    others: int = 0
    """Stamps of another offset than the most frequent, if stamps of several are mixed; that one is `offset_s`."""

    @property
    def name(self) -> str:
        """The first offset, such as UTC+02:00."""
        return offset_name(self.offset_s[0]) + (" at first" if len(self.offset_s) > 1 else "")

    @property
    def matters(self) -> bool:
        """Whether it is not simply UTC."""
        return bool(self.others or any(self.offset_s))

    def note(self) -> str:
        """Return what must be known to read times by this clock."""
        by = f"times are by the offset that the stamps say, {offset_name(self.offset_s[0])}; --zone says another"
        if self.others:
            return f"{by}: {self.others:,} stamps have other offsets than that"
        changes = [
            f"{offset_name(offset)} from {datetime.fromtimestamp(since, UTC):%Y-%m-%d %H:%M} UTC on"
            for since, offset in zip(self.since_s[1:], self.offset_s[1:], strict=True)
        ]
        return f"{by}; the clock was changed: {', '.join(changes)}" if changes else by

    def ahead_s(self, time_s: Floats) -> Floats:
        """Return by how much the clock is ahead of UTC, seconds.

        Parameters
        ----------
        time_s : (n,) array, seconds since 1970

        Examples
        --------
        >>> OwnClock((0.0, 3600.0), (7200.0, 3600.0)).ahead_s(np.array([-1.0, 3599.0, 3600.0])).tolist()
        [7200.0, 7200.0, 3600.0]
        """
        place = np.searchsorted(np.array(self.since_s), time_s, side="right") - 1
        ahead: Floats = np.array(self.offset_s)[np.maximum(place, 0)]
        return ahead


@dataclass(frozen=True, slots=True)
class LogClock:
    """The clock by which the times of a log are told and understood: all of one answer by the same."""

    zone: str | None = None
    """As it was said; None: the log's own, or UTC."""
    own: OwnClock | None = None
    """The clock that the stamps say."""

    @property
    def name(self) -> str:
        """Whose times they are: Europe/Berlin, UTC+02:00, UTC."""
        return self.zone or (self.own.name if self.own is not None else "UTC")

    def local_s(self, time_s: Floats) -> Floats:
        """Return what the clock shows at times since 1970, as seconds since its own 1970."""
        if self.zone is None:
            return time_s if self.own is None else time_s + self.own.ahead_s(time_s)
        stamps = pd.to_datetime(time_s, unit="s", utc=True).tz_convert(zone_of(self.zone))
        local: Floats = (stamps.tz_localize(None) - pd.Timestamp(0)).total_seconds().to_numpy()
        return local

    def time_s(self, local_s: float) -> float:
        """Return when the clock shows a time, in seconds since 1970; the first time if it shows it twice.

        Examples
        --------
        >>> LogClock("Europe/Berlin").time_s(7200.0), LogClock(own=OwnClock((0.0,), (-3600.0,))).time_s(0.0)
        (3600.0, 3600.0)
        """
        if self.zone is not None:
            local = pd.Timestamp(local_s, unit="s")
            return float(local.tz_localize(zone_of(self.zone), ambiguous=True, nonexistent="shift_forward").timestamp())
        offsets = (0.0,) if self.own is None else self.own.offset_s
        shown_at = [local_s - offset for offset in offsets]
        right = [time for time in shown_at if abs(self.local_s(np.array([time]))[0] - local_s) < 1]
        return min(right, default=shown_at[0])

    def shown(self, time_s: float) -> str:
        """Return a time since 1970 as the clock shows it, to the second.

        Examples
        --------
        >>> LogClock().shown(3600.0), LogClock("Asia/Karachi").shown(3600.0)
        ('1970-01-01 01:00:00', '1970-01-01 06:00:00')
        """
        return datetime.fromtimestamp(float(self.local_s(np.array([time_s]))[0]), UTC).strftime("%Y-%m-%d %H:%M:%S")


BY_UTC = LogClock()


def zone_of(name: str) -> ZoneInfo:
    """Return a time zone.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise InputError(f"zone: should be a time zone such as Europe/Berlin, got {name}") from None


def offset_name(offset_s: float) -> str:
    """Return an offset from UTC as people write it.

    Examples
    --------
    >>> offset_name(7200.0), offset_name(-12_600.0), offset_name(0.0)
    ('UTC+02:00', 'UTC-03:30', 'UTC')
    """
    minutes = round(abs(offset_s) / 60)
    return f"UTC{'+' if offset_s > 0 else '-'}{minutes // 60:02d}:{minutes % 60:02d}" if minutes else "UTC"


def quarters_of(stamp: str) -> int:
    """Return the offset from UTC that a stamp says, in quarters of an hour; `NO_OFFSET` if it says none.

    Examples
    --------
    >>> [quarters_of(text) for text in ("[27/Nov/2026:10:00:00 +0200]", "2026-11-27T10:00:00Z", "2026-11-27 10:00:00")]
    [8, 0, -128]
    """
    match = _OFFSET.search(stamp)
    if match is None:
        return NO_OFFSET
    if match["utc"]:
        return 0
    minutes = 60 * int(match["hours"]) + int(match["minutes"] or 0)
    quarters = minutes // 15 * (-1 if match["sign"] == "-" else 1)
    return quarters if abs(quarters) < -NO_OFFSET else NO_OFFSET


def own_clock(stamp_s: Floats, quarters: Small) -> OwnClock | None:
    """Return the clock of stamps that say their offset; None if none does.

    Parameters
    ----------
    stamp_s : (n,) array, seconds since 1970
    quarters : (n,) array, their offsets in quarters of an hour, `NO_OFFSET` where there is none

    Examples
    --------
    >>> own_clock(np.array([30.0, 10.0, 20.0]), np.array([4, 8, 8], np.int8))
    OwnClock(since_s=(10.0, 30.0), offset_s=(7200.0, 3600.0), others=0)
    """
    known = (quarters != NO_OFFSET) & np.isfinite(stamp_s)
    if not known.any():
        return None
    stamps, offsets = stamp_s[known], quarters[known]
    if (offsets == offsets[0]).all():
        return OwnClock((float(stamps.min()),), (QUARTER_S * float(offsets[0]),))
    order = np.argsort(stamps, kind="stable")
    return own_clock_in([(stamps[order], offsets[order])], float(np.ptp(stamps)))


def own_clock_in(pieces: Iterable[tuple[Floats, Small]], span_s: float) -> OwnClock:
    """Return what `own_clock` does, of stamps that come piece by piece in order of time and all say their offset.

    Parameters
    ----------
    pieces : stamps and their offsets, of which there are some
    span_s : from the first stamp to the last

    Examples
    --------
    >>> first = np.array([10.0, 20.0]), np.array([8, 8], np.int8)
    >>> own_clock_in([first, (np.array([30.0]), np.array([4], np.int8))], 20.0)
    OwnClock(since_s=(10.0, 30.0), offset_s=(7200.0, 3600.0), others=0)
    """
    most = 1 + int(_CHANGES_A_YEAR * np.ceil(span_s / _YEAR_S))
    since, offsets, changes = list[float](), list[float](), 0
    counts, before = np.zeros(2 * -NO_OFFSET, np.int64), NO_OFFSET
    for stamps, quarters in pieces:
        begins = np.flatnonzero(np.diff(quarters.astype(np.int64), prepend=before))
        changes += len(begins)
        room = begins[: max(most - len(since), 0)]
        since += stamps[room].tolist()
        offsets += (QUARTER_S * quarters[room]).tolist()
        counts += np.bincount(quarters.astype(np.int64) - NO_OFFSET, minlength=len(counts))
        before = int(quarters[-1]) if len(quarters) else before
    if changes <= most:
        return OwnClock(tuple(since), tuple(offsets))
    usual = int(counts.argmax())
    return OwnClock((since[0],), (QUARTER_S * (usual + NO_OFFSET),), int(counts.sum() - counts[usual]))


def joined_clocks(clocks: Sequence[OwnClock | None]) -> OwnClock | None:
    """Return the clock of several logs; None if one of them says none."""
    told = [clock for clock in clocks if clock is not None]
    if not told or len(told) < len(clocks):
        return None
    points = sorted(
        (since, offset) for clock in told for since, offset in zip(clock.since_s, clock.offset_s, strict=True)
    )
    changed = [point for at, point in enumerate(points) if at == 0 or point[1] != points[at - 1][1]]
    others = sum(clock.others for clock in told)
    return OwnClock(tuple(since for since, _ in changed), tuple(offset for _, offset in changed), others)


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
    return set_back_in([stamp_s])


def set_back_in(pieces: Iterable[Floats]) -> int | None:
    """Return what `set_back` does, of stamps that come piece by piece.

    Examples
    --------
    >>> rows = np.arange(100.0) * 60
    >>> set_back_in([rows[:70], rows[70:75] - 3600, rows[75:] - 3600])
    70
    """
    first, row, count, latest_s, begun_s, top_s, leap_s = None, 0, 0, -np.inf, 0.0, -np.inf, 0.0
    behind, since = [np.zeros(0)], [np.zeros(0)]
    for piece in pieces:
        known = np.flatnonzero(np.isfinite(piece) & (piece > -1e12))
        stamps = piece[known]
        if len(stamps):
            late = np.maximum(np.maximum.accumulate(stamps), latest_s) - stamps
            latest_s, begin = float(late[-1] + stamps[-1]), 0
            if first is None:
                far = np.flatnonzero(late > (1 - _NEAR) * HOUR_S)
                begin = int(far[0]) if len(far) else len(stamps)
                if len(far):
                    first, begun_s = row + int(known[begin]), float(stamps[begin])
            after = stamps[begin:] - begun_s
            if len(after):
                behind.append(late[begin : begin + _LOOKED_AT])
                since.append(after[:_LOOKED_AT])
                tops = np.maximum(np.maximum.accumulate(after), top_s)
                leap_s = max(leap_s, float(np.diff(tops, prepend=top_s if np.isfinite(top_s) else tops[0]).max()))
                top_s = float(tops[-1])
        count, row = count + len(stamps), row + len(piece)
    looked, passed = (np.concatenate(parts)[:_LOOKED_AT] for parts in (behind, since))
    # What follows at once is as far behind, less the time that passes meanwhile; and nothing leaps forward again.
    is_back = len(looked) == _LOOKED_AT and bool(np.all(np.abs(looked + passed - HOUR_S) < _NEAR * HOUR_S))
    return first if count >= _LOOKED_AT and is_back and leap_s < HOUR_S / 2 else None


def localised(times: pd.Series, zone: str, summer: Bools | None = None) -> pd.Series:
    """Return stamps of a zone as points in time; an hour that comes twice is told apart by the order of the rows.

    Parameters
    ----------
    times : stamps without a zone, in the order of the file
    zone : such as Europe/Berlin
    summer : (n,) whether each is before clocks are set back; None: as the order tells

    Raises
    ------
    InputError
        If there is no such zone, or stamps are of an hour that its clocks skip.

    Examples
    --------
    >>> twice = pd.to_datetime(pd.Series(["2024-10-27 02:30", "2024-10-27 02:10"] + ["2024-10-27 02:40"] * 30))
    >>> int(localised(twice, "UTC").dt.hour.iloc[0])
    2
    """
    zone_of(zone)
    if summer is None:
        seconds = np.where(times.isna(), np.nan, times.astype("datetime64[us]").astype("int64") / 1e6)
        step = set_back(seconds)
        summer = np.arange(len(times)) < (len(times) if step is None else step)
    zoned: pd.Series = times.dt.tz_localize(zone, ambiguous=summer, nonexistent="NaT").dt.tz_convert("UTC")
    skipped = int((zoned.isna() & times.notna()).sum())
    if skipped:
        raise InputError(
            f"zone: {skipped:,} stamps lie in an hour that clocks of {zone} skip, such as "
            f"{times[zoned.isna() & times.notna()].iloc[0]}: they are of another zone"
        )
    return zoned
