"""Folded stacks: a line a stack, functions from the root joined by semicolons, then a count (Gregg 2011)."""

import heapq
import io
import itertools
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from analysis.profiling.formats.columns import FrameTable, SampleTable
from analysis.profiling.formats.foreign import (
    DEEPEST,
    LARGEST,
    STACK_FRAMES,
    UNKNOWN,
    ForeignProfile,
    Frame,
    FrameBudget,
    Measure,
)
from analysis.profiling.formats.signs import AFTER, BEFORE, parted_by_sign
from analysis.profiling.formats.stack_sums import PathSums
from analysis.tables.faults import Faults, plain

_AT_ONCE = 20_000
"""Samples that are written at once."""
_MOST_BYTES, _PATH_BYTES = 60_000_000, 150
"""Of the texts of sums that are in memory, and what each of them takes besides; more of them are in a file."""
_FRAME_FACTOR = 6
"""How many times as many frames there may be as in formats whose stacks are not arrays."""
_NAME_FRAMES, _LETTERS = 45, 2
"""As how many frames a name counts that is new, and so many of its letters as one more."""
_NUMERAL = re.compile(r"[-+]?[0-9]*\.?[0-9]+", re.ASCII)
_COMMENT = re.compile(r"# (?![-0-9. ]+$)[^;]*")
"""A line about the file, as those of Austin with its mode and interval; `# 5` is a function of that name."""
_BLANKS = "\ufeff \t"
"""What may stand before a comment: blanks, and the mark with which some editors begin a file."""
_COMMENT_BYTES = 16
"""First bytes of a line among which a comment has its mark."""
_MOST_LETTERS = 60
_MOST_NUMBERS = 255
_BEFORE_AFTER = (BEFORE, AFTER)
"""Events of two counts a line."""
_NUMBER = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?", re.ASCII)
_MILLIONTHS = 10**6
_SURELY_SMALL = 19
"""Digits from which on a number may be too large."""
_QUOTING = "a name that ends in a number goes in quotes"
_IF_NAMES = 'if the first of them is the end of a name, put such names in quotes, as main;"req 200" 10'


def is_folded(line: str) -> bool:
    """Return whether a line could be a folded stack: it ends in a whole number."""
    stack, _, count = line.rstrip().rpartition(" ")
    return bool(stack.strip()) and _is_whole(count) and not _is_comment(line)


def is_nearly_folded(line: str) -> bool:
    """Return whether a line has functions and a number that may be no count, such as -3 or +5.

    Examples
    --------
    >>> is_nearly_folded("main;read -3"), is_nearly_folded("main.c:3; return -3;")
    (True, False)
    """
    stack, _, number = line.rstrip().rpartition(" ")
    caller, parted, function = stack.partition(";")
    return bool(caller and parted and function.strip()) and _NUMERAL.fullmatch(number) is not None


def read_folded(data: bytes, name: str = "stacks.folded") -> ForeignProfile:
    """Read folded stacks; equal ones are summed, empty lines and comments (`# interval: 100`) skipped.

    A function without a name, as `main;;read` has one, is read as [unknown]. If every line ends in two counts, as
    those of `difffolded.pl` do, they are two measures, `before` and `after`. A name may end in a number if fewer than
    half of the lines have such a name, which a note counts; or in any number if it stands in quotes. Negative counts
    are a difference (`parted_by_sign`). If any count is a fraction, all are read as the event `weight` in millionths,
    each stack as one sample.

    Parameters
    ----------
    data : the file's bytes, UTF-8
    name : of the file, for faults
    """
    data = data if b"\n" in data else data.replace(b"\r", b"\n")
    faults, lines = Faults(name), _Lines(data)
    budget = FrameBudget(name, times=_FRAME_FACTOR, besides=f", each function as {_NAME_FRAMES} and half its letters")
    numbers, points = _numbers_at_ends(lines)
    columns = len(_BEFORE_AFTER) if min(numbers, default=0) >= len(_BEFORE_AFTER) else 1
    numbered = _names_that_end_in_a_number(lines, numbers, columns, faults)
    fractions = points and any(_has_fraction(line, columns) for _, line in lines)
    functions, sums = _Functions(budget), PathSums(budget, columns)
    for number, line in lines:
        names, counts = _parsed(line, number, columns, faults, scale=_MILLIONTHS if fractions else 1)
        if names:
            sums.add(functions.path(names, line=number), counts, line=number)
    if not functions.numbers and not faults.count:
        faults.tell("stacks", "should be at least one", "none")
    faults.refuse()
    profile = ForeignProfile(
        _measures(columns, fractions=fractions),
        tuple(map(Frame, functions.numbers)),
        sums.table(taken=1 if fractions else -1),
        name=name,
        notes=(*_notes_on_comments(data), *_notes(columns, functions.nameless, numbered, fractions=fractions)),
    )
    return parted_by_sign(profile)


