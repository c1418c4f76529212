"""Lines of an access log in the common or the combined format, scanned byte by byte by one compiled loop.

It takes what the regular expression of `access_logs` for one number after the bytes takes, and nothing else: a line
of which it is not sure is left to that.
"""

from typing import NamedTuple

import numpy as np

from models.arrays import Bytes, Floats, Ints, UInts
from models.code.compiled import njit

_NEWLINE, _RETURN, _SPACE, _QUOTE, _ESCAPE, _OPEN, _CLOSE, _POINT, _DASH = b'\n\r "\\[].-'
_ZERO, _NINE = b"09"
_FNV, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_MOST_DIGITS, _MOST_DECIMALS = 15, 22
"""Digits of a whole number that a float holds, and powers of ten that it does: their quotient is rounded once."""
_TENS = 10.0 ** np.arange(_MOST_DECIMALS + 1)
UNSURE, EMPTY, SURE = 0, 1, 2
IN_TIMES = np.zeros(256, dtype=np.bool_)
"""Bytes that stamps are made of."""
IN_TIMES[np.frombuffer(b"-+.:/ 0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", np.uint8)] = True


class Scanned(NamedTuple):
    """What the scanner knows of n lines."""

    begin: Ints
    """(n,) where each begins."""
    end: Ints
    """(n,) and ends, before its newline, or before a carriage return and its newline."""
    kind: Ints
    """(n,) UNSURE, EMPTY or SURE; what follows is of lines that are SURE."""
    stamp: Ints
    """(n,) number of the stamp."""
    stamps: Ints
    """(stamps, 2) where each text of stamps begins and ends; lines in a row with the same text share one."""
    took: Floats
    """(n,) the number after the bytes, in its own unit."""
    decimals: Ints
    """(n,) digits behind its point; -1: it has none."""
    rest: UInts
    """(n,) digest of all that a line says beside the two, FNV-1a of 64 bits."""


@njit(cache=False, borrows=True)
def _digest(text: Bytes, begin: int, end: int, digest: np.uint64) -> np.uint64:
    for i in range(begin, end):
        digest = (digest ^ np.uint64(text[i])) * _PRIME
    return digest


@njit(cache=False, borrows=True)
def _after_quoted(text: Bytes, at: int, end: int) -> int:
    """Return where a quoted text that begins here has ended, -1 if it does not end."""
    at += 1
    while at < end:
        if text[at] == _ESCAPE:
            at += 2
        elif text[at] == _QUOTE:
            return at + 1
        else:
            at += 1
    return -1


@njit(cache=False, borrows=True)
def _is_digit(byte: int) -> bool:
    return bool(_ZERO <= byte <= _NINE)


@njit(cache=False, borrows=True)
def _stamp_before(text: Bytes, begin: int, quote: int) -> int:
    """Return where the stamp begins that stands in brackets before the first quote; -1: there is none."""
    if quote - begin < 4 or text[quote - 1] != _SPACE or text[quote - 2] != _CLOSE:
        return -1
    at = quote - 3
    while at >= begin and IN_TIMES[text[at]]:
        at -= 1
    return at + 1 if begin <= at < quote - 3 and text[at] == _OPEN else -1


@njit(cache=False, borrows=True)
def _after_bytes(text: Bytes, at: int, end: int) -> int:
    """Return where the fields after status and bytes begin, given where the request has ended; -1: they are not so."""
    if end - at < 6 or text[at] != _SPACE or text[at + 4] != _SPACE:
        return -1
    if not (_is_digit(text[at + 1]) and _is_digit(text[at + 2]) and _is_digit(text[at + 3])):
        return -1
    at += 5
    if text[at] == _DASH:
        return at + 1
    first = at
    while at < end and _is_digit(text[at]):
        at += 1
    return at if at > first else -1


@njit(cache=False, borrows=True)
def _field(text: Bytes, at: int, end: int) -> tuple[int, int]:
    """Return where a field ends and the digits behind its point if it is a number: -1 without a point, else -2.

    The end is -1 where it holds a quote that is not closed, or nothing.
    """
    first, points, digits, others, point = at, 0, 0, 0, 0
    while at < end and text[at] != _SPACE:
        byte = text[at]
        if byte == _QUOTE:
            others += 1
            at = _after_quoted(text, at, end)
            if at < 0:
                return -1, 0
            continue
        if _is_digit(byte):
            digits += 1
        elif byte == _POINT:
            points, point = points + 1, at
        else:
            others += 1
        at += 1
    if at == first:
        return -1, 0
    if others > 0 or points > 1 or digits == 0 or (points == 1 and point in (first, at - 1)):
        return at, -2
    return at, at - 1 - point if points == 1 else -1


