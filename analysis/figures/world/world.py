"""The world against real fleets, and what its mechanisms do: calibration, ablation, co-variance and DVFS."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import norm, spearmanr
from scipy.stats import t as student

from analysis.figures import style
from analysis.figures.criteria import curve, number, numbers, rows
from analysis.figures.wsmeter.changes import Interval, share_interval
from models.errors import InputError

WIDEST_RATIO = 2.2
"""Ratio of measured to published at which the drawing is cut."""
METRICS = {
    "change": "true change",
    "machine_cv": "machine σ / mean",
    "job_cv": "spread within a job",
    "slowdown": "CPI over CPI alone",
    "speed": "10⁹ instructions / CPU s",
    "margin": "WSMeter's margin",
    "coverage": "coverage of its interval",
    "moved": "instance's change of IPC",
}
"""What an ablation is drawn in."""
ACRONYMS = {"llc": "LLC sharing", "bandwidth": "bandwidth limit", "smt": "SMT sharing"}
"""How switches are called in a drawing, where it is not their own name."""
AXES = {"rack": ("racks", style.BLUE), "machine": ("machines", style.ORANGE), "both": ("both", style.GREEN)}
SHARES = ("covered", "truth", "covered_widened", "truth_widened")


def calibration(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw every measured fact over its published value, with the tolerance as a bar; arrows lie outside."""
    facts = published.reset_index(drop=True)
    value = facts["value"].to_numpy(dtype=np.float64)
    ratio = np.array([number(measured, name) for name in facts["series"]]) / value
    half = (facts["tolerance"].astype(float) / facts["value"].abs()).to_numpy()
    low, high = 1 - np.where(np.isnan(half), 1, half), 1 + np.nan_to_num(half)
    place = np.arange(len(facts))[::-1]
    figure, (axes,) = style.panels(columns=1, height_inches=0.8 + 0.125 * len(facts))
    axes.barh(place, high - low, 0.7, low, color="#dcdcdc", label="tolerance")
    axes.axvline(1, color=style.GREY, linewidth=0.8, label="published")
    inside = (ratio >= low - 1e-12) & (ratio <= high + 1e-12)
    for chosen, colour, text in ((inside, style.BLUE, "holds"), (~inside, style.RED, "does not hold")):
        axes.plot(np.clip(ratio[chosen], 0, WIDEST_RATIO), place[chosen], "o", color=colour, markersize=3, label=text)
    for cut, form in ((ratio > WIDEST_RATIO, ">"), (ratio < 0, "<")):
        axes.plot(np.clip(ratio[cut], 0, WIDEST_RATIO), place[cut], form, color=style.RED, markersize=6)
    axes.set_yticks(place, facts["series"].str.replace("_", " ").tolist(), fontsize=5)
    axes.set_xlim(-0.05, WIDEST_RATIO + 0.05)
    axes.set_ylim(-0.7, len(facts) - 0.3)
    style.label(axes, "measured / published", "")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False, fontsize=6)
    return figure


def measure_ablation(fleets: pd.DataFrame) -> pd.DataFrame:
    """Return what each switch moves, as means over fleets and as the least effect in any fleet.

    Parameters
    ----------
    fleets : seed, switch (the first one is the base) and the columns in `METRICS` and rack_variance_ratio

    Returns
    -------
    DataFrame
        series, x, value: a curve over the switches (in order of appearance) per metric, and single numbers named
        METRIC_fall_without_SWITCH, relative to the base.

    Examples
    --------
    >>> fleets = pd.DataFrame({"seed": 1, "switch": ["base", "smt"], "slowdown": [2.0, 1.5]})
    >>> fleets = fleets.assign(**{name: 1.0 for name in (*METRICS, "rack_variance_ratio") if name != "slowdown"})
    >>> number(measure_ablation(fleets), "slowdown_fall_without_smt")
    0.25
    """
    switches = fleets["switch"].drop_duplicates().tolist()
    names = [*METRICS, "rack_variance_ratio"]
    means = fleets.groupby("switch")[names].mean().loc[switches]
    change = _relative(fleets, switches)
    falls = {f"{m}_fall_without_{s}": -change[m, s].max() for s in switches[1:] for m in METRICS}
    rises = {f"{m}_rise_without_{s}": change[m, s].min() for s in switches[1:] for m in METRICS}
    off = fleets[fleets["switch"] != switches[0]]
    ratios = {f"rack_variance_ratio_without_{s}": least for s, least in _least(off, "rack_variance_ratio").items()}
    singles = numbers(**falls, **rises, **ratios, moved_min=min(_least(off, "moved").values()))
    return pd.concat([*(rows(m, range(len(switches)), means[m]) for m in names), singles], ignore_index=True)


