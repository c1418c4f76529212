"""Test clusters that were really rolled out, beside the same composed of counterfactual fleets: how they differ."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.criteria import curve, flat, number, numbers, rows, statistic
from analysis.figures.wsmeter.changes import student_interval
from analysis.statistics import Statistic

DESIGNS = {
    "machines": "machines\n(CPU)",
    "machines_dvfs": "machines\n(DVFS)",
    "added": "added\n(CPU)",
    "instances": "instances\n(services)",
}
"""What the designs are called in a drawing."""
WORLDS = {
    "normal": "as it is",
    "quiet": "no interference,\nno power caps",
    "alike": "… and machines\nall alike",
}
"""The worlds that are packed in, from all that happens to nothing but packing."""
DRAWS, FLEETS = ("seed", "draw"), ("seed",)
"""What counts as one independent repetition."""


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """What sets real roll-outs of one design apart from composed draws; means over repetitions."""

    draws: int
    difference: Statistic
    """Real less composed."""
    bias: Statistic
    """Real less the change of all jobs that count."""
    bias_covered: Statistic
    """Real less the change of the covered ones, the reference."""
    sd: float
    """Of the difference, over draws."""
    margin: float
    composed_bias: float
    covers: float
    """Share of draws whose interval holds the reference."""
    composed_covers: float
    quota_coverage: float

    @property
    def far_end(self) -> float:
        """The end of the difference's interval that is further from 0."""
        return max(abs(self.difference.low), abs(self.difference.high))

    @property
    def distance(self) -> float:
        """How far the mean difference is from 0 in half-widths of its interval; 0 if nothing differs at all."""
        half_width = self.difference.half_width
        return abs(self.difference.value) / half_width if half_width else 0.0


def discrepancies(draws: pd.DataFrame, repetition: Sequence[str]) -> dict[str, Discrepancy]:
    """Return what sets real roll-outs apart from composed draws, by design.

    Parameters
    ----------
    draws : design, seed, draw, real, composed, margin, composed_margin, truth (change of all jobs that count),
        reference (of the covered ones), quota_coverage
    repetition : columns that number independent repetitions, over whose means intervals are taken
    """
    compared = draws.assign(
        difference=draws["real"] - draws["composed"],
        bias=draws["real"] - draws["truth"],
        bias_covered=draws["real"] - draws["reference"],
        composed_bias=draws["composed"] - draws["truth"],
        covers=(draws["real"] - draws["reference"]).abs() <= draws["margin"],
        composed_covers=(draws["composed"] - draws["reference"]).abs() <= draws["composed_margin"],
    )
    return {str(name): _discrepancy(own, repetition) for name, own in compared.groupby("design", sort=False)}


def _discrepancy(draws: pd.DataFrame, repetition: Sequence[str]) -> Discrepancy:
    units = draws.groupby(list(repetition)).mean(numeric_only=True)
    means = ("margin", "composed_bias", "covers", "composed_covers", "quota_coverage")
    return Discrepancy(
        len(draws),
        student_interval(units["difference"]),
        student_interval(units["bias"]),
        student_interval(units["bias_covered"]),
        float(draws["difference"].std()),
        *(float(units[what].mean()) for what in means),
    )


def described(draws: pd.DataFrame, repetition: Sequence[str]) -> pd.DataFrame:
    """Return `discrepancies` as a table: a row a number, intervals as _low and _high, and a column a design."""
    columns = {name: flat(**asdict(of)) for name, of in discrepancies(draws, repetition).items()}
    return pd.DataFrame(columns).rename_axis("").reset_index()


def measure_rollouts(draws: pd.DataFrame) -> pd.DataFrame:
    """Return how far real roll-outs are from composed draws, relative to WSMeter's margin; each draw is a repetition.

    draws_min, and per design difference with its interval, sd, margin, bias, distance (of the mean difference from 0,
    in half-widths of its interval), far_end (of that interval, in margins), and the curve over_margin (each draw's
    difference in margins, over its number).
    """
    by_design = discrepancies(draws, DRAWS)
    parts = [numbers(draws_min=min(of.draws for of in by_design.values()))]
    for name, of in by_design.items():
        singles: dict[str, float | Statistic] = {
            "difference": of.difference,
            "sd": of.sd,
            "margin": of.margin,
            "bias": of.bias.value,
            "distance": of.distance,
            "far_end": of.far_end / of.margin,
        }
        parts.append(numbers(**{f"{what}_{name}": value for what, value in singles.items()}))
        own = draws[draws["design"] == name]
        parts.append(rows(f"over_margin_{name}", range(len(own)), (own["real"] - own["composed"]) / own["margin"]))
    return pd.concat(parts, ignore_index=True)


