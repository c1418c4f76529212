"""The cells of a block as names and numbers, each fault with its line and place."""

import json
import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.tables.columns import MOST_COUNTED
from analysis.tables.faults import Faults, FileFault
from analysis.traces.files import TraceBlock
from analysis.traces.layouts import Kind, TraceColumn
from models.arrays import Bools, Floats

MOST = 10_000.0
"""No amount is larger: CPUs, requests, cycles per instruction."""
INVALID = (-1.0, 101.0)
"""What stands for a value that is not valid, where a trace says so."""


def names(block: TraceBlock, column: TraceColumn, faults: Faults) -> tuple[pa.Array, Bools]:
    """Return a column's names as text, "" where one is missing, and which rows have a fault in it."""
    given = block.columns.get(column.field)
    if given is None:
        return pa.array([""] * len(block.lines), pa.string()), np.zeros(len(block.lines), dtype=bool)
    try:
        text = pc.fill_null(pc.utf8_trim_whitespace(pc.cast(given, pa.string())), "")
    except (pa.ArrowException, UnicodeDecodeError):
        return _unusable(block, column, faults, "should hold text")
    empty = pc.equal(text, "").to_numpy(zero_copy_only=False)
    wrong = empty if column.kind == "name" else np.zeros(len(empty), dtype=bool)
    _tell(block, column, [(wrong, "should not be empty")], faults)
    return text, wrong


def numbers(block: TraceBlock, column: TraceColumn, faults: Faults) -> tuple[Floats, Bools]:
    """Return a column's numbers, NaN where one is missing or not valid, and which rows have a fault in it."""
    given = block.columns[column.field]
    if not (pa.types.is_string(given.type) or pa.types.is_large_string(given.type)):
        try:
            value, broken = _floats(pc.cast(given, pa.float64(), safe=False)), np.zeros(len(given), dtype=bool)
        except pa.ArrowException:
            text, wrong = _unusable(block, column, faults, "should hold numbers")
            return np.full(len(text), np.nan), wrong
    else:
        value, broken = _parsed(given)
    problems = list(_problems(value, broken, column.kind))
    _tell(block, column, problems, faults)
    faulty = np.logical_or.reduce([wrong for wrong, _ in problems])
    nothing = faulty | (np.isin(value, INVALID) & (column.kind == "amount_or_invalid"))
    return np.where(nothing, np.nan, value), faulty


def _problems(value: Floats, broken: Bools, kind: Kind) -> Iterator[tuple[Bools, str]]:
    """Yield which rows have which problem, one at most."""
    yield broken, "should be a number"
    infinite, negative = np.isinf(value), (value < 0) & ~np.isinf(value)
    yield infinite, "should be a finite number"
    if kind in {"time", "count"}:
        yield np.isnan(value) & ~broken & (kind == "time"), "should not be empty"
        yield negative, "should be at least 0"
        yield np.isfinite(value) & ~negative & (value != np.floor(value)), "should be a whole number"
        yield (value > MOST_COUNTED) & ~infinite & (value == np.floor(value)), f"should be at most {MOST_COUNTED}"
        return
    yield negative & ~((value == INVALID[0]) & (kind == "amount_or_invalid")), "should be at least 0"
    yield (value > MOST) & ~infinite, f"should be at most {MOST:.0f}"


def _parsed(given: pa.Array) -> tuple[Floats, Bools]:
    """Return the numbers of texts, NaN where there is none, and which texts are none though not empty."""
    text = pc.utf8_trim_whitespace(given)
    text = pc.if_else(pc.equal(text, ""), pa.scalar(None, text.type), text)
    try:
        return _floats(pc.cast(text, pa.float64())), np.zeros(len(text), dtype=bool)
    except pa.ArrowException:
        value = np.array([_float(cell) for cell in text.to_pylist()])
    broken = np.isnan(value) & pc.is_valid(text).to_numpy(zero_copy_only=False)
    broken &= ~np.array([(cell or "").lower().lstrip("+-") == "nan" for cell in text.to_pylist()])
    return value, broken


def _float(text: str | None) -> float:
    try:
        return math.nan if text is None else float(text)
    except ValueError:
        return math.nan


def _floats(column: pa.Array) -> Floats:
    return np.asarray(pc.fill_null(column, math.nan).to_numpy(zero_copy_only=False), dtype=np.float64)


def _tell(block: TraceBlock, column: TraceColumn, problems: list[tuple[Bools, str]], faults: Faults) -> None:
    for wrong, problem in problems:
        for row in np.flatnonzero(wrong):
            got = block.columns[column.field][int(row)].as_py()
            place = block.places[column.field]
            faults.add(FileFault(int(block.lines[row]), place, column.names[0], problem, _shown(got)))


def _shown(got: object) -> str:
    text = json.dumps(got, default=str, ensure_ascii=False)
    return text if len(text) <= 60 else text[:59] + "…"


def _unusable(block: TraceBlock, column: TraceColumn, faults: Faults, problem: str) -> tuple[pa.Array, Bools]:
    """Return nothing of a column of a type that cannot hold what it should."""
    kind, line = str(block.columns[column.field].type), int(block.lines[0]) if len(block.lines) else 1
    faults.add(FileFault(line, block.places[column.field], column.names[0], problem, f"type {kind}"))
    return pa.array([""] * len(block.lines), pa.string()), np.ones(len(block.lines), dtype=bool)