def write_folded(profile: ForeignProfile, event: str) -> str:
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
    >>> from analysis.profiling.formats.foreign import Sample
    >>> profile = ForeignProfile((Measure("samples"),), (Frame("f"), Frame("main")), (Sample((0, 1), (3,)),))
    >>> print(write_folded(profile, "samples"), end="")
    main;f 3
    """
    return "".join(folded_lines([profile], event))


def folded_lines(parts: Iterable[ForeignProfile], event: str) -> Iterator[str]:
    """Yield the lines of `write_folded` for a profile in parts; exceptions as there.

    Sums that do not fit memory are written to temporary files in the order of their texts, and put together from there.

    Parameters
    ----------
    parts : with the event among their measures; of several, each is let go of before the next is asked for
    event : whose values to write
    """
    sums, size, runs, several = dict[str, int](), 0, list[Iterator[tuple[str, int]]](), False
    for part in parts:
        if several and sums:
            runs.append(_put_away(sums))
            size = 0
        several = True
        for paths, amounts in _paths(part, event):
            for path, amount in zip(paths, amounts, strict=True):
                sums[path] = sums.get(path, 0) + amount
            size += sum(map(len, paths)) + _PATH_BYTES * len(paths)
            if size > _MOST_BYTES:
                runs.append(_put_away(sums))
                size = 0
        del part
    lines = ((path, sums[path]) for path in sorted(sums))
    for path, count in _merged([*runs, lines]) if runs else lines:
        if count:
            yield f"{path} {count}\n"


def _merged(runs: Sequence[Iterator[tuple[str, int]]]) -> Iterator[tuple[str, int]]:
    """Yield the sums of several runs, which are in the order of their texts, in this order."""
    for path, same in itertools.groupby(heapq.merge(*runs), lambda line: line[0]):
        yield path, sum(amount for _, amount in same)


def _put_away(sums: dict[str, int]) -> Iterator[tuple[str, int]]:
    """Write sums to a temporary file, clear them, and return them in the order of their texts."""
    file = tempfile.TemporaryFile("w+", encoding="utf-8", errors="surrogatepass", newline="\n")  # noqa: SIM115  # closed when it is read
    file.writelines(f"{path} {sums[path]}\n" for path in sorted(sums))
    sums.clear()

    def lines() -> Iterator[tuple[str, int]]:
        with file:
            file.seek(0)
            for line in file:
                path, _, amount = line.rpartition(" ")
                yield path, int(amount)

    return lines()


def _paths(profile: ForeignProfile, event: str) -> Iterator[tuple[list[str], list[int]]]:
    """Yield the texts of stacks and their amounts, some at once."""
    at = {measure.event: index for index, measure in enumerate(profile.measures)}[event]
    table, frames = SampleTable.of(profile.samples), FrameTable.of(profile.frames)
    functions = {place: _word(frames.texts[place]) for place in np.unique(frames.names[:, 0]).tolist()}
    names = [functions[place] for place in frames.names[:, 0].tolist()]
    for first in range(0, len(table), _AT_ONCE):
        rows = slice(first, first + _AT_ONCE)
        last = np.cumsum(table.depths[table.stack[rows]]).tolist()
        words = [names[frame] for frame in table.frames_of(rows).tolist()]
        bounds = zip([0, *last[:-1]], last, strict=True)
        yield [";".join(words[begin:end][::-1]) or UNKNOWN for begin, end in bounds], table.amount(at)[rows].tolist()


@dataclass(slots=True)
class _Functions:
    """Functions of the stacks, numbered in the order in which they came."""

    budget: FrameBudget
    numbers: dict[str, int] = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)
    """Number of each name as it stands in the file."""
    nameless: int = 0
    """Stacks that have a function without a name."""

    def path(self, names: list[str], *, line: int) -> list[int]:
        """Return the numbers of a stack's functions, the one sampled first; `names` are as they stand in the file."""
        try:
            path = [self.known[name] for name in reversed(names)]
        except KeyError:
            path = [self._number(name, line) for name in reversed(names)]
        if -1 in path:
            self.nameless += 1
            unknown = self.numbers.setdefault(UNKNOWN, len(self.numbers))
            path = [unknown if number < 0 else number for number in path]
        return path

    def _number(self, name: str, line: int) -> int:
        if name not in self.known:
            self.budget.take(_NAME_FRAMES + len(name) // _LETTERS - STACK_FRAMES, line=line)
            blank = not name.strip()
            self.known[name] = -1 if blank else self.numbers.setdefault(plain(name), len(self.numbers))
        return self.known[name]


@dataclass(frozen=True, slots=True)
class _Lines:
    """The lines that have stacks, with their numbers, decoded as they are read: twice, but never all at once."""

    data: bytes

    def __iter__(self) -> Iterator[tuple[int, str]]:
        for number, line in enumerate(io.BytesIO(self.data), 1):
            text = line.decode(errors="replace").rstrip("\n")
            if text and not text.isspace() and not (text.lstrip(_BLANKS)[:1] == "#" and _is_comment(text)):
                yield number, text


def _measures(columns: int, *, fractions: bool) -> tuple[Measure, ...]:
    """Return what the lines count: samples or a weight, or two things if every line ends in two numbers or more."""
    unit = "millionths" if fractions else "count"
    names = _BEFORE_AFTER if columns == len(_BEFORE_AFTER) else ("weight",) if fractions else ("samples",)
    return tuple(Measure(name, unit) for name in names)


def _is_comment(line: str) -> bool:
    text = line.lstrip(_BLANKS).rstrip()
    return text == "#" or _COMMENT.fullmatch(text) is not None


def _numbers_at_ends(lines: _Lines) -> tuple[bytes, bool]:
    """Return how many numbers each line ends in after its first word, and whether one of them has a point."""
    counts, points = bytearray(), False
    for _, line in lines:
        words = line.rsplit(None, 2)
        if len(words) > 2 and _is_number(words[1]):
            words = line.rsplit(None, _MOST_NUMBERS)
        ends = list(itertools.takewhile(_is_number, reversed(words[1:])))
        counts.append(len(ends))
        points = points or any("." in number for number in ends)
    return bytes(counts), points


def _is_number(word: str) -> bool:
    return (word.isascii() and word.isdigit()) or _NUMBER.fullmatch(word) is not None


def _is_whole(word: str) -> bool:
    return word.isascii() and word.isdigit()


def _has_fraction(line: str, columns: int) -> bool:
    """Return whether one of the counts that a line ends in is a fraction."""
    words = line.rsplit(None, columns)[1:]
    return any(
        "." in word and _NUMBER.fullmatch(word) is not None and word.partition(".")[2].strip("0") for word in words
    )


def _names_that_end_in_a_number(lines: _Lines, numbers: Sequence[int], columns: int, faults: Faults) -> list[str]:
    """Return the lines whose last name ends in a number; if these could as well be counts, add faults instead.

    A number before the counts belongs to a name if most lines have none. One that at least half of the lines have is a
    count that others lack, and two of them are no name.
    """
    if max(numbers, default=0) <= columns or not min(numbers):  # A line without any is a fault that `_parsed` adds.
        return []
    longer = [(place, line, count) for (place, line), count in zip(lines, numbers, strict=True) if count > columns]
    usual = max(Counter(numbers).items(), key=lambda pair: (pair[1], pair[0]))[0]
    on = f"as on {numbers.count(usual):,} of {len(numbers):,} lines"
    if usual > len(_BEFORE_AFTER):
        for place, line, count in longer:
            faults.tell("counts", "should be one, or two as of difffolded.pl", f"{count}: {line}", line=place)
    elif 2 * len(longer) >= len(numbers):
        for (place, line), count in zip(lines, numbers, strict=True):
            if count != usual:
                faults.tell("counts", f"should be {usual}, {on} ({_QUOTING})", f"{count}: {line}", line=place)
    else:
        for place, line, count in longer:
            if count > columns + 1:
                faults.tell("counts", f"should be {columns}, {on} ({_QUOTING})", f"{count}: {line}", line=place)
    return [line for _, line, _ in longer]


def _notes(counts: int, nameless: int, numbered: Sequence[str], *, fractions: bool) -> Iterator[str]:
    if fractions:
        yield "counts are fractions: read in millionths, each stack as one sample"
    if counts > 1:
        yield f"two counts a line, as of difffolded.pl: read as the events before and after; {_IF_NAMES}"
    if numbered:
        lines = "1 line has" if len(numbered) == 1 else f"{len(numbered):,} lines have"
        name = plain(numbered[0].rsplit(None, counts)[0].rpartition(";")[2].strip())
        wrong = "if that number is a count, give all lines as many"
        yield f"{lines} a function whose name ends in a number, as {name[:_MOST_LETTERS]}; {wrong}"
    if nameless:
        lines = "1 line has" if nameless == 1 else f"{nameless:,} lines have"
        yield f"{lines} a function without a name, which is read as {UNKNOWN}"


def _notes_on_comments(data: bytes) -> Iterator[str]:
    comments = sum(
        b"#" in line[:_COMMENT_BYTES] and _is_comment(line.decode(errors="replace")) for line in io.BytesIO(data)
    )
    if comments:
        yield f"{comments:,} line{'s begin' if comments > 1 else ' begins'} with # and a blank: left out as comments"


def _parsed(line: str, number: int, columns: int, faults: Faults, *, scale: int) -> tuple[list[str], tuple[int, ...]]:
    """Return a line's functions and counts; neither if there was a fault, which is added."""
    path, *counts = line.strip().rsplit(None, columns) if columns > 1 else line.strip().rpartition(" ")[::2]
    functions = path.strip().split(";")
    amounts = [_amount(count, scale) for count in counts]
    if None in amounts:
        wrong = counts[amounts.index(None)]
        faults.tell("count", f"should be a number up to {LARGEST // scale}, after a blank", wrong or line, line=number)
    elif not any(map(str.strip, functions)):
        faults.tell("stack", "should name a function", path.strip() or "none", line=number)
    elif len(functions) > DEEPEST:
        faults.tell("stack", f"should be at most {DEEPEST} functions deep", len(functions), line=number)
    else:
        return functions, tuple(amount or 0 for amount in amounts)
    return [], ()


def _amount(text: str, scale: int) -> int | None:
    """Return a count in so many parts of 1, rounded; None if it is none, or too large."""
    if scale == 1 and len(text) < _SURELY_SMALL and text.isascii() and text.isdigit():
        return int(text)
    if _NUMBER.fullmatch(text) is None:
        return None
    amount = int(text) * scale if "." not in text else round(Fraction(text) * scale)
    return amount if abs(amount) <= LARGEST else None


def _word(function: str) -> str:
    return plain(function).replace(";", ":").strip() or UNKNOWN
