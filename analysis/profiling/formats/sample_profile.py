"""Sample profiles in LLVM's text form, which a compiler reads to optimise what ran hot."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from analysis.profiling.formats.foreign import UNKNOWN, ForeignProfile, Frame, Sample
from analysis.tables.faults import plain

_OFFSETS = 1 << 16
"""LLVM keeps offsets of lines in 16 bits."""
_CALLEE = re.compile(r"[^\s:]+")


def write_sample_profile(parts: Iterable[ForeignProfile], event: str, image: str) -> str:
    """Return the samples of one image in LLVM's text form (llvm/ProfileData/SampleProfReader.h).

    A function's section is `name:total:head`, then a line `offset: count callee:count …` for each of its lines.
    Offsets count from the function's first line. Counts are values of the event with the function itself on top, so
    totals sum to the event's in the image; the head is the count of its first line. Callees and their counts come
    from samples with callers: values seen right below a call on that line. Functions come by total, then name; those
    without a symbol are left out.

    Parameters
    ----------
    parts : of a profile, with the event among their measures
    event : whose values to write
    image : the program or library

    Raises
    ------
    KeyError
        If there is no such measure.

    Examples
    --------
    >>> from analysis.profiling.formats.foreign import Measure
    >>> leaf, root = Frame("f", "a", "", "f.c", 10, 12), Frame("main", "a", "", "f.c", 1, 3)
    >>> samples = Sample((0, 1), (5,)), Sample((1,), (2,))
    >>> print(write_sample_profile([ForeignProfile((Measure("cycles"),), (leaf, root), samples)], "cycles", "a"))
    f:5:0
     2: 5
    main:2:0
     2: 2 f:5
    <BLANKLINE>
    """
    totals: Counter[str] = Counter()
    lines: defaultdict[str, Counter[int]] = defaultdict(Counter)
    calls: defaultdict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    for profile in parts:
        at = {measure.event: index for index, measure in enumerate(profile.measures)}[event]
        for sample in profile.samples:
            if value := sample.amounts[at]:
                _count(profile, sample, value, (totals, lines, calls), image)
    sections = list[str]()
    for function, total in sorted(totals.items(), key=lambda pair: (-pair[1], pair[0])):
        body = lines[function]
        sections.append(f"{_name(function)}:{total}:{body.get(0, 0)}\n")
        sections += [_line(offset, body[offset], calls[function, offset]) for offset in sorted(body)]
    return "".join(sections)


def symbolised(frame: Frame, image: str) -> bool:
    """Return whether a frame is of an image and has a function.

    Examples
    --------
    >>> symbolised(Frame("f", "libz"), "libz"), symbolised(Frame("[unknown]", "libz"), "libz")
    (True, False)
    """
    return frame.image == image and frame.function not in {"", UNKNOWN}


def _count(
    profile: ForeignProfile,
    sample: Sample,
    value: int,
    counts: tuple[Counter[str], defaultdict[str, Counter[int]], defaultdict[tuple[str, int], Counter[str]]],
    image: str,
) -> None:
    """Add a sample's value to its function, its line, and the call that led to it."""
    totals, lines, calls = counts
    frames = [profile.frames[index] for index in sample.stack[:2]]
    if frames and symbolised(frames[0], image):
        totals[frames[0].function] += value
        _add(lines[frames[0].function], frames[0], value)
    if len(frames) == 2 and symbolised(frames[1], image) and _CALLEE.fullmatch(frames[0].function):
        caller = frames[1]
        if caller.line and caller.function_line and frames[0].function != UNKNOWN:
            totals[caller.function] += 0
            lines[caller.function][_offset(caller)] += 0
            calls[caller.function, _offset(caller)][frames[0].function] += value


def _add(body: Counter[int], frame: Frame, value: int) -> None:
    """Add to the count of a frame's line, if it is known."""
    if frame.line and frame.function_line:
        body[_offset(frame)] += value


def _offset(frame: Frame) -> int:
    return (frame.line - frame.function_line) % _OFFSETS


def _line(offset: int, count: int, callees: Counter[str]) -> str:
    called = "".join(f" {name}:{value}" for name, value in sorted(callees.items(), key=lambda pair: (-pair[1], pair)))
    return f" {offset}: {count}{called}\n"


def _name(function: str) -> str:
    return plain(function).strip().replace(" ", "_")
