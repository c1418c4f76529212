"""Does a finding hold? Measured numbers against bounds that stand, with their reasons, beside the printed numbers.

Two tables meet here. *Measured*: columns ``series, x, value``; curves have an ``x``, single numbers do not (NaN).
*Published*: columns ``figure, series, x, value, unit, tolerance, read_from``. A published row whose series reads
``finding:NAME``, ``check:NAME`` or ``deviation:NAME`` is a bound on the single number NAME: ``x`` is ``at least`` or
``at most``, ``value`` the bound and ``read_from`` the reason. What the three kinds are, `KINDS` says. All other
published rows are numbers that the paper prints; one whose series reads ``input:NAME`` is only computed with, and one
whose series begins with ``printed_`` is compared with what follows from the printed cells.

A finding is judged on several worlds, which differ by their seed alone: a verdict that changes with the seed is one
about the seed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from analysis.statistics import Statistic
from models.arrays import Floats
from models.errors import InputError

COLUMNS: Final = ("figure", "series", "x", "value", "unit", "tolerance", "read_from")
"""Columns of a published table."""
Kind = Literal["finding", "check", "deviation"]
Verdict = Literal["holds", "does not hold", "depends on the world"]
KINDS: Final[Mapping[Kind, str]] = {
    "finding": "could fail in this world; put to rivals where the paper claims an advantage",
    "check": "arithmetic on printed numbers, an identity, or a parameter of the world: says nothing of a claim",
    "deviation": "a slip of the paper's own: what is printed does not follow from what is printed",
}
"""The three kinds of criteria; the series of a bound begins with its kind and a colon."""
BOUNDS: Final = tuple(f"{kind}:" for kind in KINDS)
"""How the series of a bound begins."""
HOLDS_FROM: Final = 0.9
"""Share of the worlds in which a finding must be true for it to hold."""
FAILS_TO: Final = 0.2
"""Share of the worlds up to which it does not hold; between the two it depends on the world."""
PRINTED: Final = "printed_"
"""How the series of a number begins that follows from the paper's own printed cells."""
INPUT: Final = "input:"
"""How the series of a printed number begins that is computed with, and not compared."""
RELATIONS: Final = ("at least", "at most")
ENDS: Final = ("", "_low", "_high")
"""What follows the name of an estimate in those of its value and of its interval's ends."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """A bound, its reason and the numbers it is put to; a number that could not be measured (NaN) fails.

    Examples
    --------
    >>> spread = Criterion("cv", "at most", 0.3, "twice what is printed", (0.15, 0.31, 0.28))
    >>> spread.holds_in, spread.verdict
    (2, 'depends on the world')
    """

    name: str
    relation: str
    bound: float
    reason: str
    values: tuple[float, ...]
    """Of one world each; the first is the one that is drawn."""
    kind: Kind = "finding"
    pooled: float | None = None
    """Of the draws of all worlds together, where the criterion is itself a rate."""

    @property
    def measured(self) -> float:
        """The number of the world that is drawn."""
        return self.values[0]

    def keeps(self, value: float) -> bool:
        """Return whether a number keeps the bound."""
        return value >= self.bound if self.relation == "at least" else value <= self.bound

    @property
    def holds_in(self) -> int:
        """In how many worlds the number keeps the bound."""
        return sum(map(self.keeps, self.values))

    @property
    def verdict(self) -> Verdict:
        """What the worlds say: the pooled rate's verdict where there is one, else the share of worlds."""
        if self.pooled is not None:
            return "holds" if self.keeps(self.pooled) else "does not hold"
        share = self.holds_in / len(self.values)
        if share >= HOLDS_FROM:
            return "holds"
        return "does not hold" if share <= FAILS_TO else "depends on the world"

    @property
    def holds(self) -> bool:
        """Whether the verdict is that it holds."""
        return self.verdict == "holds"

    @property
    def quartiles(self) -> tuple[float, float, float, float, float]:
        """Least, lower quartile, median, upper quartile and most of the worlds' numbers; NaN if none was measured."""
        finite = [value for value in self.values if np.isfinite(value)]
        low, lower, middle, upper, high = np.quantile(finite or [np.nan], (0, 0.25, 0.5, 0.75, 1)).tolist()
        return low, lower, middle, upper, high

    def __str__(self) -> str:
        bound = f"{self.relation} {self.bound:.4g}"
        if len(self.values) == 1:
            value = "not measured" if np.isnan(self.measured) else f"{self.measured:.4g}"
            return f"{self.name} = {value}, {bound}: {'holds' if self.holds else 'fails'}"
        low, _, middle, _, high = self.quartiles
        values = "not measured" if np.isnan(middle) else f"{middle:.4g} ({low:.4g} to {high:.4g})"
        spread = f"{self.name} = {values}, {bound}"
        if self.pooled is not None:
            return f"{spread}: {self.verdict}, {self.pooled:.4g} in all draws together"
        return f"{spread}: {self.verdict}, true in {self.holds_in} of {len(self.values)} worlds"


