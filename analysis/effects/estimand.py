"""What is estimated of an experiment: which kind of metric, whose mean, and whether its change is relative."""

import math
import re
from dataclasses import dataclass
from typing import Literal, Self, get_args

import numpy as np

from models.arrays import Bools, Floats
from models.errors import ArgumentError

Target = Literal["instances", "quota", "sums"]
"""What is estimated: the change of Σ quota share × mean of each job, in which all of a job's instances count alike, by
their presence; or by their quota, too; or of Σ exposure × value / Σ exposure over all jobs, a ratio of sums."""
MetricKind = Literal["rate", "mean", "proportion", "ratio", "quantile"]
"""rate: the mean of positive numbers. mean: of any numbers. proportion: of numbers from 0 to 1, such as yes or no.
ratio: Σ value / Σ exposure, value being the numerator. quantile: of the distribution of values."""
ChangeKind = Literal["relative", "absolute"]
"""In parts of the level without the feature, or in the unit of the values."""
_QUANTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?)")
_PERCENT = 100.0
_MOST_DIGITS = 15


@dataclass(frozen=True, slots=True)
class Estimand:
    """What is estimated.

    Examples
    --------
    >>> Estimand.of("p95").quantile, Estimand.of("proportion").change, Estimand.of("ratio").target
    (0.95, 'absolute', 'sums')
    >>> Estimand.of("ratio", target="quota")
    Traceback (most recent call last):
    models.errors.ArgumentError: target: of a ratio is sums, its denominators being the weights, got 'quota'
    """

    metric_kind: MetricKind = "rate"
    change: ChangeKind = "relative"
    target: Target = "instances"
    quantile: float = 0.5
    """0..1, of a quantile."""

    @classmethod
    def of(cls, metric_kind: str = "rate", change: ChangeKind | None = None, target: Target | None = None) -> Self:
        """Return the estimand that is named; what is left out follows from the kind of metric.

        Parameters
        ----------
        metric_kind : rate, mean, proportion, ratio, or a quantile such as p99
        change : relative if left out, but absolute of a mean or a proportion
        target : instances if left out, but sums of a ratio, which is one

        Raises
        ------
        ArgumentError
            If there is no such kind, change or target, or a ratio is to be no ratio of sums.
        """
        quantile = _QUANTILE.fullmatch(metric_kind)
        kind = "quantile" if quantile and float(quantile[1]) > 0.0 else metric_kind
        if kind not in {"rate", "mean", "proportion", "ratio"} and (kind != "quantile" or quantile is None):
            known = "should be rate, mean, proportion, ratio or a quantile such as p99"
            raise ArgumentError("metric_kind", known, metric_kind)
        if kind == "ratio" and target not in {None, "sums"}:
            raise ArgumentError("target", "of a ratio is sums, its denominators being the weights", str(target))
        for argument, got, choices in (("change", change, get_args(ChangeKind)), ("target", target, get_args(Target))):
            if got not in {None, *choices}:
                raise ArgumentError(argument, f"should be {', '.join(choices[:-1])} or {choices[-1]}", str(got))
        return cls(
            metric_kind=kind,
            change=change or ("absolute" if kind in {"mean", "proportion"} else "relative"),
            target=target or ("sums" if kind == "ratio" else "instances"),
            quantile=float(quantile[1]) / _PERCENT if quantile else 0.5,
        )

    @property
    def plain(self) -> bool:
        """Whether it is the relative change of a mean of positive numbers."""
        return self.metric_kind == "rate" and self.change == "relative"

    @property
    def linear(self) -> bool:
        """Whether it is the absolute change of a mean, to which each value adds by itself."""
        return self.change == "absolute" and self.metric_kind in {"rate", "mean", "proportion"}

    @property
    def name(self) -> str:
        """The kind of metric as it is named on the command line.

        Examples
        --------
        >>> Estimand.of("p99.9").name
        'p99.9'
        """
        return f"p{_PERCENT * self.quantile:g}" if self.metric_kind == "quantile" else self.metric_kind

    def usable(self, value: Floats) -> Bools:
        """Return which values can be of such a metric.

        Examples
        --------
        >>> [Estimand.of(kind).usable(np.array([-1.0, 0.0, 0.5, 2.0])).sum() for kind in ("rate", "mean", "proportion")]
        [np.int64(2), np.int64(4), np.int64(2)]
        """
        with np.errstate(invalid="ignore"):
            inside = {"rate": value > 0, "proportion": (value >= 0) & (value <= 1)}.get(self.metric_kind, True)
        return np.asarray(np.isfinite(value) & inside, dtype=np.bool_)

    @property
    def lacking(self) -> str:
        """What a row lacks that cannot be used."""
        if self.metric_kind == "rate":
            return "no value or weight above 0"
        value = {"proportion": "value from 0 to 1", "ratio": "numerator and denominator"}.get(self.metric_kind, "value")
        return f"no {value}, or no weight above 0"

    @property
    def unit(self) -> Literal["%", "points", ""]:
        """The unit of a change: percent of the level, percentage points of a proportion, or that of the values."""
        if self.change == "relative":
            return "%"
        return "points" if self.metric_kind == "proportion" else ""

    @property
    def outcomes(self) -> tuple[str, str]:
        """What a job, or a fleet, did whose change is above zero, and below: only of rates more is known to be better.

        Examples
        --------
        >>> Estimand.of("rate").outcomes, Estimand.of("proportion").outcomes
        (('gained', 'lost'), ('rose', 'fell'))
        """
        return ("gained", "lost") if self.metric_kind == "rate" else ("rose", "fell")

    @property
    def directions(self) -> tuple[str, str]:
        """What a change above zero, and one below, is called: of a rate more is faster."""
        return ("faster", "slower") if self.metric_kind == "rate" else ("higher", "lower")

    def amount(self, change: float, sign: str = "+", margin: float = math.nan) -> str:
        """Return a change in its unit, with so many digits that the last of them is at most half of a margin.

        Parameters
        ----------
        change : as the estimand says
        sign : `+` for one in front of numbers above 0, too
        margin : of the interval; two decimals of a share, or four digits, are enough if it is unknown

        Examples
        --------
        >>> Estimand().amount(0.0123), Estimand.of("proportion").amount(-0.004), Estimand.of("mean").amount(1.5, "")
        ('+1.23%', '-0.40 points', '1.5')
        >>> Estimand.of("proportion").amount(0.00002, margin=0.000009), Estimand.of("mean").amount(123.4567, "", 0.03)
        ('+0.0020 points', '123.46')
        """
        half = margin / 2.0 if math.isfinite(margin) and margin > 0 else math.inf
        if not self.unit:
            least = math.floor(math.log10(abs(change) / half)) + 2 if change and half < math.inf else 0
            return f"{change:{sign}.{min(max(4, least), _MOST_DIGITS)}g}"
        decimals = math.ceil(-math.log10(_PERCENT * half)) if half < math.inf else 0
        number = f"{_PERCENT * change:{sign}.{min(max(2, decimals), _MOST_DIGITS)}f}"
        return f"{number}%" if self.unit == "%" else f"{number} points"


RATE = Estimand()
