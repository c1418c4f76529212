"""Columns of foreign tables as the types that they should have, every fault at once, each with its place."""

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from analysis.tables.cells import FileCells, Source, cells_of, header_of
from analysis.tables.faults import FileError, FileFault
from analysis.tables.quantities import numbers, times_s
from analysis.tables.recipe import AS_IT_IS, PERIOD, Recipe, prepared, recipe_expressions
from models.arrays import Bools, Floats, Ints

_WIDEST = 200
"""Characters of a cell that a message shows."""
LEAST, MOST = 1e-50, 1e50
"""Between these lie all numbers but 0 that a table may hold: squares of their ratios are still floats."""
MOST_COUNTED = 2**53 - 1
"""Up to here a float holds every whole number."""

Kind = Literal["text", "real", "count", "flag"]
"""What a column holds; a flag is 0, 1, true or false."""


Problem = tuple[Bools, str]
_INFINITE, _DIVIDED = "should be a finite number", "should be a finite number; is something divided by 0?"
_SPELT_OUT = 3
"""Cells of a column with the same problem that have a fault each; of more there is one fault, which counts them."""


class Wrong(NamedTuple):
    """Cells of a column that have one problem."""

    rows: Bools
    problem: str
    field: str
    column: int
    cells: pd.Series

    def faults(self, lines: Ints) -> Iterator[FileFault]:
        """Yield a fault of each cell, or of the first one with the number of the others."""
        rows = np.flatnonzero(self.rows)
        for row in rows[: 1 if len(rows) > _SPELT_OUT else _SPELT_OUT]:
            got = _shown(self.cells.iloc[row]) + _more(rows, lines)
            yield FileFault(int(lines[row]), self.column, self.field, self.problem, got)


class Rows(NamedTuple):
    """A table whose columns are checked, and what was left out of it.

    Attributes
    ----------
    table : with a plain RangeIndex
    lines : (N,) of the file
    left_out : the other rows: line, reason, and the columns of `table` as far as they could be read
    notes : how cells were understood, where they might have meant something else
    """

    table: pd.DataFrame
    lines: Ints
    left_out: pd.DataFrame
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Field:
    """A column that a table has: what it holds, and from where on."""

    name: str
    kind: Kind
    above_zero: bool = True
    """Whether a number must be above 0, rather than 0 or more."""
    signed: bool = False
    """Whether any finite number will do, whatever `above_zero` says."""
    required: bool = True
    may_be_empty: bool = False
    """Whether a cell may be empty, which then is NaN."""
    lenient: bool = False
    """Whether a number that cannot be used (none, not finite, 0 or below) is no fault, but left for others to judge."""


class Remedies(NamedTuple):
    """What messages name to mend a table."""

    missing: str = ""
    """Of a column that is missing, whose name is `{name}`."""
    by_query: bool = False
    """Whether rows that are there twice may be made one by a query in place of the table."""


BY_EXPRESSION = "--column {name}=EXPRESSION makes it of yours"
"""What mends a missing column where a recipe may be given."""
BY_SELECT = 'a query in place of the table makes it: "SELECT …, YOURS AS {name} FROM …"'
"""What mends one of a table that takes no recipe."""


def _nothing(names: Sequence[str]) -> Sequence[str]:
    """Say that no column identifies a row."""
    return names[:0]


def read_table(
    source: Source, fields: Sequence[Field], key: Callable[[Sequence[str]], Sequence[str]] = _nothing
) -> pd.DataFrame:
    """Read the named columns of a table, as `read_rows`, in which nothing may be wrong."""
    return read_rows(source, fields, key).table


