"""How the columns of somebody else's table become ours: expressions, a filter, periods of time, and what may be bad."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from analysis.tables.cells import FileCells, Missing
from analysis.tables.expressions import Expression, evaluated, parsed
from analysis.tables.faults import FileError, FileFault
from analysis.tables.quantities import is_numeric, numbers, periods, times_s
from models.arrays import DAY_S, Bools, Floats
from models.errors import InputError

PERIOD = "period"
"""The column that `Recipe.period_s` makes of points in time."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a table's columns become ours; as it stands, they are taken by their names.

    Attributes
    ----------
    columns : by our name, an expression over the file's columns (`analysis.tables.expressions`)
    where : an expression that is true of the rows that are taken; all of them if left out
    period_s : length of a period, seconds; then `period` is a point in time, and becomes the number of its period
    since_s, until_s : seconds since 1970 from which on, and before which, rows are taken; only with `period_s`
    zone : IANA name of the time zone of stamps that name none, and in which days begin
    skip_bad : largest share of rows, 0..1, that may be left out because a cell cannot be used; None: the table's own
        rules hold

    Examples
    --------
    >>> Recipe(columns={"value": "instructions / cpu_time"}).takes_as_is
    False
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    where: str | None = None
    period_s: float | None = None
    since_s: float | None = None
    until_s: float | None = None
    zone: str = "UTC"
    skip_bad: float | None = None
    takes_as_is: bool = field(init=False, repr=False, compare=False)
    """Whether a table's cells are taken as they stand."""

    def __post_init__(self) -> None:
        """Judge whether there is anything to be done."""
        as_is = not (self.columns or self.where is not None or self.period_s)
        object.__setattr__(self, "takes_as_is", as_is)

    @property
    def step_s(self) -> float:
        """Seconds of a step since 1970 in which a table's rows are counted: a period, if that is a day or less.

        A longer period is made of them when the first day of all tables is known (`whole_periods`).

        Examples
        --------
        >>> Recipe(period_s=3600.0).step_s, Recipe(period_s=7 * 86400.0).step_s
        (3600.0, 86400.0)
        """
        length_s = self.period_s or 1.0
        if length_s <= DAY_S or not length_s.is_integer():
            return length_s
        return float(math.gcd(int(length_s), int(DAY_S), int(self._since_local_s or 0.0)))

    @property
    def _since_local_s(self) -> float | None:
        return None if self.since_s is None else float(periods(np.array([self.since_s]), 1.0, self.zone)[0])

    def whole_periods(self, step: Floats, first: float) -> tuple[Floats, float]:
        """Return the periods, counted from 0, of some steps, and when the first begins, seconds of the zone's time.

        Periods longer than a day begin at the first day of the rows, or at `since_s`; others where they do since 1970.

        Parameters
        ----------
        step : (N,) of `step_s`, counted from 1970
        first : the first one of all tables

        Examples
        --------
        >>> Recipe(period_s=7 * 86400.0).whole_periods(np.array([20515.0, 20521.0, 20522.0]), 20515.0)
        (array([0., 0., 1.]), 1772496000.0)
        """
        length_s, step_s = self.period_s or 1.0, self.step_s
        if step_s == length_s:
            return step - first, first * step_s
        start_s = np.floor(first * step_s / DAY_S) * DAY_S if self._since_local_s is None else self._since_local_s
        start_s += np.floor((first * step_s - start_s) / length_s) * length_s
        return np.floor((step * step_s - start_s) / length_s), float(start_s)


AS_IT_IS = Recipe()
NO_NUMBER: Final = "should be a number"
"""What is wrong with a cell that is not empty, where an expression takes its column as one of numbers."""


class _Column(NamedTuple):
    """A column that expressions take: its values, and which cells have none though something stands there."""

    cells: pd.Series
    empty: Bools
    unread: Bools


