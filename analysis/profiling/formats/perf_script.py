"""What `perf script` of Linux prints: a line on each sample, then its frames, as text."""

import io
import re
from dataclasses import dataclass, field

from analysis.profiling.formats.foreign import (
    DEEPEST,
    LARGEST,
    UNKNOWN,
    ForeignProfile,
    Frame,
    FrameBudget,
    Measure,
    Origin,
    Sample,
)
from analysis.tables.faults import Faults, plain, refusal

_TASK = r"\s*(?P<comm>\S.*?)\s+(?:(?P<pid>-?\d{1,10})(?:/\s*(?P<tid>-?\d{1,10}))?\s+)"
_WHEN = r"(?:\[(?P<cpu>\d+)\]\s+)?(?:(?=\w*\.)[.\w]{4,6}\s+)?"
_EVENT = r"(?:(?P<period>\d{1,40})\s+)?(?P<event>[^\s:][^\s]*?):(?:\s+(?P<rest>.*))?$"
_HEADS = (
    re.compile(_TASK + _WHEN + r"(?P<time>\d{1,12}\.\d{1,9}):\s+" + _EVENT),
    re.compile(r"\s*(?P<comm>\S.*?)\s+" + _WHEN + r"(?P<time>\d{1,12}\.\d{1,9}):\s+" + _EVENT),
    re.compile(_TASK + _WHEN + _EVENT),
)
"""Heads of samples: with task and time, without numbers of tasks, without a time."""
_FRAME = re.compile(r"\s*(?P<address>[0-9a-f]{1,16})(?:\s+(?P<symbol>.*))?$")
_OFFSET = re.compile(r"\+0x[0-9a-f]+$")
_CUT = re.compile(r"^\s+[0-9a-f]{1,16}\s.*\+0x?$")
"""A frame that ends before the digits of its offset."""
_SOURCE = re.compile(r"\s+(?P<file>\S.*):(?P<line>\d{1,9})$")
_LONGEST_HEAD = 4096
_MOST_EVENTS = 50
_NO_EVENT = re.compile(r"\[|[-+.,0-9]+$")
"""Texts in the place of the event that are none: a time or a number where the field was not printed."""
_NO_COUNT = (0, 0)
_RECORD = "PERF_RECORD_"
_MODIFIERS = re.compile(r":[ukhHGSDpPIWeb]+$")
_GENERIC = {
    "cpu-cycles": "cycles",
    "branch-misses": "mispredictions",
    "L1-dcache-load-misses": "l1_misses",
    "LLC-load-misses": "llc_misses",
    "cache-misses": "llc_misses",
}
"""Generic names of perf's events."""
_FIXED = re.compile(r"# event : name = (?P<event>[^,]+),.*\{ sample_period, sample_freq \} = (?P<period>\d{1,18}),")
_FACT = re.compile(r"# (?P<key>hostname|os release|cpudesc) : (?P<value>.+)")


def is_perf_script(lines: list[str]) -> bool:
    """Return whether the first lines of a text are such: comments of perf's header, or the head of a sample.

    Examples
    --------
    >>> is_perf_script(["# ========", "# captured on: Thu"]), is_perf_script(["sh 7 1.5: 9 cycles:"])
    (True, True)
    >>> is_perf_script(["main;read 12"])
    False
    """
    written = [line for line in lines if line.strip()]
    return any(line.startswith("# ===") or line.startswith("# hostname : ") for line in written) or bool(
        written and _head(next((line for line in written if not line.startswith("#")), "")) is not None
    )


def read_perf_script(data: bytes, name: str = "perf.txt") -> ForeignProfile:
    """Read the text of `perf script`, with or without call chains, periods, tasks' numbers, processors and times.

    Every event becomes a measure with its generic name; its values are samples × period, the period taken from the
    lines, or from the header for events of a fixed period, or else 1. If the last line has no end and is a part of one,
    its sample is left out with a note.

    Parameters
    ----------
    data : the file's bytes, UTF-8
    name : of the file, for faults
    """
    reader = _ScriptReader(name, Faults(name), FrameBudget(name))
    for number, line in enumerate(io.BytesIO(data), 1):
        text = line.decode(errors="replace").rstrip()
        if line.endswith(b"\n") or not reader.is_cut(text):
            reader.take(text, number)
        else:
            reader.leave_out(text, number)
    reader.close()
    if reader.cut and (reader.faults.count or not reader.sums):
        number, text = reader.cut
        reader.faults.tell("line", "should not end within a frame: the file is cut off", text, line=number)
    if not reader.sums and not reader.faults.count:
        reader.faults.tell("samples", "should be at least one", "none")
    reader.faults.refuse()
    return reader.profile()