@njit(cache=False, borrows=True)
def _number(text: Bytes, begin: int, end: int, decimals: int) -> float:
    """Return a number that is written out, NaN if it has more digits than a float holds."""
    if end - begin - (decimals >= 0) > _MOST_DIGITS:
        return np.nan
    whole = np.int64(0)
    for i in range(begin, end):
        if text[i] != _POINT:
            whole = whole * 10 + np.int64(text[i] - _ZERO)
    return float(whole / _TENS[max(decimals, 0)])


@njit(cache=False, borrows=True)
def _fields(text: Bytes, at: int, end: int) -> tuple[int, int, int]:
    """Return where the only number among the fields begins and ends, and its decimals; -1 if there is not one."""
    begin, stop, decimals = -1, -1, -1
    while at < end:
        if text[at] != _SPACE:
            return -1, -1, -1
        after, kind = _field(text, at + 1, end)
        if after < 0 or (kind > -2 and begin >= 0):
            return -1, -1, -1
        if kind > -2:
            begin, stop, decimals = at + 1, after, kind
        at = after
    return begin, stop, decimals


@njit(cache=False, borrows=True)
def _same(text: Bytes, begin: int, end: int, other: int, its_end: int) -> bool:
    if end - begin != its_end - other:
        return False
    for i in range(end - begin):  # noqa: SIM110  # compiled
        if text[begin + i] != text[other + i]:
            return False
    return True


@njit(nogil=True)
def scan(text: Bytes, lines: int) -> Scanned:
    """Scan lines of text, the last of which need not end in a newline.

    Parameters
    ----------
    text : (bytes,) array
    lines : how many there are
    """
    begin, end, kind = np.zeros(lines, np.int64), np.zeros(lines, np.int64), np.zeros(lines, np.int64)
    stamp, took, decimals = np.zeros(lines, np.int64), np.full(lines, np.nan), np.full(lines, -1)
    stamps, rest, known = np.zeros((lines, 2), np.int64), np.zeros(lines, np.uint64), 0
    at = 0
    for line in range(lines):
        begin[line], quote = at, -1
        while at < text.size and text[at] != _NEWLINE:
            if text[at] == _QUOTE and quote < 0:
                quote = at
            at += 1
        first, last = begin[line], at
        at += 1
        if last > first and text[last - 1] == _RETURN:
            last -= 1
        end[line] = last
        if last == first:
            kind[line] = EMPTY
            continue
        since = _stamp_before(text, first, quote) if quote >= 0 else -1
        after = _after_quoted(text, quote, last) if since >= 0 else -1
        after = _after_bytes(text, after, last) if after >= 0 else -1
        number, stop, places = _fields(text, after, last) if after >= 0 else (-1, -1, -1)
        if number < 0:
            continue
        took[line] = _number(text, number, stop, places)
        if np.isnan(took[line]):
            continue
        until = quote - 2
        if known == 0 or not _same(text, since, until, stamps[known - 1, 0], stamps[known - 1, 1]):
            stamps[known, 0], stamps[known, 1] = since, until
            known += 1
        kind[line], stamp[line], decimals[line] = SURE, known - 1, places
        digest = _digest(text, first, since, _FNV)
        digest = _digest(text, until, number, digest)
        rest[line] = _digest(text, stop, last, digest)
    return Scanned(begin, end, kind, stamp, stamps[:known].copy(), took, decimals, rest)


@njit(nogil=True)
def digests(text: Bytes, start: Ints) -> UInts:
    """Return the digests of texts that lie one after another, as of `scan`.

    Parameters
    ----------
    text : (bytes,) array
    start : (n + 1,) array, where each begins and the last ends
    """
    digest = np.zeros(start.size - 1, np.uint64)
    for i in range(start.size - 1):
        digest[i] = _digest(text, start[i], start[i + 1], _FNV)
    return digest


def unscanned(text: Bytes, lines: int) -> Scanned:
    """Return lines of text about none of which the scanner is sure, as of `scan`."""
    newline = np.flatnonzero(text == _NEWLINE)
    begin = np.append(0, newline + 1)[:lines]
    end = np.append(newline, text.size)[:lines]
    end = end - np.isin(end, np.flatnonzero(text == _RETURN) + 1)
    return Scanned(
        begin=begin,
        end=end,
        kind=np.where(begin == end, EMPTY, UNSURE),
        stamp=np.zeros(lines, np.int64),
        stamps=np.zeros((0, 2), np.int64),
        took=np.full(lines, np.nan),
        decimals=np.full(lines, -1),
        rest=np.zeros(lines, np.uint64),
    )
