"""Text profiles that pprof had before profile.proto: of gperftools, of Go with debug=1, and of Java."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from analysis.profiling.formats.foreign import LARGEST, ForeignProfile, Frame, Loaded, Measure, loaded_by, unnamed
from analysis.profiling.formats.stack_sums import StackSums
from analysis.tables.faults import Faults, plain, refusal

_HEAP = re.compile(
    r"heap profile: *(\d{1,40}): *(\d{1,40}) *\[ *(\d{1,40}): *(\d{1,40}) *\] *@ *"
    r"(?P<kind>[a-z]\w*)(?:/(?P<period>\d{1,40}))?\s*$"
)
_ZPAGE = re.compile(r"--- (?P<kind>heap|growth|fragmentation|contention|thread)z \d+ ---$")
_CONTENTION = re.compile(r"--- (?:contention|mutex):?")
_GO_COUNT = re.compile(r"(?P<kind>\w+) profile: total \d+$")
_THREAD = re.compile(r"--- Thread [0-9a-fA-F]+ \(name: (?P<name>.*)\) stack: ---$")
_ATTRIBUTE = re.compile(r"(?P<key>[a-z /]+?) *= *(?P<value>\S+)$")
_HEAP_RECORD = re.compile(r"(\d{1,40}): *(\d{1,40}) *\[ *(\d{1,40}): *(\d{1,40}) *\] *@([ 0-9a-fx]*)$")
_RECORD = re.compile(r"(\d{1,40}) +(\d{1,40}) *@([ 0-9a-fx]*)$")
_COUNT_RECORD = re.compile(r"(\d{1,40}) *@([ 0-9a-fx]*)$")
_GO_SYMBOL = re.compile(
    r"#\s+(?P<address>0x[0-9a-f]+)\s+(?P<function>\S.*?)\+0x[0-9a-f]+\s+(?P<file>\S.*):(?P<line>\d{1,40})$"
)
_JAVA_SYMBOL = re.compile(
    r"(?P<address>0x[0-9a-f]+) (?P<function>\S.*?)(?: \((?P<file>[^:()]*):(?P<line>\d{1,40})\)| \(.*\))?$"
)
_MAP = re.compile(
    r"(?P<start>[0-9a-f]+)-(?P<end>[0-9a-f]+):? +"
    r"(?:[-rwxsp]{4} +(?P<offset>[0-9a-f]+) +\S+ +\d+ *)?(?P<image>.*)$"
)
_ADDRESS = re.compile(r"0x([0-9a-f]+)")
_MAPS = ("--- Memory map: ---", "MAPPED_LIBRARIES:")
_SAME = "[same as previous thread]"
_JAVA_PERIOD = 524_288
_LAST_LINE = (1 << 31) - 1
_INUSE = (Measure("inuse_objects"), Measure("inuse_space", "bytes"))
_ALLOC = (Measure("alloc_objects"), Measure("alloc_space", "bytes"))


def is_legacy(lines: Sequence[str]) -> bool:
    """Return whether a text's first lines are those of such a profile.

    Examples
    --------
    >>> is_legacy(["heap profile: 1: 2 [3: 4] @ heap/1048576"]), is_legacy(["main;f 3"])
    (True, False)
    """
    return _kind(lines) != ""


def _kind(lines: Iterable[str]) -> str:
    first = next((line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")), "")
    if heap := _HEAP.match(first):
        return "growth" if heap["kind"].startswith(("growth", "fragmentation")) else "heap"
    if page := _ZPAGE.match(first):
        return page["kind"]
    if _CONTENTION.match(first):
        return "contention"
    if _THREAD.match(first):
        return "thread"
    return "count" if _GO_COUNT.match(first) else ""


def read_legacy(data: bytes, name: str = "heap.txt") -> ForeignProfile:
    """Read a heap, growth, contention or thread profile of gperftools, Go (debug=1) or Java, in text.

    As `go tool pprof` reads them (google/pprof, profile/legacy_profile.go): sampled heaps are scaled up by
    1 / (1 − exp(−mean size / period)), contention by its period and the clock, and callers' addresses are moved back by
    one, into the call. Symbols and images are those that the file has; functions without one are [unknown]. Go prints a
    frame's name, in a line that begins with #, with the address of the call or of what comes after it, and inlined
    functions with the address that they share. It prints none for the innermost frames of its own runtime: these are
    left out of a file that does not say what was loaded where, by which they could be named.

    Parameters
    ----------
    data : the file's bytes
    name : of the file, for faults
    """
    lines = [line.strip() for line in data.decode(errors="replace").split("\n")]
    kind = _kind(lines)
    reader = _LegacyReader(name, lines, Faults(name))
    measures, records = reader.records(kind)
    reader.faults.refuse()
    symbols, images = reader.symbols(), reader.images()
    sums = StackSums(name, len(measures))
    for addresses, amounts in records:
        exact = [reader.java or (kind == "thread" and not at) for at in range(len(addresses))]
        places = zip(addresses, exact, strict=True)
        frames = [frame for place, known in places for frame in _frames(place, symbols, images, exact=known)]
        printed = next((at for at, frame in enumerate(frames) if frame.function), 0)
        sums.add(frames if images else frames[printed:], amounts)
    if not sums.sums:
        raise refusal(name, "records", "should be at least one", "none")
    bare = not any(frame.function for frame in sums.frames)
    notes = ("it has no symbols: functions are [unknown], unless --binary names them",) if bare else ()
    main = images[0].image if images else ""
    return ForeignProfile(measures, tuple(sums.frames), sums.samples(), name=name, main=main, notes=notes)


_Records = list[tuple[tuple[int, ...], tuple[int, ...]]]


@dataclass(slots=True)
class _LegacyReader:
    name: str
    lines: list[str]
    faults: Faults
    attributes: dict[str, str] = field(default_factory=dict)
    java: bool = False

    def records(self, kind: str) -> tuple[tuple[Measure, ...], _Records]:
        """Return what is measured, and the addresses and amounts of each record."""
        self.attributes = {m["key"]: m["value"] for line in self.lines[:50] if (m := _ATTRIBUTE.match(line))}
        self.java = self.attributes.get("format") == "java"
        if kind == "thread":
            return (Measure("threads"),), self._threads()
        if kind == "count":
            return (Measure(self._count_name()),), [
                (self._addresses(text), (int(n),)) for n, text in self._of(_COUNT_RECORD)
            ]
        if kind == "contention":
            return self._contention()
        if kind == "heap" and not self.java:
            return self._heap()
        if kind == "heap":
            pairs = self._of(_RECORD)
            return _INUSE, [
                (self._addresses(text), _scaled(int(n), int(size), _JAVA_PERIOD)) for size, n, text in pairs
            ]
        growth: _Records = [
            (self._addresses(text), (int(n), int(size))) for n, size, _, _, text in self._of(_HEAP_RECORD)
        ]
        return (Measure("objects"), Measure("space", "bytes")), growth

    def _of(self, pattern: re.Pattern[str]) -> Iterator[tuple[str, ...]]:
        """Yield the groups of every record; what has an @ and is none is a fault."""
        body = False
        for number, line in enumerate(self.lines, 1):
            if line in _MAPS:
                return
            if "@" not in line or line.startswith("#") or (not body and (_HEAP.match(line) or _GO_COUNT.match(line))):
                continue
            if match := pattern.match(line):
                body = True
                if max(int(text) for text in match.groups() if text.isdecimal()) > LARGEST:
                    self.faults.tell("record", f"should have numbers up to {LARGEST}", line, line=number)
                else:
                    yield match.groups()
            elif line[:1].isdecimal():
                self.faults.tell("record", "should have numbers, then addresses", line, line=number)

    def _heap(self) -> tuple[tuple[Measure, ...], _Records]:
        head = next((match for line in self.lines if (match := _HEAP.match(line))), None)
        if head is None:
            raise refusal(self.name, "header", "should be that of a heap profile", "none")
        numbers = [int(head[at]) for at in (1, 2, 3, 4)]
        allocated = any(alloc not in (0, inuse) for inuse, alloc in zip(numbers[:2], numbers[2:], strict=True))
        period = int(head["period"] or 0)
        rate = {"heap": period // 2, "heapprofile": 1}.get(head["kind"], period)
        records: _Records = []
        for n, size, all_n, all_size, text in self._of(_HEAP_RECORD):
            amounts = _scaled(int(n), int(size), rate)
            if allocated:
                amounts = (*_scaled(int(all_n), int(all_size), rate), *amounts)
            records.append((self._addresses(text), amounts))
        return (*_ALLOC, *_INUSE) if allocated else _INUSE, records

    def _contention(self) -> tuple[tuple[Measure, ...], _Records]:
        period = self._whole("sampling period", 1)
        clock_ghz = self._whole("cycles/second", 0) / 1e9
        unit = "microseconds" if self.java else "nanoseconds"
        scale = period / clock_ghz if clock_ghz and not self.java else float(period)
        records: _Records = [
            (self._addresses(text), (int(n) * period, int(int(delay) * scale))) for delay, n, text in self._of(_RECORD)
        ]
        return (Measure("contentions"), Measure("delay", unit)), records

    def _whole(self, key: str, default: int) -> int:
        text = self.attributes.get(key, str(default))
        if not text.isdecimal() or len(text) > 18:
            raise refusal(self.name, key, "should be a whole number", text)
        return int(text)

    def _threads(self) -> _Records:
        """Return a record a thread; of one that has the stack of the thread before, that stack once more."""
        records: _Records = []
        addresses: list[int] = []
        open_thread, same = False, False
        for line in [*self.lines, _MAPS[0]]:
            if line.startswith("---") or line in _MAPS:
                if open_thread and (same or addresses):
                    stack = records[-1][0] if same and records else tuple(addresses)
                    records.append((stack, (1,)))
                open_thread, same, addresses = bool(_THREAD.match(line)), False, []
                if line in _MAPS:
                    break
            elif open_thread and _SAME in line:
                same = True
            elif open_thread:
                addresses += self._addresses(line)
        return records

    def _addresses(self, text: str) -> tuple[int, ...]:
        return tuple(min(int(address, 16), LARGEST) for address in _ADDRESS.findall(text))

    def _count_name(self) -> str:
        return next(match["kind"] for line in self.lines if (match := _GO_COUNT.match(line)))

    def symbols(self) -> dict[int, list[Frame]]:
        """Return the functions at addresses, the innermost first, where the file says them."""
        symbols: dict[int, list[Frame]] = {}
        pattern = _JAVA_SYMBOL if self.java else _GO_SYMBOL
        for line in self.lines:
            if match := pattern.match(line):
                number = int(match["line"] or 0)
                known = number if number <= _LAST_LINE else 0
                frame = Frame(plain(match["function"]), file=plain(match["file"] or ""), line=known)
                frames = symbols.setdefault(int(match["address"], 16), [])
                if frame not in frames:
                    frames.append(frame)
        return symbols

    def images(self) -> list[Loaded]:
        """Return what was in memory."""
        begin = next((at for at, line in enumerate(self.lines) if line in _MAPS), len(self.lines))
        return list(loaded_by(map(_MAP.match, self.lines[begin + 1 :])))


def _scaled(count: int, size: int, period: int) -> tuple[int, ...]:
    """Return the objects and bytes for which sampled ones stand; each byte is sampled with a chance of 1 / period."""
    if not count or not size:
        return 0, 0
    if period <= 1:
        return count, size
    scale = -1.0 / math.expm1(-size / count / period)
    return int(count * scale), int(size * scale)


def _frames(address: int, symbols: dict[int, list[Frame]], images: Sequence[Loaded], *, exact: bool) -> Iterator[Frame]:
    """Yield the frames of an address, the innermost first.

    Unless it is exact, it is where a call returns to, and frames are of the call before it.
    """
    place = address if exact else max(address - 1, 0)
    frame = unnamed(place, images)
    known = symbols.get(address) or symbols.get(place) or ()
    yield from (symbol._replace(image=frame.image) for symbol in known)
    if not known:
        yield frame
