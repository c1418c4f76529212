"""`world/ablation` and `world/covariance`: what a mechanism moves when it is switched off, and what sharing does."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis.figures import style
from analysis.figures.criteria import band, curve, error_bars, measures, number, rows
from analysis.figures.wsmeter.changes import share_interval, student_interval
from analysis.statistics import NotEnoughDataError, normal_cdf
from analysis.wsmeter.summaries import job_statistics
from models.arrays import Floats
from models.errors import InputError

METRICS = {
    "change": "true change",
    "machine_cv": "machine σ / mean",
    "job_cv": "spread within a job",
    "slowdown": "CPI over CPI alone",
    "speed": "10⁹ instructions per CPU second",
    "margin": "WSMeter's margin",
    "coverage": "coverage of its interval",
    "moved": "change of an instance's IPC",
}
"""What an ablation is drawn in."""
ACRONYMS = {"llc": "LLC sharing", "bandwidth": "bandwidth limit", "smt": "SMT sharing", "dvfs": "DVFS"}
"""How switches are called in a drawing, where it is not their own name."""
AXES = {"rack": ("racks", style.BLUE), "machine": ("machines", style.ORANGE), "both": ("both", style.GREEN)}
"""What shares conditions, and its colour."""
SHARES = ("covered", "truth", "covered_widened", "truth_widened")


MIN_STAYS = 20
"""Stays of a job from which its spread is taken."""


def measure_ablation(fleets: pd.DataFrame) -> pd.DataFrame:
    """Return what each switch moves, as means over fleets and as the least effect in any fleet.

    A curve over the switches (in order of appearance) per metric, and single numbers named METRIC_fall_without_SWITCH,
    relative to the base.

    Parameters
    ----------
    fleets : seed, switch (the first one is the base) and the columns in `METRICS` and rack_variance_ratio
    """
    switches = fleets["switch"].drop_duplicates().tolist()
    names = [*METRICS, "rack_variance_ratio"]
    means = fleets.groupby("switch")[names].mean().loc[switches]
    change = _relative(fleets, switches)
    falls = {f"{m}_fall_without_{s}": -change[m, s].max() for s in switches[1:] for m in METRICS}
    rises = {f"{m}_rise_without_{s}": change[m, s].min() for s in switches[1:] for m in METRICS}
    off = fleets[fleets["switch"] != switches[0]]
    ratios = {f"rack_variance_ratio_without_{s}": least for s, least in _least(off, "rack_variance_ratio").items()}
    return measures(
        *(rows(m, range(len(switches)), means[m]) for m in names),
        **falls,
        **rises,
        **ratios,
        moved_min=min(_least(off, "moved").values()),
    )


def _relative(fleets: pd.DataFrame, switches: list[str]) -> pd.DataFrame:
    """Return (seeds, metrics × switches) relative changes against the base of the same fleet."""
    wide = fleets.pivot_table(index="seed", columns="switch", values=list(METRICS), dropna=False)
    base = pd.concat({s: wide.xs(switches[0], axis=1, level="switch") for s in switches}, axis=1).swaplevel(axis=1)
    return wide / base[wide.columns] - 1


def _least(fleets: pd.DataFrame, name: str) -> dict[str, float]:
    return {str(switch): float(values.min(skipna=False)) for switch, values in fleets.groupby("switch")[name]}


def ablation(measured: pd.DataFrame, switches: tuple[str, ...]) -> Figure:
    """Draw the fleet without each of its mechanisms, a panel a metric, beside the fleet that has all."""
    names = ["nothing off", *(f"no {ACRONYMS.get(name, name).replace('_', ' ')}" for name in switches[1:])]
    figure, panels = style.panels(columns=2, rows=4, height_inches=0.6 + 0.14 * len(names))
    for i, (axes, (metric, title)) in enumerate(zip(panels, METRICS.items(), strict=True)):
        value = np.array(curve(measured, metric)[1]) * (1e-9 if metric == "speed" else 1.0)
        axes.axvline(value[0], color=style.GREY, linewidth=0.8)
        axes.hlines(range(len(value)), value[0], value, color=style.BLUE, linewidth=1)
        axes.plot(value, range(len(value)), "o", color=style.BLUE, markersize=4)
        axes.set_yticks(range(len(names)), names if i % 2 == 0 else [""] * len(names))
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.margins(x=0.08)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        if metric not in {"slowdown", "speed"}:
            style.percent(axes, "x")
        style.label(axes, title, "")
    return figure


def measure_covariance(fleets: pd.DataFrame) -> pd.DataFrame:
    """Return coverage over shared conditions: means over fleets, Monte-Carlo intervals and spread between fleets.

    Curves over level, named SHARE_AXIS with _low and _high (95% Wilson interval of all draws of all fleets) and
    _between (standard deviation between fleets), and correlation_AXIS; single numbers with 95% Student intervals over
    fleets.

    Parameters
    ----------
    fleets : seed, axis, level, correlation, draws and the shares covered, truth, covered_widened, truth_widened

    Raises
    ------
    ValueError
        If the axis `both` is missing.
    """
    from scipy.stats import spearmanr

    ends = fleets[fleets["axis"] == "both"].sort_values(["level", "seed"])
    if ends.empty:
        raise InputError("axis 'both' is missing from the sweep")
    none, most = (
        ends[ends["level"] == level].set_index("seed") for level in (ends["level"].min(), ends["level"].max())
    )
    middle = fleets.groupby(["axis", "level"])[["correlation", "covered"]].mean().drop_duplicates()
    gain = fleets.assign(gain=fleets["covered_widened"] - fleets["covered"]).groupby(["axis", "level"])["gain"]
    return measures(
        *_curves(fleets),
        correlation_rise=student_interval(most["correlation"] - none["correlation"]),
        coverage_drop=student_interval(none["covered"] - most["covered"]),
        coverage_without=student_interval(none["covered"]),
        rank_correlation=spearmanr(middle["correlation"], middle["covered"]).statistic,
        widened_gain_low=min(student_interval(gains).low for _, gains in gain),
        **_default(ends),
    )


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
            shares = [
                share_interval((level_rows[share] * level_rows["draws"]).sum(), level_rows["draws"].sum())
                for _, level_rows in by_level
            ]
            parts.append(band(f"{share}_{axis}", levels, shares))
            parts.append(rows(f"{share}_{axis}_between", levels, by_level[share].std()))
    return parts


def covariance(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw coverage over the effective correlation, of the covered jobs' and of the whole fleet's change."""
    figure, panels = style.panels(columns=2, share_y=True, height_inches=2.8)
    for axes, target, title in zip(
        panels, ("covered", "truth"), ("change of the covered jobs", "change of the whole fleet"), strict=True
    ):
        for axis, (what, colour) in AXES.items():
            _coverage(axes, measured, f"{target}_{axis}", axis, (colour, "o-", what))
            _coverage(axes, measured, f"{target}_widened_{axis}", axis, (colour, "s:", f"{what}, widened by 20%"))
        _expected(axes, max(curve(measured, f"correlation_{axis}")[1][-1] for axis in AXES))
        for name, words in (("coverage_default", "published"), ("coverage_widened_default", "published, widened")):
            colour = style.INK if words == "published" else style.RED
            style.published_line(axes, number(published, name), name=words, colour=colour)
        style.percent(axes)
        style.label(axes, "effective correlation of co-located jobs", "coverage" if axes is panels[0] else "", title)
    style.shared_legend(figure)
    return figure