def _relative(fleets: pd.DataFrame, switches: list[str]) -> pd.DataFrame:
    """Return (seeds, metrics × switches) relative changes against the base of the same fleet."""
    wide = fleets.pivot_table(index="seed", columns="switch", values=list(METRICS), dropna=False)
    base = pd.concat({s: wide.xs(switches[0], axis=1, level="switch") for s in switches}, axis=1).swaplevel(axis=1)
    return wide / base[wide.columns] - 1


def _least(fleets: pd.DataFrame, name: str) -> dict[str, float]:
    return {str(switch): float(values.min(skipna=False)) for switch, values in fleets.groupby("switch")[name]}


def ablation(measured: pd.DataFrame, switches: tuple[str, ...]) -> Figure:
    """Draw the fleet without each of its mechanisms, a panel a metric, beside the fleet that has all."""
    figure, panels = style.panels(columns=2, rows=4, height_inches=1.5)
    names = ["nothing off", *(f"no {ACRONYMS.get(name, name).replace('_', ' ')}" for name in switches[1:])]
    for i, (axes, (metric, title)) in enumerate(zip(panels, METRICS.items(), strict=True)):
        value = np.array(curve(measured, metric)[1]) * (1e-9 if metric == "speed" else 1.0)
        axes.axvline(value[0], color=style.GREY, linewidth=0.8)
        axes.plot(value, range(len(value)), "o", color=style.BLUE, markersize=4)
        axes.hlines(range(len(value)), value[0], value, color=style.BLUE, linewidth=1)
        axes.set_yticks(range(len(names)), names if i % 2 == 0 else [""] * len(names))
        axes.invert_yaxis()
        if metric not in {"slowdown", "speed"}:
            style.percent(axes, "x")
        style.label(axes, title, "")
    return figure


def measure_covariance(fleets: pd.DataFrame) -> pd.DataFrame:
    """Return coverage over shared conditions: means over fleets, Monte-Carlo intervals and spread between fleets.

    Parameters
    ----------
    fleets : seed, axis, level, correlation, draws and the shares covered, truth, covered_widened, truth_widened

    Returns
    -------
    DataFrame
        series, x, value: curves over level, named SHARE_AXIS with _low and _high (95% Wilson interval of all draws of
        all fleets) and _between (standard deviation between fleets), and correlation_AXIS; single numbers with 95%
        Student intervals over fleets.

    Raises
    ------
    ValueError
        If the axis `both` is missing.

    Examples
    --------
    >>> levels = pd.DataFrame({"axis": "both", "level": [0.0, 0.02, 0.2], "correlation": [0.0, 0.1, 1.0]})
    >>> levels = levels.assign(draws=100, covered=[0.95, 0.9, 0.7], truth=0.9, covered_widened=0.97, truth_widened=0.95)
    >>> fleets = pd.concat([levels.assign(seed=seed) for seed in (1, 2)])
    >>> round(number(measure_covariance(fleets), "coverage_drop_low"), 3)
    0.25
    """
    ends = fleets[fleets["axis"] == "both"].sort_values(["level", "seed"])
    if ends.empty:
        raise InputError("axis 'both' is missing from the sweep")
    none, most = (
        ends[ends["level"] == level].set_index("seed") for level in (ends["level"].min(), ends["level"].max())
    )
    middle = fleets.groupby(["axis", "level"])[["correlation", "covered"]].mean().drop_duplicates()
    gain = fleets.assign(gain=fleets["covered_widened"] - fleets["covered"]).groupby(["axis", "level"])["gain"]
    singles = numbers(
        **_named("correlation_rise", _student(most["correlation"] - none["correlation"])),
        **_named("coverage_drop", _student(none["covered"] - most["covered"])),
        **_named("coverage_without", _student(none["covered"])),
        rank_correlation=spearmanr(middle["correlation"], middle["covered"]).statistic,
        widened_gain_low=min(_student(gains)[1] for _, gains in gain),
        **_default(ends),
    )
    return pd.concat([*_curves(fleets), singles], ignore_index=True)