@dataclass(slots=True)
class _Open:
    """The sample whose frames are being read."""

    event: str
    origin: int
    period: int
    line: int
    frames: list[Frame] = field(default_factory=list)
    chain: bool = False
    """Whether its frames stand on lines of their own, all of them callers but for the first."""


@dataclass(slots=True)
class _ScriptReader:
    name: str
    faults: Faults
    budget: FrameBudget
    open: _Open | None = None
    broken: bool = False
    """Whether the frames that come are of a sample whose head was no head, which is told once."""
    frames: dict[Frame, int] = field(default_factory=dict)
    origins: dict[Origin, int] = field(default_factory=dict)
    sums: dict[tuple[int, tuple[int, ...], bool], dict[str, list[int]]] = field(default_factory=dict)
    """Origin, stack and whether it has callers, to the samples of each event and their periods' sum."""
    periods: dict[str, set[int]] = field(default_factory=dict)
    """Event to its periods, the first two; 0 where lines do not say."""
    fixed: dict[str, int] = field(default_factory=dict)
    """Periods that the header says."""
    facts: dict[str, str] = field(default_factory=dict)
    times: tuple[float, float] = (float("inf"), float("-inf"))
    ends: set[bool] = field(default_factory=set)
    """Whether frames end in brackets: of all before the one that is open."""
    cut: tuple[int, str] | None = None
    """The last line, with its number, if the file is cut off within it."""

    def is_cut(self, line: str) -> bool:
        """Return whether a last line without an end is a part of a line, as far as that can be told.

        An address alone, or with a name, is a part of a frame where all frames before end in an image in brackets.
        """
        if not line or line.startswith("#"):
            return False
        if line.count("(") > line.count(")") or _CUT.search(line):
            return True
        part = bool(self.open) and _FRAME.match(line) is not None
        return part and _head(line) is None and self.ends == {True} and not line.endswith(")")

    def leave_out(self, line: str, number: int) -> None:
        """Leave out the sample that a line belongs to, within which the file is cut off."""
        self.open, self.cut = None, (number, line)

    def take(self, line: str, number: int) -> None:
        """Take one line."""
        if line.startswith("#"):
            self._comment(line)
        elif not line:
            self.close()
            self.broken = False
        elif not (self.open and _is_frame(line)) and (head := _head(line)) is not None:
            self.close()
            self._begin(head, line, number)
        elif _FRAME.match(line):
            self._frame(line, number)
        elif self.open and self.open.frames and (source := _SOURCE.match(line)):
            self.open.frames[-1] = self.open.frames[-1]._replace(file=source["file"], line=int(source["line"]))
        else:
            self._tell(line, number)

    def _tell(self, line: str, number: int) -> None:
        """Tell a line that is none; outside of a sample it may be a head, and frames below it are no faults more."""
        self.faults.tell("line", "should be the head of a sample, a frame or a comment", line, line=number)
        self.broken = self.open is None

    def close(self) -> None:
        """End the sample that is open, if one is."""
        sample, self.open = self.open, None
        if sample is None:
            return
        images = _filled(sample.frames) or [Frame(UNKNOWN)]
        stack = tuple(self.frames.setdefault(frame, len(self.frames)) for frame in images)
        key = (sample.origin, stack, sample.chain)
        if key not in self.sums:
            self.budget.take(len(stack), line=sample.line)
        count = self.sums.setdefault(key, {}).setdefault(sample.event, [0, 0])
        count[0] += 1
        count[1] += sample.period

    def _comment(self, line: str) -> None:
        if fixed := _FIXED.match(line):
            if "freq = 1" not in line.rsplit("sample_type", maxsplit=1)[-1] and int(fixed["period"]):
                self.fixed[fixed["event"].strip()] = int(fixed["period"])
        elif fact := _FACT.match(line):
            self.facts[fact["key"]] = plain(fact["value"].strip())

    def _begin(self, head: re.Match[str], line: str, number: int) -> None:
        event, fields = head["event"], head.groupdict()
        self.broken = False
        if event.startswith(_RECORD):
            return
        if _NO_EVENT.match(event) and self.periods:  # Heads before have theirs, so that this one is broken.
            self._tell(line, number)
            return
        if _NO_EVENT.match(event):
            advice = "should be a name: add `event` to the fields of `perf script -F`"
            raise refusal(self.name, "event", advice, event, line=number)
        if event not in self.periods and len(self.periods) == _MOST_EVENTS:
            raise refusal(self.name, "event", f"should be one of at most {_MOST_EVENTS}", event, line=number)
        period = int(fields["period"] or 0)
        if period > LARGEST:
            self.faults.tell("period", f"should be at most {LARGEST}", fields["period"], line=number)
        machine, kernel = self.facts.get("hostname", ""), self.facts.get("os release", "")
        process = fields.get("pid") or ""
        origin = Origin(plain(head["comm"]), process, machine, self.facts.get("cpudesc", ""), kernel=kernel)
        at = self.origins.setdefault(origin, len(self.origins))
        self.open = _Open(event, at, period, number)
        periods = self.periods.setdefault(event, set())
        if len(periods) < 2:
            periods.add(period)
        if fields.get("time"):
            time = float(fields["time"])
            self.times = (min(self.times[0], time), max(self.times[1], time))
        if fields["rest"] and _is_frame(fields["rest"]):
            self.open.frames.append(_frame(fields["rest"]))

    def _frame(self, line: str, number: int) -> None:
        if self.open is None and self.broken:
            return
        if self.open is None:
            self.faults.tell("frame", "should follow the head of a sample", line, line=number)
            return
        self.open.chain = True
        self.ends.add(line.endswith(")"))
        if len(self.open.frames) < DEEPEST:
            self.open.frames.append(_frame(line))
        elif len(self.open.frames) == DEEPEST:
            self.faults.tell("stack", f"should be at most {DEEPEST} frames deep", "a deeper one", line=self.open.line)
            self.open = None

    def profile(self) -> ForeignProfile:
        """Return the profile of all samples."""
        events = list(self.periods)
        generic = [_GENERIC.get(name, name) for name in (_MODIFIERS.sub("", event) for event in events)]
        names = [name if generic.count(name) == 1 else event for event, name in zip(events, generic, strict=True)]
        fixed = [self._fixed(event) for event in events]
        measures = tuple(
            Measure(name, "events", period or 1, event)
            for event, name, period in zip(events, names, fixed, strict=True)
        )
        varied = [name for name, period in zip(names, fixed, strict=True) if not period]
        samples = tuple(
            Sample(
                stack,
                tuple(_value(counts.get(event), at) for event, at in zip(events, fixed, strict=True)),
                origin,
                chain,
                tuple(counts.get(event, _NO_COUNT)[0] for event in events) if varied else (),
            )
            for (origin, stack, chain), counts in self.sums.items()
        )
        notes = list[str]()
        if self.cut:
            notes.append(f"line {self.cut[0]}: the file is cut off there, and the sample of that line is left out")
        if varied:
            notes.append(f"periods of {', '.join(varied)} vary: each sample counts as many events as its own says")
        length_s = self.times[1] - self.times[0] if self.times[0] <= self.times[1] else 0.0
        return ForeignProfile(
            measures,
            tuple(self.frames),
            samples,
            tuple(self.origins),
            name=self.name,
            length_s=length_s,
            span=True,
            notes=tuple(notes),
        )

    def _fixed(self, event: str) -> int:
        """Return the one period of an event; 0 if it varies."""
        periods = self.periods[event]
        if len(periods) > 1:
            return 0
        return next(iter(periods)) or self.fixed.get(event, self.fixed.get(_MODIFIERS.sub("", event), 1))