def measure_packing(draws: pd.DataFrame) -> pd.DataFrame:
    """Return how much less packed instances gain than the same instances where they were, in each of `WORLDS`.

    A design is a world and each fleet a repetition. fleets and draws (fewest of any world); shortfall with its interval
    in the normal world and of _quiet and _alike in the others, whose far ends and distance from 0 are quiet_far_end,
    quiet_distance (in half-widths) and alike_far_end; bias per world; and the curves shortfall_of, each fleet's mean
    over its seed.
    """
    by_world = discrepancies(draws, FLEETS)
    parts = [
        numbers(
            fleets=float(draws.groupby("design")["seed"].nunique().min()),
            draws=min(of.draws for of in by_world.values()),
            quiet_far_end=by_world["quiet"].far_end,
            quiet_distance=by_world["quiet"].distance,
            alike_far_end=by_world["alike"].far_end,
            **{_shortfall(name): _negative(of.difference) for name, of in by_world.items()},
            **{f"bias_{name}": of.bias.value for name, of in by_world.items()},
        )
    ]
    for name in WORLDS:
        own = draws[draws["design"] == name].groupby("seed")[["real", "composed"]].mean()
        parts.append(rows(f"shortfall_of_{name}", own.index, own["composed"] - own["real"]))
    return pd.concat(parts, ignore_index=True)


def _shortfall(world: str) -> str:
    return "shortfall" if world == "normal" else f"shortfall_{world}"


def _negative(difference: Statistic) -> Statistic:
    """Return composed less real with its interval."""
    return Statistic(-difference.value, -difference.high, -difference.low)


def rollouts(measured: pd.DataFrame, _published: pd.DataFrame) -> Figure:
    """Draw every draw's difference in margins, by design, with the mean and its 95% interval."""
    figure, (axes,) = style.panels()
    for at, name in enumerate(DESIGNS):
        scale = number(measured, f"margin_{name}")
        difference = Statistic(*(end / scale for end in statistic(measured, f"difference_{name}")))
        _strip(axes, at, curve(measured, f"over_margin_{name}")[1], difference, "a draw")
    _columns(axes, list(DESIGNS.values()))
    style.label(axes, "", "real less composed (margins of error)")
    style.legend(axes, above=True, columns=2)
    return figure


def packing(measured: pd.DataFrame, _published: pd.DataFrame) -> Figure:
    """Draw every fleet's shortfall of packed instances, by world, with the mean and its 95% interval."""
    figure, (axes,) = style.panels()
    for at, name in enumerate(WORLDS):
        _strip(axes, at, curve(measured, f"shortfall_of_{name}")[1], statistic(measured, _shortfall(name)), "a fleet")
    _columns(axes, list(WORLDS.values()))
    style.percent(axes, decimals=1)
    style.label(axes, "", "performance lost by packing")
    style.legend(axes, above=True, columns=2)
    return figure


def _strip(axes: Axes, at: int, values: Sequence[float], mean: Statistic, name: str) -> None:
    """Draw values as dots in a column, and their mean with its interval beside them."""
    error = [[mean.value - mean.low], [mean.half_width]]
    words = ("", "") if at else (name, "mean, 95% interval")
    axes.plot(np.full(len(values), at - 0.12), values, ".", color=style.SKY, markersize=4, label=words[0])
    axes.errorbar(at + 0.12, mean.value, error, fmt="o", color=style.BLUE, markersize=3, capsize=2, label=words[1])


def _columns(axes: Axes, names: list[str]) -> None:
    axes.axhline(0.0, color=style.GREY, linewidth=0.8)
    axes.set_xticks(range(len(names)), names, fontsize=style.LEAST_POINTS)
    axes.set_xlim(-0.5, len(names) - 0.5)