def read_rows(
    source: Source,
    fields: Sequence[Field],
    key: Callable[[Sequence[str]], Sequence[str]] = _nothing,
    recipe: Recipe = AS_IT_IS,
    remedies: Remedies = Remedies(),  # noqa: B008  # immutable
) -> Rows:
    """Read the named columns of a table: CSV or Parquet, gzipped or not, whatever its name ends in; a query; a frame.

    Identifiers come back as text, so that 7 in one file is 7 in another. Columns beyond `fields` are read as they
    are. Blank lines of a CSV file are skipped. The header is judged before anything else is read.

    Parameters
    ----------
    source : the file, query or frame
    fields : columns that are checked; one that is not required may be missing
    key : from the file's column names to those by which a row may be there only once; none: rows may repeat
    recipe : how its columns become those of `fields`, and which share of rows may be bad
    remedies : what messages name to mend columns that are missing and rows that are there twice

    Raises
    ------
    FileError
        With every fault: missing, repeated, empty, wrongly typed, not finite, out of bounds, ragged, cut off; or with
        the reasons, if a larger share of rows is bad than `recipe.skip_bad`.
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> frame = pd.DataFrame({"job": ["a", "b"], "quota": ["2", "x"]})
    >>> fields = [Field("job", "text"), Field("quota", "real")]
    >>> read_rows(frame, fields)
    Traceback (most recent call last):
    analysis.tables.faults.FileError: 3:2: quota: should be a number, got "x"
    >>> read_rows(frame, fields, recipe=Recipe(skip_bad=0.5)).table["job"].tolist()
    ['a']
    """
    header = header_of(source)
    if header and (faults := _of_header(header, fields, recipe, remedies.missing)):
        raise FileError(faults)
    cells = cells_of(source)
    if not header and cells.names and (faults := _of_header(cells.names, fields, recipe, remedies.missing)):
        raise FileError(faults)
    cells = cells if recipe.takes_as_is else prepared(cells, recipe)
    columns, wrongs, notes = dict(cells.columns), list[Wrong](), [*cells.notes]
    for wanted in fields:
        if wanted.name in columns:
            columns[wanted.name], wrong, note = _checked(cells, wanted, strict=recipe.skip_bad is not None)
            wrongs += wrong
            notes += note
    out = np.logical_or.reduce([np.zeros(len(cells.lines), np.bool_), *(wrong.rows for wrong in wrongs)])
    faults = list(cells.faults)
    if not len(out) and cells.names and not faults:
        filtered = "" if recipe.takes_as_is else " that is taken"
        faults.append(FileFault(2, 1, "rows", f"should hold at least one row{filtered}", "none"))
    if out.any() and (recipe.skip_bad is None or out.mean() > recipe.skip_bad):
        faults += [fault for wrong in wrongs for fault in wrong.faults(cells.lines)]
        if recipe.skip_bad is not None:
            problem = f"at most {recipe.skip_bad:.2%} may have a cell that cannot be used (--skip-bad)"
            faults.append(FileFault(0, 0, "rows", problem, f"{out.mean():.2%}: {out.sum():,} of {len(out):,}"))
    faults += _repeated_rows(cells, key(cells.names), out & (recipe.skip_bad is not None), by_query=remedies.by_query)
    if faults:
        raise FileError(faults)
    table = pd.DataFrame(columns)
    left_out = table[out].assign(line=cells.lines[out], reason=_reasons(wrongs, len(out))[out]).reset_index(drop=True)
    return Rows(table[~out].reset_index(drop=True), cells.lines[~out], left_out, tuple(notes))


def _reasons(wrongs: Sequence[Wrong], count: int) -> "np.typing.NDArray[np.object_]":
    """Return the first problem of every row that has one."""
    reasons = np.full(count, "", dtype=object)
    for wrong in reversed(wrongs):
        reasons[wrong.rows] = f"{wrong.field} {wrong.problem}"
    return reasons


def _of_header(header: Sequence[str], fields: Sequence[Field], recipe: Recipe, remedy: str) -> list[FileFault]:
    """Return what is wrong with a table's column names."""
    try:
        names = {*header, *(() if recipe.takes_as_is else recipe_expressions(header, recipe))}
    except FileError as error:
        return list(error.faults)
    return [
        FileFault(
            1, 1, wanted.name, f"column is missing{remedied(remedy, wanted.name)}", f"columns {', '.join(header)}"
        )
        for wanted in fields
        if wanted.required and wanted.name not in names
    ]


def remedied(remedy: str, name: str = "") -> str:
    """Return a remedy in parentheses; nothing without one.

    Examples
    --------
    >>> remedied(BY_EXPRESSION, "job")
    ' (--column job=EXPRESSION makes it of yours)'
    """
    return f" ({remedy.format(name=name)})" if remedy else ""


def not_used(given: pd.DataFrame, known: Collection[str]) -> Iterator[str]:
    """Yield a note that names the columns of a table that nobody reads, if there are any.

    Examples
    --------
    >>> list(not_used(pd.DataFrame(columns=["job", "colour", "size"]), ["job"]))
    ['columns not used: colour, size']
    """
    others = [str(name) for name in given.columns if name not in known]
    if others:
        yield f"columns not used: {', '.join(others)}"