def _value(counted: list[int] | None, period: int) -> int:
    """Return an event's value: samples × period, or the sum of its periods where these vary."""
    if counted is None:
        return 0
    return counted[0] * period if period else counted[1]


def _head(line: str) -> re.Match[str] | None:
    """Return the head of a sample; single blanks and a bound on its length keep the time linear in the line's."""
    words = " ".join(line[:_LONGEST_HEAD].split())
    return next((head for pattern in _HEADS if (head := pattern.match(words))), None)


def _is_frame(text: str) -> bool:
    """Return whether a text is an address with an image in brackets, or an address alone."""
    frame = _FRAME.match(text)
    return bool(frame and (frame["symbol"] is None or text.rstrip().endswith(")")))


def _frame(text: str) -> Frame:
    """Return the frame of a line `address symbol+offset (image)`; an image in two brackets is one that was deleted."""
    parts = _FRAME.match(text)
    symbol, address = (parts["symbol"] or "").strip() if parts else "", int(parts["address"], 16) if parts else 0
    image = ""
    if symbol.endswith(")"):
        body = symbol.removesuffix(" (deleted))").removesuffix(")")
        symbol, _, image = body.rpartition("(")
    function = _OFFSET.sub("", symbol.strip())
    address = min(address, LARGEST)
    return Frame(plain(function) if function else UNKNOWN, plain(image), address=address)


def _filled(frames: list[Frame]) -> list[Frame]:
    """Return frames, inlined ones in the image of the function that they were inlined into, without addresses."""
    image = ""
    filled = []
    for frame in reversed(frames):
        image = image if frame.image == "inlined" else frame.image
        filled.append(frame._replace(image=image, address=0))
    return filled[::-1]
