"""WSMeter, Figures 1 to 3: jobs gain and lose, and no single instance or machine shows it."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.criteria import curve, measures, number, numbers, rows, statistic
from analysis.figures.wsmeter.changes import NORMAL_95, job_changes, machine_change, machine_cv, share_interval
from analysis.figures.wsmeter.draws import Halves
from analysis.statistics import Statistic
from analysis.wsmeter.summaries import machine_values
from models.arrays import Floats

CLEAR_SE = 3.0
"""Standard errors from which a job's change counts as clear: 0.25% of unchanged jobs exceed them on either side."""


def measure_fig1(halves: Halves) -> pd.DataFrame:
    """Return the jobs' changes over their rank as a share, in falling order, and the shares of jobs that gain and lose.

    Shares have 95% intervals over jobs.
    """
    jobs = job_changes(halves.current, halves.new)
    change = np.sort(jobs["change"].to_numpy())[::-1]
    many = jobs[(jobs["instances_current"] >= 20) & (jobs["instances_new"] >= 20)]
    z = many["change"] / many["error"]
    return measures(
        rows("change", (np.arange(len(change)) + 0.5) / max(1, len(change)), change),
        jobs=len(change),
        share_gaining=share_interval((change > 0).sum(), len(change)),
        share_losing=float(np.mean(change < 0)) if len(change) else np.nan,
        share_clear_gains=share_interval((z > CLEAR_SE).sum(), len(many)),
        share_clear_losses=share_interval((z < -CLEAR_SE).sum(), len(many)),
    )