def _repeated_rows(cells: FileCells, key: Sequence[str], out: Bools, *, by_query: bool) -> Iterator[FileFault]:
    """Yield a fault for every row whose key stood in an earlier row, but for those that are out."""
    if not key or not len(cells.lines) or not set(key) <= set(cells.columns):
        return
    texts = pd.DataFrame({name: cells.columns[name].astype(str) for name in key})
    group = texts.groupby(list(key), sort=False, dropna=False).ngroup()
    _, first, code = np.unique(group, return_index=True, return_inverse=True)
    whole = len(key) == len(cells.names)
    name = "row" if whole else ", ".join(key)
    column = 1 if whole else cells.position(key[0])
    query = "SELECT DISTINCT * FROM …" if whole else f"SELECT … GROUP BY {name}"
    remedy = f"a query in place of the table makes one row of several: {query}" if by_query else ""
    again = np.flatnonzero((first[code] != np.arange(len(code))) & ~out)
    for row in again[: 1 if len(again) > _SPELT_OUT else _SPELT_OUT]:
        line, before = int(cells.lines[row]), int(cells.lines[first[code[row]]])
        got = f"the same as in line {before}{_more(again, cells.lines)}"
        yield FileFault(line, column, name, f"should be there once{remedied(remedy)}", got)


def _more(rows: Ints, lines: Ints) -> str:
    """Return how many of a table's rows have the fault of the first of them, and where the next are, if they are many.

    Parameters
    ----------
    rows : (n,) that have it
    lines : (N,) of all rows
    """
    if len(rows) <= _SPELT_OUT:
        return ""
    after = ", ".join(map(str, lines[rows[1:4]]))
    return f" and {len(rows) - 1:,} more of {len(lines):,} rows, next in lines {after}"


def _checked(cells: FileCells, wanted: Field, *, strict: bool) -> tuple[pd.Series, list[Wrong], list[str]]:
    """Return a column as what it should hold, which of its cells have which problem, and notes on its units."""
    given, column = cells.columns[wanted.name], cells.position(wanted.name)
    kind = cells.types.get(wanted.name)
    if kind is not None and not _fits(kind, wanted.kind):
        what = {"text": "text or whole numbers", "flag": "0 and 1, true and false"}.get(wanted.kind, "numbers")
        if what == "numbers" and (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            what += ", holds points in time" + " (--period 1d makes periods of them)" * (wanted.name == PERIOD)
        raise FileError([FileFault(1, column, wanted.name, f"should hold {what}", f"type {kind}")])
    text, notes = cells.text(wanted.name), list[str]()
    if wanted.kind == "flag":
        column_values, problems = _flags(text)
    elif wanted.kind == "text":
        column_values, problems = _texts(text)
    else:
        column_values, problems, units = _numbers(given, text, wanted, strict=strict)
        notes += [f"{wanted.name}: {units}"] if units else []
        notes += [] if strict or not wanted.lenient else _unread(cells, wanted.name, text, column_values)
    if wanted.name in cells.computed:
        problems = [(rows, _DIVIDED if problem == _INFINITE else problem) for rows, problem in problems]
    wrongs = list[Wrong]()
    absent = np.zeros(len(text), np.bool_)
    for missing in cells.computed.get(wanted.name, ()):
        rows = missing.rows & np.logical_or.reduce([absent, *(wrong for wrong, _ in problems)]) & ~absent
        absent |= rows
        if rows.any():
            place = cells.position(missing.column)
            blamed = cells.columns[missing.column] if missing.found is None else missing.found
            wrongs.append(Wrong(rows, missing.problem, missing.column, place, blamed))
    for rows, problem in problems:
        if (rows & ~absent).any():
            wrongs.append(Wrong(rows & ~absent, problem, wanted.name, column, given))
    return column_values, wrongs, notes


def _texts(text: pd.Series) -> tuple[pd.Series, list[Problem]]:
    return text, [((text == "").to_numpy(), "should not be empty")]


def _flags(text: pd.Series) -> tuple[pd.Series, list[Problem]]:
    """Return a column as 0 and 1, NaN where a cell says neither, and which rows have which problem."""
    value = pd.to_numeric(text.str.lower().replace({"true": "1", "false": "0"}), errors="coerce")
    empty = (text == "").to_numpy()
    return value, [
        (empty, "should not be empty"),
        (~value.isin([0, 1]).to_numpy() & ~empty, "should be 0 or 1, true or false"),
    ]


def _numbers(given: pd.Series, text: pd.Series, wanted: Field, *, strict: bool) -> tuple[pd.Series, list[Problem], str]:
    """Return a column as numbers, NaN where a cell is none, which rows have which problem, and what its units mean."""
    if given.dtype.kind in "iuf":
        value, units, bare = given.to_numpy(dtype=np.float64, na_value=np.nan), "", None
    else:
        value, units, bare = _plain(text), "", None
        if (np.isnan(value) & (text != "")).any():
            text, separated = _without_separators(text)
            read = numbers(text)
            value, units, bare = read.value, _UNITS.get(read.scale or "", ""), read.bare
            units = "; ".join(filter(None, (separated, units)))
    empty = (text == "").to_numpy()
    infinite = np.isinf(value) | (np.isnan(value) & text.str.lower().str.lstrip("+-").eq("nan").to_numpy())
    low = (value <= 0) if wanted.above_zero else (value < 0)
    low &= not wanted.signed
    with np.errstate(invalid="ignore"):
        broken = (value != np.floor(value)) & (wanted.kind == "count")
    most = MOST_COUNTED if wanted.kind == "count" else MOST
    least = f"at least {LEAST:g}" if wanted.above_zero else f"0 or at least {LEAST:g}"
    ranges = [
        (np.isfinite(value) & (value > most), f"should be at most {most:.16g}"),
        ((value > 0) & (value < LEAST) & ~broken, f"should be {least}"),
        *([] if bare is None else [(bare, "should have a unit, as other cells of the column have")]),
    ]
    none = np.isnan(value) & ~empty & ~infinite
    if wanted.lenient and not strict:
        mostly = none.any() and none.sum() > np.isfinite(value).sum()
        return pd.Series(value), [*([(none, _no_number(text, none))] if mostly else []), *ranges], units
    return (
        pd.Series(value),
        [
            (empty & (not wanted.may_be_empty), "should not be empty"),
            (none, _no_number(text, none)),
            (infinite, _INFINITE),
            (np.isfinite(value) & low, f"should be {'above 0' if wanted.above_zero else 'at least 0'}"),
            (np.isfinite(value) & ~low & broken, "should be a whole number"),
            *ranges,
        ],
        units,
    )


def _unread(cells: FileCells, name: str, text: pd.Series, value: pd.Series) -> list[str]:
    """Return a note on the few cells of a lenient column that are no numbers: how many, where the first is, and why."""
    rows = (value.isna() & ~text.isin(_EMPTY)).to_numpy()
    if not rows.any():
        return []
    first = int(np.flatnonzero(rows)[0])
    count = f"{rows.sum():,} cells are no numbers" if rows.sum() > 1 else "1 cell is no number"
    hint = _no_number(text, rows).removeprefix("should be a number").removeprefix(", ")
    return [f"{name}: {count}, first in line {cells.lines[first]}: {_shown(text.iloc[first])}{hint and f' {hint}'}"]


def _plain(text: pd.Series) -> Floats:
    """Return cells as numbers without units; NaN where there is none."""
    return pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)


