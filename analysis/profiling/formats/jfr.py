"""Recordings of the JVM (JFR), read through `jfr print` where a JDK is."""

import math
import re
import shutil
import struct
from collections.abc import Iterator
from dataclasses import replace

from analysis.profiling.formats.foreign import DEEPEST, UNKNOWN, ForeignProfile, Frame, Measure, Origin
from analysis.profiling.formats.stack_sums import StackSums
from analysis.profiling.formats.tools import text_by
from analysis.tables.faults import plain, refusal

_MAGIC = b"FLR\x00"
_EVENT = "jdk.ExecutionSample"
_LINE = re.compile(r"(?P<function>.+?)(?:\s+line: (?P<line>\d{1,9}))?")
_CHUNK = struct.Struct(">4sHH6q")
"""Head of a chunk: magic, version, bytes, places of constants and of what describes events, start and length in ns."""
_NS = 1e9
_THREAD = re.compile(r'sampledThread = "(?P<name>.*)"')


def is_jfr(data: bytes) -> bool:
    """Return whether bytes are a recording of the JVM.

    Examples
    --------
    >>> is_jfr(_MAGIC + bytes(64)), is_jfr(b"main;f 3")
    (True, False)
    """
    return data.startswith(_MAGIC)


def read_jfr(data: bytes, name: str = "recording.jfr") -> ForeignProfile:
    """Read the samples of running Java code with the `jfr` of this machine; threads are the label `thread`.

    Start and length are those of the recording, from the heads of its chunks (the JDK's `ChunkHeader.java`).
    Allocations and waits are not read, nor are samples of native code.

    Parameters
    ----------
    data : the file's bytes
    name : of the file, for faults

    Raises
    ------
    FileError
        If there is no `jfr`, it cannot read the file or not in ten minutes, or there are no samples.
    """
    jfr = shutil.which("jfr")
    if jfr is None:
        advice = "is a recording of the JVM, which jfr of a JDK reads, which is not here"
        raise refusal(name, "file", f"{advice}: jfrconv -o collapsed FILE FILE.folded (async-profiler)", "JFR")
    text = text_by([jfr, "print", "--stack-depth", str(DEEPEST), "--events", _EVENT], data, name)
    start_s, length_s = _span(data)
    return replace(read_jfr_text(text, name), start_s=start_s, length_s=length_s)


def _span(data: bytes) -> tuple[float, float]:
    """Return when a recording began, in seconds since 1970, and over how long it is; NaN and 0 if chunks do not say."""
    starts, ends, place, size = list[int](), list[int](), 0, _CHUNK.size
    while place + _CHUNK.size <= len(data) and size >= _CHUNK.size:
        magic, _, _, size, _, _, start_ns, length_ns, _ = _CHUNK.unpack_from(data, place)
        if magic != _MAGIC or start_ns <= 0:
            return math.nan, 0.0
        starts.append(start_ns)
        ends.append(start_ns + length_ns if length_ns > 0 else 0)
        place += size
    start_ns = min(starts, default=0)
    length_ns = max(ends) - start_ns if all(ends) and starts else 0
    return start_ns / _NS if starts else math.nan, length_ns / _NS


def read_jfr_text(data: bytes, name: str = "recording.txt") -> ForeignProfile:
    r"""Read what `jfr print --events jdk.ExecutionSample` says of a recording.

    Parameters
    ----------
    data : the text
    name : of the file, for faults

    Raises
    ------
    FileError
        If there are no samples.

    Examples
    --------
    >>> text = b'jdk.ExecutionSample {\n stackTrace = [\n  A.f(int) line: 2\n  A.main() line: 1\n ]\n}\n'
    >>> read_jfr_text(text).frames[0]
    Frame(function='A.f(int)', image='', build_id='', file='', function_line=0, line=2, address=0, file_address=-1)
    """
    sums, cut = StackSums(name, 1), 0
    for stack, thread, truncated in _samples(data):
        cut += truncated
        sums.add(stack or [Frame(UNKNOWN)], (1,), Origin(labels=(("thread", thread),) if thread else ()))
    if not sums.sums:
        raise refusal(name, "samples", f"should be at least one of {_EVENT}", "none")
    what = "sample with a stack" if cut == 1 else "samples with stacks"
    notes = (f"{cut:,} {what} that the JVM cut off (-XX:FlightRecorderOptions=stackdepth=512 keeps more)",)
    return ForeignProfile(
        (Measure("samples"),),
        tuple(sums.frames),
        sums.samples(),
        tuple(sums.origins),
        name=name,
        notes=notes if cut else (),
    )


def _samples(data: bytes) -> Iterator[tuple[list[Frame], str, bool]]:
    """Yield frames, thread, and whether callers were cut off, of each sample."""
    stack, thread, inside, cut = list[Frame](), "", False, False
    for row in data.splitlines():
        text = row.decode(errors="replace").strip()
        if inside:
            inside = text != "]"
            cut |= text == "..."
            if inside and text != "..." and (match := _LINE.fullmatch(text)):
                stack.append(Frame(plain(match["function"]), line=int(match["line"] or 0)))
        elif text == "stackTrace = [":
            inside = True
        elif match := _THREAD.match(text):
            thread = plain(match["name"])
        elif text == "}":
            yield stack, thread, cut
            stack, thread, cut = [], "", False
