"""Does a finding hold? Measured numbers against bounds that stand, with their reasons, beside the printed numbers.

Two tables meet here. *Measured*: columns ``series, x, value``; curves have an ``x``, single numbers do not (NaN).
*Published*: columns ``figure, series, x, value, unit, tolerance, read_from``. A published row whose series reads
``criterion:NAME`` is a bound on the single number NAME: ``x`` is ``at least`` or ``at most``, ``value`` the bound and
``read_from`` the reason; one that reads ``check:NAME`` is the same on a number that follows from the paper's own
printed cells, which tells nothing of ours. All other published rows are numbers that the paper prints; one whose series
reads ``input:NAME`` is only computed with, and one whose series begins with ``printed_`` is compared with what follows
from the printed cells.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from analysis.statistics import Statistic
from models.arrays import Floats
from models.errors import InputError

COLUMNS: Final = ("figure", "series", "x", "value", "unit", "tolerance", "read_from")
"""Columns of a published table."""
CRITERION: Final = "criterion:"
"""How the series of a bound begins."""
CHECK: Final = "check:"
"""How the series of a bound begins that is put to what follows from the paper's own printed cells."""
PRINTED: Final = "printed_"
"""How the series of a number begins that follows from the paper's own printed cells."""
INPUT: Final = "input:"
"""How the series of a printed number begins that is computed with, and not compared."""
RELATIONS: Final = ("at least", "at most")
ENDS: Final = ("", "_low", "_high")
"""What follows the name of an estimate in those of its value and of its interval's ends."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """A bound, its reason and the number it is put to; a number that could not be measured (NaN) fails."""

    name: str
    relation: str
    bound: float
    reason: str
    measured: float

    @property
    def holds(self) -> bool:
        """Whether the measured number keeps the bound."""
        return self.measured >= self.bound if self.relation == "at least" else self.measured <= self.bound

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "fails"
        return f"{self.name} = {self.measured:.4g}, {self.relation} {self.bound:.4g}: {verdict}"


def rows(series: str, x: Iterable[float], value: Iterable[float]) -> pd.DataFrame:
    """Return one curve as measured rows.

    Examples
    --------
    >>> rows("margin", [25, 50], [0.06, 0.042])
       series   x  value
    0  margin  25  0.060
    1  margin  50  0.042
    """
    x = np.asarray(list(x))
    return pd.DataFrame({"series": [series] * len(x), "x": x, "value": np.asarray(list(value), dtype=float)})


def band(series: str, x: Iterable[float], statistics: Iterable[Statistic]) -> pd.DataFrame:
    """Return a curve of estimates, and NAME_low and NAME_high of the ends of their intervals, as measured rows."""
    x, ends = list(x), np.array(list(statistics)).reshape(-1, 3)
    return pd.concat([rows(f"{series}{end}", x, ends[:, i]) for i, end in enumerate(ENDS)], ignore_index=True)


def numbers(**values: float | Statistic) -> pd.DataFrame:
    """Return single numbers as measured rows, one a name; of an estimate also NAME_low and NAME_high.

    Examples
    --------
    >>> numbers(change=Statistic(0.07, 0.05, 0.09), cv=0.15)
            series   x  value
    0       change NaN   0.07
    1   change_low NaN   0.05
    2  change_high NaN   0.09
    3           cv NaN   0.15
    """
    single = flat(**values)
    return pd.DataFrame({"series": list(single), "x": np.nan, "value": list(single.values())})


def flat(**values: float | Statistic) -> dict[str, float]:
    """Return numbers by name, an estimate as NAME, NAME_low and NAME_high."""
    single = dict[str, float]()
    for name, value in values.items():
        ends = value if isinstance(value, Statistic) else (value,)
        single |= {f"{name}{end}": float(number) for end, number in zip(ENDS, ends, strict=False)}
    return single


def measures(*curves: pd.DataFrame, **single: float | Statistic) -> pd.DataFrame:
    """Return curves and single numbers together as measured rows."""
    return pd.concat([*curves, numbers(**single)], ignore_index=True)


def number(measured: pd.DataFrame, series: str, x: float = np.nan) -> float:
    """Return one measured value, NaN if it was not measured.

    Parameters
    ----------
    measured : columns series, x, value
    series : its name
    x : where on the curve; NaN for a single number

    Examples
    --------
    >>> number(numbers(change=0.07), "change")
    0.07
    >>> number(rows("margin", [25], [0.06]), "margin", 25)
    0.06
    """
    at = measured["x"].isna() if np.isnan(x) else np.isclose(measured["x"], x)
    values = measured.loc[(measured["series"] == series) & at, "value"]
    return float(values.iloc[0]) if len(values) else float("nan")


def statistic(measured: pd.DataFrame, series: str) -> Statistic:
    """Return one measured estimate with its interval, NaN as far as it was not measured."""
    return Statistic(*(number(measured, f"{series}{end}") for end in ENDS))


def curve(measured: pd.DataFrame, series: str) -> tuple[list[float], list[float]]:
    """Return the x and the values of one curve, in order of x."""
    points = measured[(measured["series"] == series) & measured["x"].notna()].sort_values("x")
    return points["x"].tolist(), points["value"].tolist()


def error_bars(measured: pd.DataFrame, series: str) -> tuple[list[float], list[float], Floats]:
    """Return x and values of a curve of estimates, and (2, n) how far the ends of the intervals are below and above."""
    x, value = curve(measured, series)
    low, high = (curve(measured, f"{series}{end}")[1] for end in ENDS[1:])
    return x, value, np.clip([np.subtract(value, low), np.subtract(high, value)], 0, None)


def printed(published: pd.DataFrame, inputs: bool = True) -> pd.DataFrame:
    """Return the numbers that the paper prints, `x` as a number (NaN where there is none).

    Parameters
    ----------
    published : columns series, x, value and others
    inputs : whether to keep the numbers that are only computed with; without their mark

    Examples
    --------
    >>> table = pd.DataFrame({"series": ["margin", "criterion:cv"], "x": ["25", "at most"], "value": [0.06, 0.3]})
    >>> printed(table)["x"].tolist()
    [25.0]
    """
    left_out = (CRITERION, CHECK) if inputs else (CRITERION, CHECK, INPUT)
    rest = published[~published["series"].str.startswith(left_out)]
    return rest.assign(series=rest["series"].str.removeprefix(INPUT), x=pd.to_numeric(rest["x"]).astype(float))


def from_cells(computed: pd.DataFrame) -> pd.DataFrame:
    """Return numbers that follow from the paper's own printed cells under names that say so.

    Examples
    --------
    >>> from_cells(numbers(median=0.065))["series"].tolist()
    ['printed_median']
    """
    return computed.assign(series=PRINTED + computed["series"])


def agreement(measured: pd.DataFrame, published: pd.DataFrame) -> float:
    """Return the largest distance between a printed number and ours, in tolerances; NaN if one is missing."""
    judged = printed(published, inputs=False)
    judged = judged[judged["tolerance"].notna()]
    ours = [number(measured, s, x) for s, x in zip(judged["series"], judged["x"], strict=True)]
    distance = np.abs(np.asarray(ours) - judged["value"].to_numpy()) / judged["tolerance"].to_numpy()
    return float(np.max(distance, initial=0.0))


def judge(measured: pd.DataFrame, published: pd.DataFrame, kind: str = CRITERION) -> list[Criterion]:
    """Put the measured numbers to the bounds of a published table.

    The name ``agreement`` stands for `agreement(measured, published)` and is computed here.

    Parameters
    ----------
    measured : columns series, x, value
    published : columns figure, series, x, value, unit, tolerance, read_from
    kind : `CRITERION`, or `CHECK` for the bounds on what follows from the paper's own printed cells

    Returns
    -------
    list of Criterion
        In the order of the table.

    Raises
    ------
    ValueError
        If there is no bound of either kind, or a relation is unknown.

    Examples
    --------
    >>> bound = {"series": ["criterion:cv"], "x": ["at most"], "value": [0.3], "read_from": ["twice what is printed"]}
    >>> print(judge(numbers(cv=0.15), pd.DataFrame(bound))[0])
    cv = 0.15, at most 0.3: holds
    """
    if not published["series"].str.startswith((CRITERION, CHECK)).any():
        raise InputError("the published table has no criterion row, so nothing could hold or fail")
    bounds = published[published["series"].str.startswith(kind)]
    unknown = sorted(set(bounds["x"]) - set(RELATIONS))
    if unknown:
        raise InputError(f"a criterion's relation must be one of {', '.join(RELATIONS)}, got {unknown[0]!r}")
    single = measured[measured["x"].isna()].drop_duplicates("series")
    values = dict(zip(single["series"], single["value"], strict=True))
    if f"{kind}agreement" in set(bounds["series"]):
        values["agreement"] = agreement(measured, published)
    return [_criterion(values, row, kind) for row in bounds.to_dict("records")]


def _criterion(values: Mapping[str, float], row: Mapping[Any, Any], kind: str) -> Criterion:
    name = str(row["series"]).removeprefix(kind)
    value = float(values.get(name, np.nan))
    return Criterion(name, str(row["x"]), float(row["value"]), str(row["read_from"]), value)