def fig1(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw the jobs' changes in falling order, pies of the jobs that gain and lose, and how many clearly do.

    A change is clear beyond `CLEAR_SE` standard errors; the rest of the third pie may be noise.
    """
    figure, (axes, pies) = style.panels(columns=2, height_inches=2.4, widths=(1.4, 1.0))
    rank, change = (np.asarray(side) for side in curve(measured, "change"))
    axes.fill_between(rank, change, where=change > 0, color=style.BLUE, linewidth=0)
    axes.fill_between(rank, change, where=change < 0, color=style.ORANGE, linewidth=0)
    style.published_line(axes, number(published, "share_gaining"), "x", "published split")
    limit = 1.05 * float(np.max(np.abs(change), initial=0.01))
    axes.set(xlim=(0.0, 1.0), ylim=(-limit, limit))
    style.percent(axes, "x")
    style.percent(axes)
    jobs = f"{number(measured, 'jobs'):,.0f}; published {number(published, 'jobs'):,.0f}+"
    style.label(axes, f"jobs in order of change ({jobs})", "change of IPC")
    style.legend(axes, above=True)
    for place, (name, table) in enumerate({"measured": measured, "published": published}.items()):
        _pie(pies, 2.4 * place, name, table)
    _clear(pies, measured)
    pies.set_xlim(-1.3, 3.7)
    pies.set_ylim(-4.5, 1.6)
    pies.set_axis_off()
    return figure


def _pie(axes: Axes, place: float, name: str, table: pd.DataFrame) -> None:
    """Draw the shares of jobs that gain and lose; printed ones are hatched."""
    shares = [number(table, f"share_{side}") for side in ("gaining", "losing")]
    wedges, _ = axes.pie(
        shares, colors=[style.BLUE, style.ORANGE], center=(place, 0.0), startangle=90, counterclock=False
    )[:2]
    for wedge, side, share, at in zip(wedges, ("gain", "lose"), shares, (0.5, -0.5), strict=True):
        wedge.set(edgecolor="white" if name == "measured" else style.INK, linewidth=0.6, label=f"_{name}")
        if name == "published":
            wedge.set(facecolor="white", hatch="/////")
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
        text: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": style.LEAST_POINTS, "bbox": box}
        axes.text(place + at, 0.0, f"{share:.0%}\n{side}", **text)
    axes.text(place, 1.25, name, ha="center", fontsize=style.FONT_POINTS)


def _clear(axes: Axes, measured: pd.DataFrame) -> None:
    """Draw the shares of jobs that gain and lose beyond noise, and the rest, of jobs with instances enough to tell."""
    clear = [statistic(measured, f"share_clear_{side}") for side in ("gains", "losses")]
    if not np.isfinite([share.value for share in clear]).all():
        return
    shares = [clear[0].value, clear[1].value, max(0.0, 1.0 - clear[0].value - clear[1].value)]
    look: dict[str, Any] = {"startangle": 90, "counterclock": False, "radius": 1.0, "center": (0.0, -3.1)}
    wedges, _ = axes.pie(shares, colors=[style.BLUE, style.ORANGE, "#d9d9d9"], **look)[:2]
    for wedge in wedges:
        wedge.set(edgecolor="white", linewidth=0.6, label="_clear")
    lines = [
        f"{share.value:.1%} {side}\n({share.low:.1%} to {share.high:.1%})"
        for side, share in zip(("gain", "lose"), clear, strict=True)
    ]
    rest = f"{shares[2]:.0%} may be noise"
    text: dict[str, Any] = {"va": "center", "fontsize": style.LEAST_POINTS}
    axes.text(1.25, -3.1, "\n".join([*lines, rest]), ha="left", **text)
    words = f"beyond {CLEAR_SE:g} standard errors (20+ instances)"
    axes.text(1.2, -1.75, words, ha="center", fontsize=style.FONT_POINTS)


def measure_fig2(halves: Halves, min_instances: int = 200) -> pd.DataFrame:
    """Return the histograms of the heaviest clearly gaining and the heaviest clearly losing job.

    Clear is a mean change of more than three standard errors. Nothing is measured on a side without such a job.
    `current_gaining`, `new_gaining`, … are shares of instances over their performance.
    """
    jobs = job_changes(halves.current, halves.new, min_instances=2)
    jobs = jobs[jobs["instances_current"] + jobs["instances_new"] >= min_instances]
    z = jobs["change"] / jobs["error"]
    parts = [numbers()]
    for side, clear in (("gaining", z > CLEAR_SE), ("losing", z < -CLEAR_SE)):
        for job in jobs[clear].nlargest(1, "weight").to_dict("records"):
            parts += _one_job(side, pd.Series(job), halves)
    return pd.concat(parts, ignore_index=True)


def _one_job(side: str, job: pd.Series, halves: Halves) -> list[pd.DataFrame]:
    values = {name: table.loc[table["job"] == job["job"], "value"] for name, table in _named(halves)}
    either = 1 / np.sqrt(1 / job["instances_current"] + 1 / job["instances_new"])
    singles = {
        "instances": job["instances_current"] + job["instances_new"],
        "change": Statistic.around(job["change"], CLEAR_SE * job["error"]),
        "shift": Statistic.around(abs(job["shift"]), NORMAL_95 / either),
    }
    single = numbers(**{f"{name}_{side}": value for name, value in singles.items()})
    return [single, *histograms({f"{name}_{side}": v.to_numpy() for name, v in values.items()})]


def _named(halves: Halves) -> list[tuple[str, pd.DataFrame]]:
    return [("current", halves.current), ("new", halves.new)]


def histograms(values: dict[str, Floats], bins: int = 30) -> list[pd.DataFrame]:
    """Return histograms over common bins: shares of the observations at the middles of the bins."""
    every = np.concatenate(list(values.values()))
    low, high = np.quantile(every, [0.002, 0.998]) if len(every) > 500 else (every.min(), every.max())
    edges = np.linspace(low, high if high > low else low + 1.0, bins + 1)
    counted = {name: np.histogram(np.clip(v, edges[0], edges[-1]), edges)[0] / len(v) for name, v in values.items()}
    return [rows(name, (edges[1:] + edges[:-1]) / 2, share) for name, share in counted.items()]


def fig2(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw both jobs' histograms on the current and on the new WSC, with the printed change of the mean."""
    sides = {"gaining": "(a) gains", "losing": "(b) loses"}
    drawn = [side for side in sides if curve(measured, f"current_{side}")[0]]
    figure, axes = style.panels(columns=max(1, len(drawn)), height_inches=2.7)
    for panel, side in zip(axes, drawn, strict=False):
        paper = number(published, f"change_{side}")
        _two_histograms(panel, measured, paper, f"_{side}")
        change = statistic(measured, f"change_{side}")
        ours = f"IPC {change.value:+.1%}, {change.low:+.1%} to {change.high:+.1%}"
        title = (
            f"{sides[side]}: {ours}\npublished {paper:+.1%}, {number(published, f'instances_{side}'):.0f}+ instances"
        )
        style.label(panel, "IPC of an instance\n(end bins hold all beyond)", "share of instances", style.minus(title))
        style.percent(panel)
    if len(drawn) < len(sides):
        _say_lacking(axes[0], published, {side: title for side, title in sides.items() if side not in drawn})
    if not drawn:
        axes[0].set_axis_off()
    style.shared_legend(figure, columns=3 if len(drawn) > 1 else 2)
    return figure


def _say_lacking(axes: Axes, published: pd.DataFrame, sides: dict[str, str]) -> None:
    """Add to the title the sides of Figure 2 of which there is no job here, and what the paper prints of them."""
    lines = [axes.get_title()]
    for side, title in sides.items():
        least, paper = number(published, f"instances_{side}"), number(published, f"change_{side}")
        lines.append(style.minus(f"{title}: no job of {least:.0f}+ instances clearly\npublished {paper:+.1%}"))
    axes.set_title("\n".join(lines).strip(), fontsize=style.FONT_POINTS)


def _two_histograms(axes: Axes, measured: pd.DataFrame, paper: float, suffix: str = "") -> None:
    """Draw current and new with their means, and where the new mean would be by the printed change."""
    for name, colour in (("current", style.ORANGE), ("new", style.BLUE)):
        x, share = curve(measured, f"{name}{suffix}")
        if x:
            mean = float(np.average(x, weights=share))
            axes.step(x, share, where="mid", color=colour, linewidth=1.2, label=f"{name} WSC")
            axes.fill_between(x, share, step="mid", color=colour, alpha=0.18, linewidth=0)
            axes.axvline(mean, color=colour, linestyle="--", linewidth=0.8, label=f"mean of the {name} WSC")
            if name == "current":
                style.published_line(axes, mean * (1 + paper), "x", "published change of the mean")
            style.from_zero(axes)


def measure_fig3(halves: Halves) -> pd.DataFrame:
    """Return the histograms of the machines of both halves, their spread and the change of their mean.

    `current` and `new` are shares of machines over their performance; change, cv and shift (of the mean, in standard
    deviations) have 95% intervals.
    """
    mean, error = machine_change(halves.current, halves.new)
    change, cv = Statistic.around(mean, NORMAL_95 * error), machine_cv(halves.current)
    values = {name: machine_values(table)["value"].to_numpy() for name, table in _named(halves)}
    return measures(
        *histograms(values),
        change=change,
        cv=cv,
        shift=abs(mean) / cv.value,
        shift_high=max(abs(change.low), abs(change.high)) / cv.low,
    )


def fig3(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw the machines' histograms on the current and on the new WSC, with the printed change of the mean.

    The title has both numbers that the paper prints beside ours and their 95% intervals.
    """
    figure, (axes,) = style.panels(height_inches=2.6)
    change, cv = (statistic(measured, name) for name in ("change", "cv"))
    paper = number(published, "change")
    _two_histograms(axes, measured, paper)
    title = (
        f"IPC {change.value:+.1%}, {change.low:+.1%} to {change.high:+.1%} (published {paper:+.1%})\n"
        f"σ {cv.value:.1%}, {cv.low:.1%} to {cv.high:.1%} (published {number(published, 'cv'):.0%})"
    )
    style.label(axes, "IPC of a machine\n(end bins hold all beyond)", "share of machines", style.minus(title))
    style.percent(axes)
    style.shared_legend(figure, columns=2)
    return figure