def overall(verdicts: Iterable[Verdict]) -> Verdict:
    """Return what several verdicts come to: all must hold, and one that does not hold decides.

    Examples
    --------
    >>> overall(["holds", "depends on the world"]), overall(["does not hold", "depends on the world"])
    ('depends on the world', 'does not hold')
    """
    told = set(verdicts)
    if "does not hold" in told:
        return "does not hold"
    return "depends on the world" if "depends on the world" in told else "holds"


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
    return pd.concat((*curves, numbers(**single)), ignore_index=True)


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
    >>> table = pd.DataFrame({"series": ["margin", "finding:cv"], "x": ["25", "at most"], "value": [0.06, 0.3]})
    >>> printed(table)["x"].tolist()
    [25.0]
    """
    left_out = BOUNDS if inputs else (*BOUNDS, INPUT)
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


def judge(
    worlds: pd.DataFrame | Sequence[pd.DataFrame], published: pd.DataFrame, pooled: Mapping[str, float] | None = None
) -> list[Criterion]:
    """Put the measured numbers of one world, or of several, to the bounds of a published table.

    The name ``agreement`` stands for `agreement(measured, published)` and is computed here.

    Parameters
    ----------
    worlds : columns series, x, value; a table a world, the one that is drawn first
    published : columns figure, series, x, value, unit, tolerance, read_from
    pooled : rates of the draws of all worlds together, by name

    Returns
    -------
    list of Criterion
        In the order of the table.

    Raises
    ------
    ValueError
        If there is no bound, or a relation is unknown.

    Examples
    --------
    >>> bound = {"series": ["finding:cv"], "x": ["at most"], "value": [0.3], "read_from": ["twice what is printed"]}
    >>> print(judge(numbers(cv=0.15), pd.DataFrame(bound))[0])
    cv = 0.15, at most 0.3: holds
    """
    bounds = published[published["series"].str.startswith(BOUNDS)]
    if bounds.empty:
        raise InputError("the published table has no criterion, so nothing could hold or fail")
    unknown = sorted(set(bounds["x"]) - set(RELATIONS))
    if unknown:
        raise InputError(f"a criterion's relation must be one of {', '.join(RELATIONS)}, got {unknown[0]!r}")
    tables = [worlds] if isinstance(worlds, pd.DataFrame) else worlds
    values = [_single(table, published) for table in tables]
    return [_criterion(values, row, pooled or {}) for row in bounds.to_dict("records")]


def _single(measured: pd.DataFrame, published: pd.DataFrame) -> Mapping[str, float]:
    """Return the single numbers of one world by name."""
    single = measured[measured["x"].isna()].drop_duplicates("series")
    values = dict(zip(single["series"], single["value"], strict=True))
    names = set(published["series"].str.partition(":")[2])
    return values | ({"agreement": agreement(measured, published)} if "agreement" in names else {})


def _criterion(worlds: Sequence[Mapping[str, float]], row: Mapping[Any, Any], pooled: Mapping[str, float]) -> Criterion:
    text, _, name = str(row["series"]).partition(":")
    kind: Kind = next(known for known in KINDS if known == text)
    values = tuple(float(values.get(name, np.nan)) for values in worlds)
    together = pooled.get(name) if len(values) > 1 else None
    return Criterion(name, str(row["x"]), float(row["value"]), str(row["read_from"]), values, kind, together)