def _without_separators(text: pd.Series) -> tuple[pd.Series, str]:
    """Return cells without the commas between thousands, and a note on them, if a point after them shows what they are.

    Without a point ``1,234`` may be a number with a decimal comma.
    """
    grouped = text.str.fullmatch(_GROUPED)
    pointed = grouped & text.str.contains(".", regex=False)
    if not pointed.any() or text.str.fullmatch(r"[+-]?\d+,(\d{1,2}|\d{4,})").any():
        return text, ""
    example = text[pointed].iloc[0]
    plain = example.replace(",", "")
    return text.where(~grouped, text.str.replace(",", "")), f"commas stand between thousands: {example} is {plain}"


_GROUPED = r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?"
"""A number with commas between thousands."""
_EMPTY = ("", "nan", "NaN", "NA", "N/A", "n/a", "null", "None", "-", "inf", "-inf", "Infinity", "-Infinity")
"""Cells that say that there is no number, or none that is finite."""
_UNITS = {
    "quantity": "units are those of quantities: 500m is 0.5, 1.5k is 1500",
    "duration": "units are those of time: 12ms is 0.012, 5m is 300",
}


def _no_number(text: pd.Series, rows: Bools) -> str:
    """Return the problem of cells that are no numbers, and what they seem to be."""
    sample = text[rows].head(100)
    if len(sample) and np.isfinite(times_s(sample)[0]).mean() > 0.5:
        return "should be a number, is a point in time (--period 1d makes periods of them)"
    if len(sample) and sample.str.fullmatch(r"[+-]?\d{1,3}(,\d{3})+").mean() > 0.5:
        makes = "replace(column, ',', '')::double makes one if commas stand between thousands"
        return f"should be a number ({makes}, replace(column, ',', '.')::double if they are decimal)"
    if len(sample) and sample.str.fullmatch(r"[+-]?\d+,\d+").mean() > 0.5:
        return "should be a number (of decimal commas replace(column, ',', '.')::double makes one)"
    return "should be a number"


def _fits(kind: pa.DataType, wanted: Kind) -> bool:
    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if wanted == "text":
        return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_integer(kind))
    if wanted == "flag" and types.is_boolean(kind):
        return True
    if types.is_string(kind) or types.is_large_string(kind):
        return True  # the cells say whether they are numbers
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _shown(cell: object) -> str:
    text = json.dumps(cell) if isinstance(cell, str) else "null" if cell is None else str(cell)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