def prepared(cells: FileCells, recipe: Recipe) -> FileCells:
    """Return a table's cells with the columns of a recipe in place of its own of the same names.

    Whether the header has what the recipe takes is judged first, so that little is read of a table that has not.

    Raises
    ------
    FileError
        With every name that is not in the header, every text that is no expression, and what does not fit together.

    Examples
    --------
    >>> text = {name: pd.Series(values) for name, values in {"svc": ["a", "b"], "cpu": ["500m", "2"]}.items()}
    >>> table = FileCells(["svc", "cpu"], text, np.array([2, 3]))
    >>> prepared(table, Recipe({"job": "svc", "weight": "cpu * 2"})).columns["weight"].tolist()
    [1.0, 4.0]
    """
    if not cells.names:
        return cells
    expressions = recipe_expressions(cells.names, recipe)
    columns, faults = dict(cells.columns), list[FileFault]()
    positions = {name: cells.position(name) for name in cells.names}
    missing = dict[str, list[Missing]]()
    if not len(cells.lines):  # of no row no column has a type
        nothing = pd.Series([], dtype=object)
        columns |= dict.fromkeys((*recipe.columns, *([PERIOD] if recipe.period_s is not None else ())), nothing)
        return cells.taken(columns, positions | dict.fromkeys(recipe.columns, 0), {}, np.zeros(0, np.bool_))
    for name, expression in expressions.items():
        if expression.is_column:
            columns[name], positions[name] = cells.columns[expression.columns[0]], positions[expression.columns[0]]
            continue
        takes = {column: _column(cells, column, is_text=column in expression.texts) for column in expression.columns}
        positions[name] = positions[expression.columns[0]] if expression.columns else 0
        missing[name] = [why for column, taken in takes.items() for why in _missing(column, taken)]
        try:
            value = evaluated(expression, {column: taken.cells for column, taken in takes.items()})
            columns[name] = value if takes else pd.Series(value.tolist() * len(cells.lines), dtype=value.dtype)
        except InputError as error:
            faults.append(FileFault(1, positions[name], name, *_apart(str(error))))
    if faults:
        raise FileError(faults)
    rows = np.ones(len(cells.lines), np.bool_)
    if recipe.where is not None:
        rows &= _true(columns.pop(_WHERE), recipe.where)
        if len(rows) and not rows.any():
            beside = in_words({name: cells.text(name) for name in expressions[_WHERE].columns})
            raise FileError(
                [FileFault(0, 0, _WHERE, f"{recipe.where} is true in no row{beside and f'; {beside}'}", "")]
            )
        if len(rows) and rows.all():
            cells.notes.append(f"{_WHERE}: {recipe.where} is true in every row, so it leaves none out")
    if recipe.period_s is not None:
        found = None if PERIOD in expressions else columns[PERIOD]
        columns[PERIOD], inside = _numbered(columns, recipe)
        if rows.any() and not (rows & inside).any():
            raise FileError([FileFault(0, 0, PERIOD, *_all_outside(columns[PERIOD][rows], recipe))])
        timeless = columns[PERIOD].isna().to_numpy()
        taken_from = expressions[PERIOD].columns[:1] if PERIOD in expressions else (PERIOD,)
        missing[PERIOD] = [
            *missing.get(PERIOD, ()),
            *(Missing(name, "should be a point in time", timeless, found) for name in taken_from if timeless.any()),
        ]
        rows &= inside
    return cells.taken(columns, positions, missing, rows)


_WHERE = "where"
_SPELT_OUT, _LONGEST = 5, 40
"""Values of a column that a message shows, and characters of each."""


def values_beside(cells: FileCells, recipe: Recipe, text: str) -> dict[str, pd.Series]:
    """Return the columns that an expression takes, as they stand in the rows that a recipe takes.

    Examples
    --------
    >>> text = {name: pd.Series(values) for name, values in {"kernel": ["6.1", "6.6"], "zone": ["a", "b"]}.items()}
    >>> table = FileCells(["kernel", "zone"], text, np.array([2, 3]))
    >>> values_beside(table, Recipe(where="zone = 'a'"), "kernel = '6.6'")["kernel"].tolist()
    ['6.1']
    """
    names = parsed(text, cells.names).columns
    own = {f"{text} {name}": name for name in names}  # a name that no column has
    period = {name: text for name, text in recipe.columns.items() if name == PERIOD}
    rows = prepared(cells, replace(recipe, columns={**own, **period}))
    return {name: rows.text(own_name) for own_name, name in own.items()}


def in_words(columns: Mapping[str, pd.Series]) -> str:
    """Return what values some columns have: all of them if they are few, else their range, or the first ones.

    Examples
    --------
    >>> in_words({"kernel": pd.Series(["6.1", "6.6", "6.1"]), "cpu": pd.Series(range(9)).astype(str)})
    'kernel is 6.1 in 2 rows, 6.6 in 1; cpu lies between 0 and 8'
    """
    return "; ".join(f"{name} {_range_of(texts)}" for name, texts in columns.items())


