"""Folded stacks: a line a stack, functions from the root joined by semicolons, then a count (Gregg 2011)."""

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

    Parameters
    ----------
    data : the file's bytes, UTF-8
    name : of the file, for faults

    Raises
    ------
    FormatError
        If a line does not end in a count from 0 to 2⁶³ − 1 after a blank, has no function, is deeper than 16,384
        functions, or there is none.

    Examples
    --------
    >>> profile = read_folded(b"main;parse 3\\nmain 1\\nmain;parse 4\\n")
    >>> [(sample.stack, sample.amounts) for sample in profile.samples], profile.frames[0].function
    ([((0, 1), (7,)), ((1,), (1,))], 'parse')
    """
    faults = FaultList(name)
    frames: dict[str, int] = {}
    sums: dict[tuple[int, ...], int] = {}
    held = 0
    for number, line in enumerate(data.decode(errors="replace").split("\n"), 1):
        if not line.strip():
            continue
        functions, count = _parsed(line, number, faults)
        if count < 0:
            continue
        stack = tuple(frames.setdefault(plain(function), len(frames)) for function in reversed(functions))
        held += len(stack) if stack not in sums else 0
        if held > MOST_FRAMES:
            raise refusal(name, str(number), "stack", f"should be at most {MOST_FRAMES} functions in all", "more")
        sums[stack] = sums.get(stack, 0) + count
    if not sums and not faults.first:
        faults.add("", "stacks", "should be at least one", "none")
    faults.refuse()
    return Profile(
        (Measure("samples"),),
        tuple(map(Frame, frames)),
        tuple(Sample(stack, (count,)) for stack, count in sums.items()),
        name=name,
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


def _parsed(line: str, number: int, faults: FaultList) -> tuple[list[str], int]:
    """Return a line's functions and count; a count of −1 if there was a fault, which is added."""
    path, _, count = line.strip().rpartition(" ")
    functions = path.strip().split(";")
    if not (count.isascii() and count.isdigit() and len(count) <= _DIGITS and int(count) <= LARGEST):
        faults.add(str(number), "count", f"should be a whole number from 0 to {LARGEST}, after a blank", count or line)
    elif not path.strip() or not all(functions):
        faults.add(str(number), "stack", "should be names of functions joined by semicolons", path or "none")
    elif len(functions) > DEEPEST:
        faults.add(str(number), "stack", f"should be at most {DEEPEST} functions deep", len(functions))
    else:
        return functions, int(count)
    return [], -1


def _word(function: str) -> str:
    return plain(function).replace(";", ":").strip() or UNKNOWN
