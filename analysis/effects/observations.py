"""Tables of observations, a row for each stay and period: read, flagged, coded, and taken together by stay."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self

import numpy as np
import pandas as pd

from analysis.effects.estimand import RATE, Estimand
from analysis.tables.cells import Source
from analysis.tables.columns import BY_EXPRESSION, Field, Remedies, not_used, read_rows
from analysis.tables.faults import FileError, FileFault
from analysis.tables.recipe import AS_IT_IS, Recipe
from analysis.wsmeter.measurements import Reading
from models.arrays import Bools, Floats, Ints
from models.errors import InputError, WscError

FIELDS = (
    Field("period", "real", above_zero=False),
    Field("job", "text"),
    Field("machine", "text"),
    Field("weight", "real"),
    Field("value", "real"),
    Field("treated", "flag", required=False),
    Field("instance", "text", required=False),
    Field("residence", "text", required=False),
    Field("shard", "text", required=False),
    Field("rack", "text", required=False),
    Field("domain", "text", required=False),
    Field("cluster", "text", required=False),
    Field("platform", "text", required=False),
    Field("present_s", "real", required=False),
    Field("cpu_s", "real", above_zero=False, required=False),
    Field("exposure", "real", required=False),
    Field("mean_frequency_hz", "real", required=False),
    Field("clock_hz", "real", required=False),
    Field("cycles", "real", required=False),
    Field("instructions", "real", above_zero=False, required=False),
    Field("llc_misses", "real", above_zero=False, required=False),
    Field("vcpus", "real", required=False),
)
"""Columns of a table of observations; others are left alone."""
_BY_NAME = {field.name: field for field in FIELDS}
REQUIRED = ("period", "job", "machine", "weight", "value", "treated")
IDENTITY = ("period", "job", "machine", "instance", "shard")
"""Columns that say which observation a row is."""
_AMOUNTS = ("present_s", "cpu_s", "exposure", "mean_frequency_hz", "clock_hz", "cycles")
"""Columns beside value and weight whose numbers must be above 0; CPU time may be 0."""
NO_FEATURE = (
    "nothing has the feature: no row has treated 1, or there is no such column; "
    "--column treated=EXPRESSION makes it of other columns"
)
_LESS_IS_BETTER = re.compile(
    r"^(?!.*/).*(latency|duration|elapsed|response_?time|runtime|_(ns|us|ms|seconds|secs)\b|\bp(50|90|95|99)\b)",
    re.IGNORECASE,
)
"""Names of columns in which less is better, as they stand in the place of `value`; nothing is divided there."""
_FEW = 0.1
"""Share of the machines with a feature that are few."""
_NAMED = 3
_CONTROLS = 4
"""Machines that never have the feature, from which on these are what it is compared with."""
_COARSE = 0.05
"""Share of rows whose value another machine has, too, from which equal values say nothing."""

Design = Literal["concurrent", "crossover", "staged"]
"""When machines had the feature: some of them from one time on, on and off, or in waves."""


def _fields(estimand: Estimand, *, strict: bool) -> list[Field]:
    """Return the columns with what their numbers may be: values have a sign, or denominators may be 0, as is estimated.

    Examples
    --------
    >>> [(field.name, field.signed) for field in _fields(Estimand.of("mean"), strict=True) if field.name == "value"]
    [('value', True)]
    """
    changed = {
        "value": replace(_BY_NAME["value"], signed=estimand.metric_kind != "rate"),
        "exposure": replace(_BY_NAME["exposure"], above_zero=estimand.metric_kind != "ratio"),
    }
    fields = list({**_BY_NAME, **changed}.values())
    return (
        fields
        if strict
        else [replace(f, lenient=f.kind == "real" and f.name not in {"period", "vcpus"}) for f in fields]
    )


def read_observations(
    source: Source, *, strict: bool = True, recipe: Recipe = AS_IT_IS, estimand: Estimand = RATE
) -> Reading:
    """Read the observations of a fleet from one table.

    A table without `treated` is of a fleet in which nothing has the feature. An instance may have several rows in a
    period, one for each stay; what agrees in every column is there twice.

    Parameters
    ----------
    source : CSV or Parquet, gzipped or not, a query, or a frame; columns period (number of a day, or seconds), job,
        machine, weight (CPU quota), value (performance), and perhaps treated (0 or 1, true or false), instance, shard,
        rack, domain (machines that feel each other, as behind one power budget), cluster, platform, present_s, cpu_s,
        exposure, mean_frequency_hz, clock_hz, cycles
    recipe : how the table's columns become these; its points in time are counted from 1970 in `Recipe.step_s`
    strict : whether amounts that cannot be used and rows that are there twice are faults; otherwise they are left in,
        for guards to judge
    estimand : what values are of: of a rate they must be above 0

    Returns
    -------
    Reading
        The observations, and notes on what was missing or not used.

    Raises
    ------
    FileError
        With every fault, as `analysis.tables.columns.read_table`; or with the rows of a period that lies between the
        others, which are of equal length.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "today.csv"
    ...     _ = file.write_text("period,job,machine,weight,value,treated\\n0,a,m1,2,1.5,0\\n1,a,m1,2,1.6,1\\n")
    ...     read_observations(file).table
       period job machine  weight  value  treated
    0     0.0   a      m1     2.0    1.5        0
    1     1.0   a      m1     2.0    1.6        1
    """
    key = _whole_row if strict else _no_columns
    rows = read_rows(source, _fields(estimand, strict=strict), key, recipe, Remedies(BY_EXPRESSION, by_query=True))
    given, of_value = rows.table, recipe.columns.get("value", "value")
    period = given["period"].to_numpy(dtype=np.float64)
    whole = recipe.period_s is None or recipe.step_s == recipe.period_s
    stray = between(period) if whole else np.zeros(len(period), np.bool_)
    if stray.any():
        column = 1 + list(given.columns).index("period")
        between_others = ((int(rows.lines[row]), given["period"].iloc[row]) for row in np.flatnonzero(stray))
        problem = "should be as far from the next period as others are"
        raise FileError([FileFault(line, column, "period", problem, f"{period:g}") for line, period in between_others])
    known = [wanted.name for wanted in FIELDS if wanted.name in given.columns]
    table, notes = given[known].copy(), [*rows.notes, *(not_used(given, known) if recipe.takes_as_is else ())]
    durations = any(note.startswith("value: ") and "of time" in note for note in rows.notes)
    if estimand.metric_kind == "rate" and (durations or _LESS_IS_BETTER.search(of_value)):
        notes.append("value: more counts as faster; where less is better, give a rate, as --column value='1 / p50'")
    if "treated" not in table:
        table["treated"] = 0
        notes.append("no column treated: nothing has the feature")
    table["treated"] = table["treated"].astype(np.int64)
    return Reading(table, tuple(notes), rows.left_out, rows.lines)


def between(period: Floats) -> Bools:
    """Return which rows are of a period between the others: neither side is a whole number of steps away.

    A step is what lies between half of the neighbours or more; where nothing does, no row is.
    """
    periods, at = np.unique(period, return_inverse=True)
    gaps = np.diff(periods)
    kinds, counts = np.unique(gaps, return_counts=True)
    if not len(gaps) or 2 * counts.max() < len(gaps):
        return np.zeros(len(period), np.bool_)
    steps = gaps / kinds[counts.argmax()]
    uneven = np.abs(steps - np.round(steps)) > 1e-6
    lonely = np.append(False, uneven) & np.append(uneven, False)
    return np.asarray(lonely[at], dtype=np.bool_)


def joined(tables: Mapping[str, pd.DataFrame], *, strict: bool = True) -> pd.DataFrame:
    """Return the observations of several files as one table, with the columns that all of them have, and `file`.

    Parameters
    ----------
    tables : by the name of the file
    strict : whether an observation may stand in one file only

    Raises
    ------
    ValueError
        If an observation stands in two files.

    Examples
    --------
    >>> row = {"period": [0.0], "job": ["a"], "machine": ["m1"], "weight": [2.0], "value": [1.5], "treated": [0]}
    >>> first = pd.DataFrame(row)
    >>> joined({"mon.csv": first, "tue.csv": first.assign(period=1.0)})["file"].tolist()
    ['mon.csv', 'tue.csv']
    """
    shared = [name for name in next(iter(tables.values())).columns if all(name in table for table in tables.values())]
    whole = pd.concat([table[shared].assign(file=name) for name, table in tables.items()], ignore_index=True)
    if strict and len(tables) > 1:
        number = whole.groupby(shared, sort=False, observed=True).ngroup().to_numpy()
        _, first = np.unique(number, return_index=True)
        origin = whole["file"].to_numpy()
        twice = np.flatnonzero(origin != origin[first[number]])
        if len(twice):
            again, before = twice[0], first[number[twice[0]]]
            row_name = ", ".join(f"{name} {whole[name].iloc[again]}" for name in IDENTITY if name in shared)
            raise InputError(
                f"{row_name} stands in {origin[again]} and in {origin[before]}: {len(twice)} rows stand in two"
            )
    return whole


def _no_columns(names: Sequence[str]) -> Sequence[str]:
    return names[:0]


def _whole_row(names: Sequence[str]) -> Sequence[str]:
    return names


class ObservationsError(WscError):
    """A table of observations cannot be compared."""


class PeriodError(InputError):
    """What a machine was in a period makes no sense.

    Examples
    --------
    >>> PeriodError("machine 7 is on and off", 3.0)
    PeriodError('machine 7 is on and off in period 3')
    """

    def __init__(self, problem: str, period: object, after: str = "") -> None:
        self.problem, self.period, self.after = problem, period, after
        super().__init__(self.dated(""))

    def dated(self, date: str) -> str:
        """Return the message with the date of the period, if it has one."""
        number = f"{self.period:g}" if isinstance(self.period, int | float) else str(self.period)
        return f"{self.problem} in period {number}{f' ({date})' if date else ''}{self.after}"


@dataclass(frozen=True, slots=True, eq=False)
class FlaggedRows:
    """N rows of observations as given, and which of them cannot be counted."""

    table: pd.DataFrame
    unusable: Bools
    """(N,) whether the value, with its denominator, is none of such a metric, or the weight not finite and above 0."""
    amounts: Mapping[str, Bools]
    """(N,) of each column of presence, CPU time, exposure or frequency that has unusable rows: which those are."""
    left_out: pd.DataFrame
    """Rows that were left out when the table was read, with their reason, and treated as far as it could be read."""
    estimand: Estimand = RATE
    lines: Ints | None = None
    """(N,) of their files, if they are known."""
    cluster: str = "rack"
    """The column whose values the column rack holds."""

    @classmethod
    def of(cls, table: pd.DataFrame, left_out: pd.DataFrame | None = None, estimand: Estimand = RATE) -> Self:
        """Flag the rows of a table; others may have been left out when it was read.

        Raises
        ------
        ObservationsError
            If a column is missing.
        """
        ratio = estimand.metric_kind == "ratio"
        missing = [name for name in (*REQUIRED, *(["exposure"] if ratio else [])) if name not in table]
        if missing:
            raise ObservationsError(f"columns are missing: {', '.join(missing)}")
        unusable = ~estimand.usable(_numbers(table["value"])) | _wrong(table["weight"])
        if ratio:
            unusable |= _wrong(table["exposure"], zero=True) | (table["exposure"] == 0) & (table["value"] != 0)
        amounts = [name for name in _AMOUNTS if name in table and not (ratio and name == "exposure")]
        wrong = {name: _wrong(table[name], zero=name == "cpu_s") for name in amounts}
        flagged = {name: rows for name, rows in wrong.items() if rows.any()}
        return cls(table, unusable, flagged, pd.DataFrame() if left_out is None else left_out, estimand)

    @property
    def without_amounts(self) -> Bools:
        """(N,) whether any amount beside value and weight is unusable."""
        lacking: Bools = np.zeros(len(self.table), dtype=np.bool_)
        for wrong in self.amounts.values():
            lacking |= wrong
        return lacking

    def outside(self) -> list[str]:
        """Return what is to be said of numbers that cannot be of such a metric: how many, the first, what takes them.

        Examples
        --------
        >>> row = {"period": 1, "job": "a", "machine": [1, 2], "weight": 1.0, "value": [2.0, -7.5], "treated": 0}
        >>> FlaggedRows.of(pd.DataFrame(row)).outside()
        ['1 value is 0 or negative (first: row 1, -7.5): if that is right, give --metric-kind mean']
        """
        value, kind = _numbers(self.table["value"]), self.estimand.metric_kind
        mean = ": if that is right, give --metric-kind mean"
        wrong = [("0 or negative", (value <= 0) & (kind == "rate"), mean)]
        wrong += [("negative", (value < 0) & (kind == "proportion"), mean)]
        wrong += [("above 1", (value > 1) & (kind == "proportion"), mean)]
        if kind == "ratio":
            wrong += [("other than 0 where exposure is 0", (value != 0) & (_numbers(self.table["exposure"]) == 0), "")]
        out = list[str]()
        for words, among, remedy in wrong:
            rows = np.flatnonzero(among & np.isfinite(value))
            if len(rows):
                count = f"{len(rows):,} values are" if len(rows) > 1 else "1 value is"
                out.append(f"{count} {words} (first: {self.place(int(rows[0]))}, {value[rows[0]]:g}){remedy}")
        return out

    def place(self, row: int) -> str:
        """Return where a row stands, with its file if there are several."""
        where = f"row {row}" if self.lines is None else f"line {self.lines[row]}"
        several = "file" in self.table and (self.table["file"] != self.table["file"].iloc[0]).any()
        return f"{self.table['file'].iloc[row]}, {where}" if several else where

    def repeated(self, among: Bools) -> Bools:
        """Return (N,) which of some rows say what an earlier one of them said."""
        again: Bools = np.zeros(len(self.table), dtype=np.bool_)
        again[among] = repeated(self.table[among], coarse=self.estimand.metric_kind == "proportion")
        return again

    def audited(self) -> pd.DataFrame:
        """Return the rows that guards look at: each once, without the columns of amounts that have unusable rows."""
        rows = self.table[~(self.unusable | self.repeated(~self.unusable))].reset_index(drop=True)
        return rows.drop(columns=list(self.amounts))

    def estimable(self) -> tuple[pd.DataFrame, list[str]]:
        """Return the rows that estimators take, and a note on how many are left out, if any are.

        Examples
        --------
        >>> row = {"period": 1, "job": "a", "machine": [1, 1, 2], "weight": 1.0, "value": [2.0, 2.0, 0.0], "treated": 0}
        >>> rows, notes = FlaggedRows.of(pd.DataFrame(row)).estimable()
        >>> len(rows), notes
        (1, ['2 of 3 rows are left out: 1 without a usable value or weight, 1 there twice'])
        """
        lacking = {"value or weight": self.unusable}
        lacking |= {name: wrong & ~self.unusable for name, wrong in self.amounts.items()}
        out = self.unusable | self.without_amounts
        again = self.repeated(~out)
        counts = [f"{int(wrong.sum()):,} without a usable {name}" for name, wrong in lacking.items() if wrong.any()]
        counts += [f"{int(again.sum()):,} there twice"] if again.any() else []
        rows = self.table[~(out | again)].reset_index(drop=True)
        total = len(self.table)
        left = f"{total - len(rows):,} of {total:,} rows are left out: {', '.join(counts)}"
        return rows, [left] if counts else []


def _wrong(column: pd.Series, *, zero: bool = False) -> Bools:
    """Return which cells of a column are not finite and above 0, or 0 where that may be."""
    number = _numbers(column)
    return np.asarray(~(np.isfinite(number) & (number >= 0 if zero else number > 0)), dtype=np.bool_)


def _numbers(column: pd.Series) -> Floats:
    return pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)


def repeated(table: pd.DataFrame, *, coarse: bool = False) -> Bools:
    """Return (N,) which rows say what an earlier row said: same period, job, machine, instance and value.

    An instance that comes back to its machine has two rows in one period, with values of their own. Without column
    `instance` equal values may belong to two instances: rows count as repeated only where values are so fine that
    hardly two machines ever agree. Of coarse values, such as yes and no, all columns of a row have to agree.
    """
    names = [*table.columns] if coarse else ["period", "job", "machine", "instance", "residence", "weight", "value"]
    known = [name for name in names if name in table]
    if "instance" in known and table["instance"].is_unique:
        return np.zeros(len(table), dtype=np.bool_)
    again = table.duplicated(known).to_numpy()
    if again.any() and not {"instance", "residence"} & {*known}:
        single = table.loc[~again, ["period", "job", "value"]]
        if single.duplicated(keep=False).mean() > _COARSE:
            return np.zeros(len(again), dtype=np.bool_)
    return again


@dataclass(frozen=True, eq=False)
class Observations:
    """N observations as codes, of J jobs on M machines in P periods, and who had the feature when."""

    rows: pd.DataFrame
    """The observations; index from 0."""
    period: Ints
    """(N,)"""
    job: Ints
    """(N,)"""
    machine: Ints
    """(N,)"""
    treated: Bools
    """(N,)"""
    periods: pd.Index
    jobs: pd.Index
    machines: pd.Index

    @classmethod
    def of(cls, table: pd.DataFrame) -> "Observations":
        """Code the rows of a table, all of which count."""
        (period, periods), (job, jobs), (machine, machines) = (
            pd.factorize(table[name], sort=True) for name in ("period", "job", "machine")
        )
        return cls(
            rows=table.reset_index(drop=True),
            period=period.astype(np.int64),
            job=job.astype(np.int64),
            machine=machine.astype(np.int64),
            treated=table["treated"].to_numpy() == 1,
            periods=pd.Index(periods),
            jobs=pd.Index(jobs),
            machines=pd.Index(machines),
        )

    @cached_property
    def study(self) -> Bools:
        """(N,) whether anything had the feature by then; the others are the pre-period."""
        first = self.period[self.treated].min(initial=len(self.periods))
        return np.asarray(self.period >= first, dtype=np.bool_)

    @cached_property
    def ever(self) -> Bools:
        """(M,) whether the machine had the feature in any period."""
        return self._on_machines(self.treated)

    @cached_property
    def never(self) -> Bools:
        """(M,) whether it had no feature in a period of the study."""
        return self._on_machines(self.study & ~self.treated)

    @cached_property
    def switching(self) -> Bools:
        """(M,) whether it was in the study with the feature and without it."""
        return self.ever & self.never

    @cached_property
    def lost(self) -> Bools:
        """(N,) whether the machine had the feature before and has it no more."""
        return np.asarray(~self.treated & (self.period > self._first(self.treated)[self.machine]), dtype=np.bool_)

    @cached_property
    def rolled_back(self) -> Bools:
        """(N,) rows of machines since they lost the feature, and of all since none has it, unless that is a crossover.

        In a crossover machines gain the feature after others had it, or have it again. So it is none if a tenth of the
        machines lose it at most; nor if all had it from their first row of the study on, and fewer lose than keep it.
        Where some machines never have it, an end of all at once is no loss; where at least four do, it is none after
        losses either, and losses one after another are the end of an experiment in which all started together, unless
        more than a tenth have it again.
        """
        since, last = self._first(self.lost), self.period[self.treated].max(initial=-1)
        compared = self._on_machines(self.study & (self.period <= last)) & ~self.ever
        enough = compared.sum() >= (_CONTROLS if (since <= last).any() else 1)
        losing = since < (last + 1 if enough else len(self.periods))
        few = _FEW * self.ever.sum()
        later = (self.study & ~self.treated & ~self.lost & self.ever[self.machine]).any()
        again = self._on_machines(self.treated & (self.period > since[self.machine]))
        ending = losing.sum() < (self.ever & ~losing).sum() or (enough and again.sum() <= few)
        out = (self.period >= since[self.machine]) | enough & self.lost.any() & (self.period > last)
        return np.asarray(out & ((ending and not later) or losing.sum() <= few), dtype=np.bool_)

    @property
    def design(self) -> Design:
        """When machines had the feature."""
        if not self.switching.any():
            return "concurrent"
        return "crossover" if self.lost.any() else "staged"

    def of_machines(self, name: str) -> "pd.Series | None":
        """Return each machine's first value in a column, indexed by machine; None where the table has no such column.

        Examples
        --------
        >>> rows = pd.DataFrame({"machine": [1, 1, 2], "rack": [7, 7, 8], "period": 0, "job": "a", "treated": 0})
        >>> Observations.of(rows).of_machines("rack").tolist(), Observations.of(rows).of_machines("platform")
        ([7, 8], None)
        """
        if name not in self.rows:
            return None
        known = np.flatnonzero(self.rows[name].notna().to_numpy())[::-1]
        first = np.full(len(self.machines), -1)
        first[self.machine[known]] = known
        return self.rows[name].reindex(first).set_axis(self.machines.rename("machine"))

    def codes(self, name: str) -> Ints | None:
        """Return (N,) numbers of a column's values, −1 where it has none; None where the table has no such column."""
        return pd.factorize(self.rows[name])[0].astype(np.int64) if name in self.rows else None

    def _first(self, among: Bools) -> Ints:
        """Return (M,) the first period of each machine among some rows; the number of periods where it has none."""
        out = np.full(len(self.machines), len(self.periods))
        np.minimum.at(out, self.machine[among], self.period[among])
        return out

    def _on_machines(self, rows: Bools) -> Bools:
        return np.asarray(np.bincount(self.machine, rows, len(self.machines)) > 0, dtype=np.bool_)


