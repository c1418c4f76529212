"""Folded stacks: a line a stack, functions from the root joined by semicolons, then a count (Gregg 2011)."""

from collections.abc import Iterator, Sequence

from analysis.profiling.formats.faults import FaultList, plain, refusal
from analysis.profiling.formats.foreign import (
    DEEPEST,
    LARGEST,
    MOST_FRAMES,
    UNKNOWN,
    Frame,
    Measure,
    Profile,
    Sample,
)

_DIGITS = 40


def is_folded(line: str) -> bool:
    """Return whether a line could be a folded stack: it ends in a whole number.

    Examples
    --------
    >>> is_folded("main;read file 12"), is_folded("main;read")
    (True, False)
    """
    stack, _, count = line.rstrip().rpartition(" ")
    return bool(stack.strip()) and count.isascii() and count.isdigit()


def read_folded(data: bytes, name: str = "stacks.folded") -> Profile:
    """Read folded stacks; equal ones are summed, empty lines skipped.

    A function without a name, as `main;;read` has one, is read as [unknown]. If every line ends in two counts, as
    those of `difffolded.pl` do, they are two measures, `before` and `after`.

    Parameters
    ----------
    data : the file's bytes, UTF-8
    name : of the file, for faults

    Raises
    ------
    FormatError
        If a line does not end in a count from 0 to 2⁶³ − 1 after a blank, names no function, is deeper than 16,384
        functions, or there is none.

    Examples
    --------
    >>> profile = read_folded(b"main;parse 3\\nmain 1\\nmain;parse 4\\n")
    >>> [(sample.stack, sample.amounts) for sample in profile.samples], profile.frames[0].function
    ([((0, 1), (7,)), ((1,), (1,))], 'parse')
    >>> [measure.event for measure in read_folded(b"main;parse 3 5\\nmain 1 0\\n").measures]
    ['before', 'after']
    """
    faults = FaultList(name)
    lines = [(number, line) for number, line in enumerate(data.decode(errors="replace").split("\n"), 1) if line.strip()]
    measures = _measures([line for _, line in lines])
    frames: dict[str, int] = {}
    sums: dict[tuple[int, ...], tuple[int, ...]] = {}
    held = nameless = 0
    for number, line in lines:
        functions, counts = _parsed(line, number, len(measures), faults)
        if not functions:
            continue
        named = [plain(function) if function.strip() else UNKNOWN for function in functions]
        nameless += not all(map(str.strip, functions))
        stack = tuple(frames.setdefault(function, len(frames)) for function in reversed(named))
        held += len(stack) if stack not in sums else 0
        if held > MOST_FRAMES:
            raise refusal(name, str(number), "stack", f"should be at most {MOST_FRAMES} functions in all", "more")
        sums[stack] = tuple(map(sum, zip(sums[stack], counts, strict=True))) if stack in sums else counts
    if not sums and not faults.first:
        faults.add("", "stacks", "should be at least one", "none")
    faults.refuse()
    return Profile(
        measures,
        tuple(map(Frame, frames)),
        tuple(Sample(stack, counts) for stack, counts in sums.items()),
        name=name,
        notes=tuple(_notes(len(measures), nameless)),
    )


def write_folded(profile: Profile, event: str) -> str:
    """Return folded stacks of an event, in the order of their texts; a semicolon in a name becomes a colon.

    Parameters
    ----------
    profile : with the event among its measures
    event : whose values to write

    Raises
    ------
    KeyError
        If there is no such measure.

    Examples
    --------
    >>> from analysis.profiling.formats.foreign import made
    >>> print(write_folded(made([Measure("samples")], [((Frame("f"), Frame("main")), (3,))]), "samples"), end="")
    main;f 3
    """
    at = {measure.event: index for index, measure in enumerate(profile.measures)}[event]
    names = [_word(frame.function) for frame in profile.frames]
    sums: dict[str, int] = {}
    for sample in profile.samples:
        path = ";".join(names[frame] for frame in reversed(sample.stack)) or UNKNOWN
        sums[path] = sums.get(path, 0) + sample.amounts[at]
    return "".join(f"{path} {count}\n" for path, count in sorted(sums.items()) if count)


def _measures(lines: Sequence[str]) -> tuple[Measure, ...]:
    """Return what the lines count: samples, or two things if every line has two counts."""
    twice = bool(lines) and all(map(_has_two_counts, lines))
    return (Measure("before"), Measure("after")) if twice else (Measure("samples"),)


def _has_two_counts(line: str) -> bool:
    words = line.rsplit(None, 2)
    return len(words) == 3 and all(word.isascii() and word.isdigit() for word in words[1:])


def _notes(counts: int, nameless: int) -> Iterator[str]:
    if counts > 1:
        yield "two counts a line, as of difffolded.pl: read as the events before and after"
    if nameless:
        lines = "1 line has" if nameless == 1 else f"{nameless:,} lines have"
        yield f"{lines} a function without a name, which is read as {UNKNOWN}"


def _parsed(line: str, number: int, columns: int, faults: FaultList) -> tuple[list[str], tuple[int, ...]]:
    """Return a line's functions and counts; neither if there was a fault, which is added."""
    path, *counts = line.strip().rsplit(None, columns) if columns > 1 else line.strip().rpartition(" ")[::2]
    functions = path.strip().split(";")
    wrong = next((count for count in counts if not _is_count(count)), None)
    if wrong is not None:
        faults.add(str(number), "count", f"should be a whole number from 0 to {LARGEST}, after a blank", wrong or line)
    elif not any(map(str.strip, functions)):
        faults.add(str(number), "stack", "should name a function", path.strip() or "none")
    elif len(functions) > DEEPEST:
        faults.add(str(number), "stack", f"should be at most {DEEPEST} functions deep", len(functions))
    else:
        return functions, tuple(map(int, counts))
    return [], ()


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS and int(text) <= LARGEST


def _word(function: str) -> str:
    return plain(function).replace(";", ":").strip() or UNKNOWN