def _range_of(texts: "pd.Series[str]") -> str:
    counts = texts.value_counts()
    if not len(counts):
        return "has no row"
    if len(counts) <= _SPELT_OUT:
        first, *others = (f"{_short(str(value)) or 'empty'} in {count:,}" for value, count in counts.items())
        return f"is {', '.join([f'{first} row' + ('s' if counts.iloc[0] > 1 else ''), *others])}"
    value = numbers(texts).value
    if is_numeric(texts, value):
        return f"lies between {np.nanmin(value):g} and {np.nanmax(value):g}"
    return f"has {len(counts):,} values, such as {', '.join(_short(str(value)) for value in counts.index[:3])}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def recipe_expressions(names: Sequence[str], recipe: Recipe) -> dict[str, Expression]:
    """Return the expressions of a recipe, bound to a header.

    Raises
    ------
    FileError
        With all that is wrong.
    """
    faults, expressions = list[FileFault](), dict[str, Expression]()
    texts = dict(recipe.columns) | ({} if recipe.where is None else {_WHERE: recipe.where})
    for name, text in texts.items():
        try:
            expression = parsed(text, names)
        except InputError as error:
            faults.append(FileFault(0, 0, name, *_apart(str(error))))
            continue
        faults += [
            FileFault(1, 0, name, f'takes the column "{column}", which the table lacks', f"columns {', '.join(names)}")
            for column in expression.unknown(names)
        ]
        expressions[name] = expression
    if recipe.period_s is not None and PERIOD not in (*expressions, *names):
        problem = "needs points in time, such as --column period=timestamp"
        faults.append(FileFault(1, 0, PERIOD, problem, f"columns {', '.join(names)}"))
    if faults:
        raise FileError(faults)
    return expressions


def _apart(message: str) -> tuple[str, str]:
    """Return what is wrong with an expression, and the expression."""
    problem, _, text = message.rpartition(": ")
    return (problem, text) if problem else (message, "it")


def _column(cells: FileCells, name: str, *, is_text: bool) -> _Column:
    """Return a column as numbers if it is one of numbers, else as it stands."""
    column = cells.columns[name]
    texts = cells.text(name)
    empty, none = (texts == "").to_numpy(), np.zeros(len(texts), np.bool_)
    if column.dtype.kind in "biufM" and not is_text:
        return _Column(column, empty, none)
    value = numbers(texts).value
    if is_text or not is_numeric(texts, value):
        return _Column(texts.where(~empty, None), empty, none)
    unread = ~np.isfinite(value)
    return _Column(pd.Series(value).where(~unread), empty, unread & ~empty)


def _missing(name: str, column: _Column) -> Iterator[Missing]:
    for rows, problem in ((column.empty, "should not be empty"), (column.unread, NO_NUMBER)):
        if rows.any():
            yield Missing(name, problem, rows)


def _true(value: pd.Series, text: str) -> Bools:
    """Return where a condition is true.

    Raises
    ------
    FileError
        If it is none.
    """
    try:
        return value.astype("boolean").fillna(False).to_numpy(np.bool_)
    except (TypeError, ValueError):
        example = json.dumps(value.dropna().iloc[0], default=str)
        problem = "should be a condition, true or false, such as zone = 'a'"
        raise FileError([FileFault(0, 0, _WHERE, problem, f"{text}, which is {example} in the first row")]) from None


def _all_outside(steps: pd.Series, recipe: Recipe) -> tuple[str, str]:
    """Return what is wrong with the ends of a recipe that leave out every row, and where its rows lie."""
    ends = [("from", recipe.since_s), ("until", recipe.until_s)]
    ends_said = " and ".join(f"{name} {_stamp(end)}" for name, end in ends if end is not None)
    first, last = (_stamp(step * recipe.step_s) for step in (steps.min(), steps.max()))
    return f"no row lies {ends_said} (UTC)", f"periods from {first} to {last} ({recipe.zone})"


def _stamp(time_s: float) -> str:
    return pd.Timestamp(time_s, unit="s").isoformat().removesuffix("T00:00:00")


def _numbered(taken: Mapping[str, pd.Series], recipe: Recipe) -> tuple["pd.Series[float]", Bools]:
    """Return the number of each row's step since 1970, and which rows lie between the ends."""
    time_s, _ = times_s(taken[PERIOD], recipe.zone)
    with np.errstate(invalid="ignore"):
        before = time_s < (-np.inf if recipe.since_s is None else recipe.since_s)
        after = time_s >= (np.inf if recipe.until_s is None else recipe.until_s)
    return pd.Series(periods(time_s, recipe.step_s, recipe.zone)), ~(before | after)