def without_rolled_back(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return rows without those of machines since they lost the feature, or since none has it, and notes on these.

    A machine that is taken out of an experiment, or repaired, makes no crossover of it; nor does the experiment's end.

    Examples
    --------
    >>> row = {"job": "a", "weight": 1.0, "value": 1.0}
    >>> stays = [(0, "m", 0), (1, "m", 1), (2, "m", 0), (1, "n", 1), (2, "n", 1), (1, "o", 1), (1, "p", 0)]
    >>> rows = pd.DataFrame(stays, columns=["period", "machine", "treated"]).assign(**row)
    >>> kept_rows, (note,) = without_rolled_back(rows)
    >>> len(kept_rows), note.partition(";")[0]
    (6, '1 machine loses the feature early (m): its row since then is left out')
    """
    coded = Observations.of(rows)
    out, notes = coded.rolled_back, list[str]()
    if not out.any():
        return rows, notes
    ended = coded.period > coded.period[coded.treated].max()
    ended &= bool(out[ended].all() and not coded.ever[coded.machine[ended]].all())
    early = out & ~ended
    if early.any():
        losing = pd.unique(rows.loc[early, "machine"])
        keeping = int(coded.ever.sum()) - len(losing)
        names = ", ".join(str(name) for name in losing[:_NAMED]) + ", …" * (len(losing) > _NAMED)
        lose, whose = ("machines lose", "their") if len(losing) > 1 else ("machine loses", "its")
        count = "rows since then are" if early.sum() > 1 else "row since then is"
        others = "none keeps it" if keeping == 0 else f"{keeping:,} keep{'s' * (keeping == 1)} it"
        notes.append(
            f"{len(losing):,} {lose} the feature early ({names}): {whose} {count} left out; {others}; "
            f"if {whose} values were the reason, the estimate is biased"
        )
    if ended.any():
        first = coded.periods[coded.period[ended].min()]
        notes.append(
            f"no machine has the feature from period {first:g} on: {ended.sum():,} rows of the time since are left out"
        )
    return rows[~out].reset_index(drop=True), notes


def checked(table: pd.DataFrame) -> Observations:
    """Return the observations of a table whose columns are there and make sense.

    Raises
    ------
    InputError
        If a column or an identifier is missing, a number makes no sense, or a machine has the feature only for part
        of a period.
    """
    missing = [name for name in REQUIRED if name not in table.columns]
    if missing:
        raise InputError(f"the table lacks {', '.join(missing)}")
    rows = table.reset_index(drop=True)
    for name in ("period", "job", "machine", "instance", "shard"):
        if name in rows and rows[name].isna().any():
            raise InputError(f"{name} must not be missing, it is in row {int(rows[name].isna().argmax())}")
    for name in ("weight", "value", "present_s"):
        if name in rows:
            _finite(rows, name, "above 0", lambda numbers: numbers > 0)
    for name in ("exposure", "cpu_s"):
        if name in rows:
            _finite(rows, name, "of 0 or more", lambda numbers: numbers >= 0)
    if not rows["treated"].isin([0, 1]).all():
        raise InputError(f"treated must be 0 or 1, got {rows.loc[~rows['treated'].isin([0, 1]), 'treated'].iloc[0]}")
    coded = Observations.of(rows.assign(treated=rows["treated"].astype(bool)))
    refuse_mixed(coded)
    return coded


def _finite(table: pd.DataFrame, name: str, what: str, right: Callable[[Floats], Bools]) -> None:
    numbers = table[name].to_numpy(dtype=np.float64)
    wrong = ~(np.isfinite(numbers) & right(numbers))
    if wrong.any():
        at = int(wrong.argmax())
        raise InputError(f"{name} must be a finite number {what}, got {numbers[at]} in row {at}")


def identity(table: pd.DataFrame) -> list[str]:
    """Return the columns that tell one stay from another; without an instance or a shard, job and machine do."""
    return [name for name in ("job", "machine", "instance", "shard") if name in table]


def exposure(table: pd.DataFrame) -> Floats:
    """Return what each row's value counts by when periods are taken together; (N,), above 0."""
    for name in ("exposure", "cpu_s", "present_s"):
        if name in table:
            return np.asarray(np.maximum(table[name].to_numpy(dtype=np.float64), 1e-12))
    return np.ones(len(table))


def quotas_of(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return job and quota of the whole fleet.

    Raises
    ------
    InputError
        If a column is missing, a job is there twice or a quota makes no sense.
    """
    missing = [name for name in ("job", "quota") if name not in jobs.columns]
    if missing:
        raise InputError(f"the table of jobs lacks {', '.join(missing)}")
    table = jobs[["job", "quota"]].reset_index(drop=True)
    twice = table["job"].isna() | table["job"].duplicated()
    if twice.any():
        raise InputError(
            f"each job must be there once, {table['job'][twice.argmax()]} is again in row {twice.argmax()}"
        )
    _finite(table, "quota", "of 0 or more", lambda numbers: numbers >= 0)
    return table


_MOST = 2**62
"""Numbers of combinations must stay below this."""


def refuse_mixed(coded: Observations) -> None:
    """Refuse machines that have the feature in a part of a period only.

    Raises
    ------
    PeriodError
        If there are any, with the first.
    """
    together, first = numbered([coded.machine, coded.period])
    if (mixed := coded.treated != coded.treated[first][together]).any():
        machine, period = coded.rows.loc[int(mixed.argmax()), ["machine", "period"]]
        machines = len(np.unique(coded.machine[mixed]))
        others = f", as {machines:,} machines are in some period" if machines > 1 else ""
        remedy = "; leave such rows out (--where), or let days begin where they switch (--zone, --period)"
        raise PeriodError(f"machine {machine} is with and without the feature", period, others + remedy)


def numbered(columns: Sequence[pd.Series | Ints]) -> tuple[Ints, Ints]:
    """Return the number of each row's combination of values, in order of appearance, and where each is first.

    Parameters
    ----------
    columns : one at least, without missing values
    """
    number, total = np.zeros(len(columns[0]), dtype=np.int64), 1
    for column in columns:
        part, values = pd.factorize(column)
        if total * len(values) >= _MOST:
            number, combinations = pd.factorize(number)
            total = len(combinations)
        number, total = number * len(values) + part, total * len(values)
    if len(columns) > 1:
        number, combinations = pd.factorize(number)
        total = len(combinations)
    first = np.empty(total, dtype=np.int64)
    first[number[::-1]] = np.arange(len(number))[::-1]
    return number.astype(np.int64), first