def _expected(axes: Axes, most: float) -> None:
    """Draw the coverage of a normal estimate whose real variance is 1 + correlation times the one it counts."""
    at = np.linspace(0.0, max(most, 0.0), 50)
    for half_width, form in ((2.0, "-"), (2.4, ":")):
        axes.plot(at, 2 * normal_cdf(half_width / np.sqrt(1 + at)) - 1, form, color=style.GREY, linewidth=0.8)
    axes.plot([], [], "-", color=style.GREY, linewidth=0.8, label="expected from the correlation")


def _coverage(axes: Axes, measured: pd.DataFrame, name: str, axis: str, look: tuple[str, str, str]) -> None:
    colour, form, text = look
    at, (_, share, error) = curve(measured, f"correlation_{axis}")[1], error_bars(measured, name)
    axes.errorbar(at, share, error, fmt=form, color=colour, markersize=3, linewidth=1, label=text)


def moved(base: pd.DataFrame, other: pd.DataFrame) -> float:
    """Return the median absolute relative change of performance of the stays (residence, value) that both have."""
    both = _paired(base, other)
    return float((both["value_other"] / both["value_base"] - 1).abs().median())


def rack_variance_ratio(base: pd.DataFrame, other: pd.DataFrame) -> float:
    """Return how much more a machine's change varies between racks than machines of one rack would make it.

    The ratio of mean squares of a one-way analysis of variance (Fisher 1925) of each machine's mean logarithm of the
    change, by rack; about 1 where racks share nothing.

    Parameters
    ----------
    base, other : columns residence, machine, rack, value

    Returns
    -------
    float
        NaN if nothing changed.

    Raises
    ------
    NotEnoughDataError
        If there are fewer than two racks, or no rack has two machines.
    """
    both = _paired(base, other)
    change = np.log(both["value_other"] / both["value_base"])
    machines = both.assign(change=change).groupby(["rack", "machine"], as_index=False)["change"].mean()
    racks = machines.groupby("rack")["change"].agg(["mean", "size"])
    spare = len(machines) - len(racks)
    if len(racks) < 2 or spare < 1:
        raise NotEnoughDataError(2, min(len(racks), 1 + spare), "racks of two machines")
    within = machines["change"] - machines["rack"].map(racks["mean"])
    between = float((racks["size"] * (racks["mean"] - machines["change"].mean()) ** 2).sum()) / (len(racks) - 1)
    left = float((within**2).sum()) / spare
    return between / left if left > 0 else float("nan")


def job_cv(measurements: pd.DataFrame) -> float:
    """Return the median over jobs of the spread between their stays over their mean; jobs of 20 stays at least.

    Parameters
    ----------
    measurements : columns job, weight, value

    Raises
    ------
    NotEnoughDataError
        If no job has so many.
    """
    jobs = job_statistics(measurements)
    many = jobs[jobs["instances"] >= MIN_STAYS]
    if many.empty:
        raise NotEnoughDataError(MIN_STAYS, int(jobs["instances"].max()) if len(jobs) else 0, "stays of one job")
    return float((many["std"] / many["mean"]).median())


def slowdown(measurements: pd.DataFrame, alone: pd.DataFrame) -> float:
    """Return the median stay's cycles per instruction over those of its job alone.

    Parameters
    ----------
    measurements : columns job, value (instructions per cycle)
    alone : columns job, cpi
    """
    reference = measurements["job"].map(alone.set_index("job")["cpi"]).to_numpy(dtype=np.float64)
    ratios: Floats = 1.0 / (measurements["value"].to_numpy(dtype=np.float64) * reference)
    return float(np.median(ratios))


def _paired(base: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    return base.merge(
        other[["residence", "value"]], on="residence", suffixes=("_base", "_other"), validate="one_to_one"
    )