def _default(ends: pd.DataFrame) -> dict[str, float]:
    """Return the shares of the world as it is by default, with both spreads at 0.02."""
    here = ends[np.isclose(ends["level"], 0.02)]
    names = ("coverage", "coverage_of_truth", "coverage_widened", "coverage_of_truth_widened")
    return {f"{name}_default": float(here[share].mean()) for name, share in zip(names, SHARES, strict=True)}


def _curves(fleets: pd.DataFrame) -> list[pd.DataFrame]:
    parts = []
    for axis, swept in fleets.groupby("axis", sort=False):
        by_level = swept.groupby("level")
        levels = sorted(swept["level"].unique().tolist())
        parts.append(rows(f"correlation_{axis}", levels, by_level["correlation"].mean()))
        for share in SHARES:
            ends = [share_interval((one[share] * one["draws"]).sum(), one["draws"].sum()) for _, one in by_level]
            for i, end in enumerate(("", "_low", "_high")):
                parts.append(rows(f"{share}_{axis}{end}", levels, [interval[i] for interval in ends]))
            parts.append(rows(f"{share}_{axis}_between", levels, by_level[share].std()))
    return parts


def _named(name: str, ends: Interval) -> dict[str, float]:
    return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))


def _student(values: "pd.Series[float]") -> Interval:
    """Return a mean over fleets and its 95% interval (Student 1908)."""
    mean, count = float(values.mean()), len(values)
    error = float(student.ppf(0.975, count - 1) * values.std() / np.sqrt(count)) if count > 1 else np.nan
    return (mean, mean - error, mean + error)


def covariance(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw coverage over the effective correlation, of the covered jobs' and of the whole fleet's change."""
    figure, panels = style.panels(columns=2, share_y=True)
    for axes, target, title in zip(
        panels, ("covered", "truth"), ("change of the covered jobs", "change of the whole fleet"), strict=True
    ):
        for axis, (what, colour) in AXES.items():
            _coverage(axes, measured, f"{target}_{axis}", axis, (colour, "o-", what))
            _coverage(axes, measured, f"{target}_widened_{axis}", axis, (colour, "s:", f"{what}, widened by 20%"))
        _expected(axes, max(curve(measured, f"correlation_{axis}")[1][-1] for axis in AXES))
        axes.axhline(number(published, "coverage_default"), color=style.RED, linestyle=":", linewidth=0.8)
        style.percent(axes, decimals=0)
        style.label(axes, "effective correlation of co-located jobs", "coverage", title)
    style.legend(panels[0])
    return figure


def _expected(axes: Axes, most: float) -> None:
    """Draw the coverage of a normal estimate whose real variance is 1 + correlation times the one it counts."""
    at = np.linspace(0.0, max(most, 0.0), 50)
    for half_width, form in ((2.0, "-"), (2.4, ":")):
        axes.plot(at, 2 * norm.cdf(half_width / np.sqrt(1 + at)) - 1, form, color=style.GREY, linewidth=0.8)
    axes.plot([], [], "-", color=style.GREY, linewidth=0.8, label="expected from the correlation")


def _coverage(axes: Axes, measured: pd.DataFrame, name: str, axis: str, look: tuple[str, str, str]) -> None:
    colour, form, text = look
    at, share = curve(measured, f"correlation_{axis}")[1], np.array(curve(measured, name)[1])
    error = [share - curve(measured, f"{name}_low")[1], np.array(curve(measured, f"{name}_high")[1]) - share]
    axes.errorbar(at, share, np.clip(error, 0, None), fmt=form, color=colour, markersize=3, linewidth=1, label=text)


def mechanism(measured: pd.DataFrame, _published: pd.DataFrame) -> Figure:
    """Draw the mean gain over the stall share, by tenths of the jobs, with both rank correlations."""
    figure, (axes,) = style.panels()
    axes.axhline(0, color=style.GREY, linewidth=0.8)
    axes.plot(*curve(measured, "gain_by_stall"), "o-", color=style.BLUE, markersize=4)
    words = {"rank_stall": "with stall share", "rank_capped_given_stall": "with power limit,\nat equal stall share"}
    text = "\n".join(f"{number(measured, name):+.2f} {what}" for name, what in words.items())
    axes.text(0.97, 0.95, f"rank correlation\n{text}", transform=axes.transAxes, ha="right", va="top", fontsize=7)
    style.percent(axes, decimals=1)
    style.label(axes, "memory-stall share of the job, alone", "change of instructions per second")
    return figure
