"""Arrivals and departures as lines of text that come in one after another."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from analysis.occupancy.logs.log import FARTHEST_S, PER_SECOND, unit_of
from analysis.tables.faults import FileError, FileFault
from models.arrays import Floats, Ints

_CHANGES = {"+1": 1, "1": 1, "-1": -1, "0": 0}
_IN_A_ROW = 20
"""After so many faulty lines without a good one between them the text is of another kind."""
_SHOWN = 60


def begins_events(line: str) -> bool:
    """Return whether a first line is an event or the header of events; nothing is the beginning of no events.

    Examples
    --------
    >>> [begins_events(line) for line in ("0.5,+1", "time_ms,change", "", "arrival_s,departure_s", '{"ts": 1}')]
    [True, True, True, False, False]
    """
    words = [word.strip() for word in line.strip().lstrip("\ufeff").split(",")]
    return words == [""] or _names_events(words) or (len(words) == 2 and _number(words[0]) is not None)


class Batch(NamedTuple):
    """Events of some lines, and the faults of those that hold none."""

    time_s: Floats
    """(n,) seconds, in the order of the lines."""
    change: Ints
    """(n,) +1: arrival, −1: departure, 0: the clock went on."""
    faults: list[FileFault]


@dataclass(slots=True)
class EventReader:
    """Reads lines ``time,change``, which may begin with a header that says the unit: ``time_ms,change``."""

    unit: str | None = None
    """s, ms, us or ns of times without a header that says it; None: s."""
    most_ahead_s: float = math.inf
    """A time that is further ahead of all before is a fault: one wrong stamp would make all that follow late."""
    line: int = field(default=0, init=False)
    """Lines read."""
    _wrong: list[FileFault] = field(default_factory=list, init=False, repr=False)
    """Faults since the last event."""
    _per_second: float = field(default=0.0, init=False, repr=False)
    _latest_s: float = field(default=math.nan, init=False, repr=False)

    def read(self, lines: Iterable[str]) -> Batch:
        """Return the events of the next lines; blank ones are skipped.

        Raises
        ------
        FileError
            If the first line is neither an event nor a header, the header says another unit than was said, or 20 lines
            in a row are no events.

        Examples
        --------
        >>> reader = EventReader()
        >>> reader.read(["time_ms,change", "500,+1"]).time_s
        array([0.5])
        >>> print(*reader.read(["900,-1", "1000,2"]).faults)
        4:2: change: should be +1, -1 or 0, got "2"
        """
        events, faults = list[tuple[float, int]](), list[FileFault]()
        for text in lines:
            self.line += 1
            words = [word.strip() for word in text.strip().lstrip("\ufeff").split(",")]
            if words == [""] or self._header(words):
                continue
            event = self._event(words)
            if isinstance(event, FileFault):
                faults.append(event)
                self._wrong.append(event)
            else:
                events.append(event)
                self._wrong.clear()
            if len(self._wrong) == _IN_A_ROW:
                raise FileError(self._wrong)
        time_s, change = (np.array(column) for column in zip(*events, strict=True)) if events else (np.empty(0),) * 2
        return Batch(time_s.astype(np.float64), change.astype(np.int64), faults)

    def _header(self, words: list[str]) -> bool:
        """Take the first line for a header if it is one, and settle the unit."""
        if self._per_second:
            return False
        name = "" if _number(words[0]) is not None else words[0]
        if name and not _names_events(words):
            shown = _shown(",".join(words))
            raise FileError([FileFault(self.line, 1, "line", "should be an event or the header time,change", shown)])
        unit = unit_of(name, np.empty(0), self.unit)[0] if name else self.unit or "s"
        self._per_second = PER_SECOND[unit]
        return bool(name)

    def _event(self, words: list[str]) -> tuple[float, int] | FileFault:
        if len(words) != 2:
            return FileFault(self.line, 1, "row", "should have 2 fields", str(len(words)))
        time, change = _number(words[0]), _CHANGES.get(words[1])
        if time is None:
            return FileFault(self.line, 1, "time", "should be a finite number", _shown(words[0]))
        if change is None:
            return FileFault(self.line, 2, "change", "should be +1, -1 or 0", _shown(words[1]))
        time /= self._per_second
        if abs(time) > FARTHEST_S:
            return FileFault(self.line, 1, "time", f"should be within {FARTHEST_S:g} s of 0", _shown(words[0]))
        if time - self._latest_s > self.most_ahead_s:
            problem = f"should be at most {self.most_ahead_s:g} s after the latest"
            return FileFault(self.line, 1, "time", problem, _shown(words[0]))
        self._latest_s = max(time, self._latest_s) if self._latest_s == self._latest_s else time
        return time, change


def _names_events(words: list[str]) -> bool:
    return words[0].lower().startswith("time") and words[1:] == ["change"]


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _shown(text: str) -> str:
    return f'"{text}"' if len(text) <= _SHOWN else f'"{text[:_SHOWN]}…"'
