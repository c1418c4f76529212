"""Test clusters that were really rolled out, beside the same composed of counterfactual fleets: how they differ."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import t as student

from analysis.figures import style
from analysis.figures.criteria import curve, number, numbers, rows
from analysis.figures.wsmeter.changes import Interval

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


def mean_of(values: "pd.Series[float]") -> Interval:
    """Return a mean over independent repetitions with its 95% interval (Student 1908)."""
    mean, count = float(values.mean()), len(values)
    error = float(student.ppf(0.975, count - 1) * values.std() / np.sqrt(count)) if count > 1 else np.nan
    return (mean, mean - error, mean + error)


def described(draws: pd.DataFrame, repetition: Sequence[str]) -> pd.DataFrame:
    """Return what sets real roll-outs apart from composed draws, a row per design.

    Parameters
    ----------
    draws : design, seed, draw, real, composed, margin, composed_margin, truth (change of all jobs that count),
        reference (of the covered ones), quota_coverage
    repetition : columns that number independent repetitions, over whose means intervals are taken

    Returns
    -------
    DataFrame
        design, draws, difference (real less composed) with its interval (_low, _high) and sd (over draws), margin, bias
        and bias_covered (real less truth, less reference) with intervals, composed_bias, covers and composed_covers
        (shares of draws whose interval holds the reference), quota_coverage.

    Examples
    --------
    >>> draws = {"design": "added", "seed": 1, "draw": [0, 1], "real": [0.06, 0.08], "composed": 0.06, "margin": 0.02}
    >>> table = pd.DataFrame(draws | {"truth": 0.06, "reference": 0.07, "composed_margin": 0.02, "quota_coverage": 0.9})
    >>> described(table, DRAWS)[["draws", "difference", "difference_low", "bias"]].round(3).to_numpy().tolist()
    [[2.0, 0.01, -0.117, 0.01]]
    """
    compared = draws.assign(
        difference=draws["real"] - draws["composed"],
        bias=draws["real"] - draws["truth"],
        bias_covered=draws["real"] - draws["reference"],
        composed_bias=draws["composed"] - draws["truth"],
        covers=(draws["real"] - draws["reference"]).abs() <= draws["margin"],
        composed_covers=(draws["composed"] - draws["reference"]).abs() <= draws["composed_margin"],
    )
    return pd.DataFrame(
        [_described(str(name), own, repetition) for name, own in compared.groupby("design", sort=False)]
    )


def _described(name: str, draws: pd.DataFrame, repetition: Sequence[str]) -> dict[str, Any]:
    units = draws.groupby(list(repetition)).mean(numeric_only=True)
    row: dict[str, Any] = {"design": name, "draws": len(draws)}
    for what in ("difference", "bias", "bias_covered"):
        row |= dict(zip((what, f"{what}_low", f"{what}_high"), mean_of(units[what]), strict=True))
    plain = {
        what: float(units[what].mean())
        for what in ("margin", "composed_bias", "covers", "composed_covers", "quota_coverage")
    }
    return row | {"sd": float(draws["difference"].std())} | plain


def measure_rollouts(draws: pd.DataFrame) -> pd.DataFrame:
    """Return how far real roll-outs are from composed draws, relative to WSMeter's margin.

    Parameters
    ----------
    draws : as for `described`, each draw a repetition

    Returns
    -------
    DataFrame
        series, x, value: draws_min, and per design difference, _low, _high, sd, margin, bias, distance (of the mean
        difference from 0, in half-widths of its interval), far_end (of that interval, in margins), and the curve
        over_margin (each draw's difference in margins, over its number).

    Examples
    --------
    >>> draws = {"design": "added", "seed": 1, "draw": [0, 1], "real": [0.06, 0.08], "composed": 0.06, "margin": 0.02}
    >>> table = pd.DataFrame(draws | {"truth": 0.07, "reference": 0.07, "composed_margin": 0.02, "quota_coverage": 0.9})
    >>> round(number(measure_rollouts(table), "far_end_added"), 2)
    6.85
    """
    by_design = described(draws, DRAWS)
    parts = [numbers(draws_min=float(by_design["draws"].min()))]
    for row in by_design.to_dict("records"):
        name, own = row["design"], draws[draws["design"] == row["design"]]
        singles = {
            what: row[what] for what in ("difference", "difference_low", "difference_high", "sd", "margin", "bias")
        }
        singles |= {"distance": _distance(row), "far_end": _far_end(row) / row["margin"]}
        parts.append(numbers(**{f"{what}_{name}": value for what, value in singles.items()}))
        parts.append(rows(f"over_margin_{name}", range(len(own)), (own["real"] - own["composed"]) / own["margin"]))
    return pd.concat(parts, ignore_index=True)


def measure_packing(draws: pd.DataFrame) -> pd.DataFrame:
    """Return how much less packed instances gain than the same instances where they were, in each world.

    Parameters
    ----------
    draws : as for `described`, a design a name in `WORLDS`; each fleet a repetition

    Returns
    -------
    DataFrame
        series, x, value: fleets and draws (fewest of any world); shortfall with _low and _high in the normal world and
        _quiet and _alike in the others, whose far ends and distance from 0 are quiet_far_end, quiet_distance (in
        half-widths) and alike_far_end; bias per world; and the curves shortfall_of, each fleet's mean over its seed.

    Examples
    --------
    >>> draws = {"seed": [1, 2] * 3, "draw": 0, "real": [0.04, 0.05] + 4 * [0.06], "composed": 0.06, "margin": 0.02}
    >>> worlds = {"design": ["normal"] * 2 + ["quiet"] * 2 + ["alike"] * 2}
    >>> others = {"truth": 0.07, "reference": 0.07, "composed_margin": 0.02, "quota_coverage": 0.9}
    >>> table = pd.DataFrame(draws | worlds | others)
    >>> round(number(measure_packing(table), "shortfall"), 3)
    0.015
    """
    by_world = {row["design"]: row for row in described(draws, FLEETS).to_dict("records")}
    normal, quiet, alike = (by_world[name] for name in WORLDS)
    fleets = draws.groupby("design")["seed"].nunique()
    parts = [
        numbers(
            fleets=float(fleets.min()),
            draws=float(min(row["draws"] for row in by_world.values())),
            quiet_far_end=_far_end(quiet),
            quiet_distance=_distance(quiet),
            alike_far_end=_far_end(alike),
            **_shortfall(normal, ""),
            **_shortfall(quiet, "_quiet"),
            **_shortfall(alike, "_alike"),
            **{f"bias_{name}": row["bias"] for name, row in by_world.items()},
        )
    ]
    for name in WORLDS:
        own = draws[draws["design"] == name].groupby("seed")[["real", "composed"]].mean()
        parts.append(rows(f"shortfall_of_{name}", own.index, own["composed"] - own["real"]))
    return pd.concat(parts, ignore_index=True)


def _shortfall(row: Mapping[Any, Any], suffix: str) -> dict[str, float]:
    """Return composed less real with its interval."""
    ends = {"": "difference", "_low": "difference_high", "_high": "difference_low"}
    return {f"shortfall{suffix}{end}": -row[name] for end, name in ends.items()}


def _far_end(row: Mapping[Any, Any]) -> float:
    """Return the end of a difference's interval that is further from 0."""
    return float(max(abs(row["difference_low"]), abs(row["difference_high"])))


def _distance(row: Mapping[Any, Any]) -> float:
    """Return how far a mean difference is from 0 in half-widths of its interval; 0 if nothing differs at all."""
    half_width = float(row["difference_high"] - row["difference"])
    return abs(float(row["difference"])) / half_width if half_width else 0.0


def rollouts(measured: pd.DataFrame, _published: pd.DataFrame) -> Figure:
    """Draw every draw's difference in margins, by design, with the mean and its 95% interval."""
    figure, (axes,) = style.panels()
    for at, name in enumerate(DESIGNS):
        scale = number(measured, f"margin_{name}")
        ends = [number(measured, f"difference{end}_{name}") / scale for end in ("", "_low", "_high")]
        _strip(axes, at, curve(measured, f"over_margin_{name}")[1], (ends[0], ends[1], ends[2]))
    _columns(axes, list(DESIGNS.values()))
    style.label(axes, "", "real less composed (margins)")
    return figure


def packing(measured: pd.DataFrame, _published: pd.DataFrame) -> Figure:
    """Draw every fleet's shortfall of packed instances, by world, with the mean and its 95% interval."""
    figure, (axes,) = style.panels()
    for at, name in enumerate(WORLDS):
        of = "shortfall" if name == "normal" else f"shortfall_{name}"
        ends = [number(measured, f"{of}{end}") for end in ("", "_low", "_high")]
        _strip(axes, at, curve(measured, f"shortfall_of_{name}")[1], (ends[0], ends[1], ends[2]))
    _columns(axes, list(WORLDS.values()))
    style.percent(axes, decimals=1)
    style.label(axes, "", "gain lost by packing")
    return figure


def _strip(axes: Axes, at: int, values: Sequence[float], interval: Interval) -> None:
    """Draw values as dots in a column, and their mean with its interval beside them."""
    mean, low, high = interval
    axes.plot(np.full(len(values), at - 0.12), values, ".", color=style.SKY, markersize=4)
    axes.errorbar(at + 0.12, mean, [[mean - low], [high - mean]], fmt="o", color=style.BLUE, markersize=3, capsize=2)


def _columns(axes: Axes, names: list[str]) -> None:
    axes.axhline(0.0, color=style.GREY, linewidth=0.8)
    axes.set_xticks(range(len(names)), names, fontsize=6)
    axes.set_xlim(-0.5, len(names) - 0.5)
