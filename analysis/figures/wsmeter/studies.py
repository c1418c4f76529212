"""WSMeter, Figures 17 to 19: what test clusters say about a CPU upgrade and a DVFS policy.

Figures are measured over `draws` test clusters of each of `sizes` machines from the half with the feature.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.criteria import band, curve, error_bars, measures, number, numbers, rows, statistic
from analysis.figures.spread import world_bars
from analysis.figures.wsmeter.changes import NORMAL_95, machine_change, machine_cv, share_interval
from analysis.figures.wsmeter.draws import Halves, adjusted_draws, cluster_draws, mean_of, of, share_of, worst_step
from analysis.statistics import UNKNOWN, Statistic, student_quantile
from analysis.wsmeter.estimators import Baseline
from analysis.wsmeter.summaries import job_statistics, quota_shares

STUDENT = "baseline-student"
"""The baseline with the quantile of Student's t for its machines, where it takes two standard errors."""
EXAMPLES = 3
"""Single draws shown at each size, as in the paper."""
SHARES = {
    "includes_new": (style.GREEN, "o", "include new"),
    "includes_new_widened": (style.SKY, "^", "include, widened"),
    "includes_new_adjusted": (style.RED, "v", "include, adjusted"),
    "includes_new_student": (style.SKY, "v", "include, Student's t"),
    "excludes_current": (style.ORANGE, "s", "exclude current"),
}
"""How the shares of draws are drawn, and their names."""


def measure_fig17(halves: Halves, sizes: tuple[int, ...] = (25, 50, 100), draws: int = 500) -> pd.DataFrame:
    """Return what the machine-granularity baseline says about the feature.

    Per size (x) the mean margin, the shares of draws that include the new and exclude the current performance with 95%
    Wilson intervals, three example draws; the machines' spread; the reference; draws, the fewest of any size. Beside
    them the shares that include the new performance with the margin of Student's t, n − 1 degrees of freedom.
    """
    table = _with_student(cluster_draws(halves, sizes, draws=draws))
    done = [size for size in sizes if len(of(table, "baseline", size))]
    excludes = {size: share_of(table, "baseline", "excludes", size) for size in done}
    return measures(
        *_by_size(table, "baseline", done),
        _shares_by_size("includes_new_student", table, STUDENT, "includes", done),
        cv=machine_cv(halves.current),
        change_reference=float(of(table, "baseline")["reference"].iloc[0]),
        includes_new_high_min=min(share_of(table, "baseline", "includes", size).high for size in done),
        includes_new_student_high_min=min(share_of(table, STUDENT, "includes", size).high for size in done),
        **{f"excludes_current_high_{size}": share.high for size, share in excludes.items()},
        **{f"excludes_current_low_{size}": share.low for size, share in excludes.items()},
        draws=_fewest(table, "baseline"),
    )


def _with_student(table: pd.DataFrame) -> pd.DataFrame:
    """Add the baseline's draws with the quantile of Student's t where it takes two standard errors."""
    baseline = of(table, "baseline")
    margin = baseline["margin"] * student_quantile(0.975, baseline["machines"].to_numpy() - 1) / Baseline().t
    includes = (baseline["change"] - baseline["reference"]).abs() <= margin
    return pd.concat([table, baseline.assign(estimator=STUDENT, margin=margin, includes=includes)])


def _by_size(table: pd.DataFrame, estimator: str, sizes: list[int]) -> list[pd.DataFrame]:
    """Return the curves over cluster size that Figures 17 to 19 draw."""
    parts = [
        rows(name, sizes, [mean_of(table, estimator, size, name).value for size in sizes])
        for name in ("margin", "quota_coverage")
    ]
    parts.append(_shares_by_size("includes_new", table, estimator, "includes", sizes))
    parts.append(_shares_by_size("excludes_current", table, estimator, "excludes", sizes))
    for example in range(EXAMPLES):
        for column in ("change", "margin", "reference"):
            shown = [of(table, estimator, size)[column].iloc[example : example + 1] for size in sizes]
            parts.append(rows(f"example{example}_{column}", sizes, [v.item() if len(v) else np.nan for v in shown]))
    return parts


def _shares_by_size(name: str, table: pd.DataFrame, estimator: str, column: str, sizes: list[int]) -> pd.DataFrame:
    """Return the curve of a share of draws over cluster size, and those of the ends of its intervals."""
    return band(name, sizes, [share_of(table, estimator, column, size) for size in sizes])


def _fewest(table: pd.DataFrame, estimator: str) -> float:
    """Return the draws of the size that has fewest estimates of this estimator."""
    sizes = table["machines"].unique()
    return float(min(len(of(table, estimator, size)) for size in sizes))


def pool_fig17(worlds: Sequence[pd.DataFrame]) -> dict[str, float]:
    """Return the rates of Figure 17 that all draws of all worlds give together."""
    sizes, _ = curve(worlds[0], "includes_new")
    excludes = {size: _together(worlds, "excludes_current", [size]) for size in sizes}
    return {
        **{
            f"{name}_high_min": min(_together(worlds, name, [size]).high for size in sizes)
            for name in ("includes_new", "includes_new_student")
        },
        **{f"excludes_current_high_{size:.0f}": share.high for size, share in excludes.items()},
        **{f"excludes_current_low_{size:.0f}": share.low for size, share in excludes.items()},
    }


def pool_fig18(worlds: Sequence[pd.DataFrame]) -> dict[str, float]:
    """Return the rates of Figure 18 that all draws of all worlds give together."""
    sizes, _ = curve(worlds[0], "includes_new")
    includes, widened = (_together(worlds, name, sizes) for name in ("includes_new", "includes_new_widened"))
    return {
        "excludes_current_low_min": min(_together(worlds, "excludes_current", [size]).low for size in sizes),
        "includes_new_low": includes.low,
        "includes_new_high": includes.high,
        "includes_new_widened_high": widened.high,
        "includes_new_adjusted": _together(worlds, "includes_new_adjusted", sizes, "draws_adjusted").value,
    }


def pool_fig19(worlds: Sequence[pd.DataFrame]) -> dict[str, float]:
    """Return the rates of Figure 19 that all draws of all worlds give together."""
    sizes, _ = curve(worlds[0], "includes_new")
    return {f"excludes_current_low_{size:.0f}": _together(worlds, "excludes_current", [size]).low for size in sizes}


def _together(worlds: Sequence[pd.DataFrame], series: str, sizes: Sequence[float], count: str = "draws") -> Statistic:
    """Return the share of the draws of some sizes of all worlds, with its 95% interval; sizes have equal draws."""
    shares = [number(world, series, size) for world in worlds for size in sizes]
    draws = sum(number(world, count) for world in worlds) * len(sizes)
    return share_interval(round(float(np.mean(shares)) * draws), round(draws)) if np.isfinite(draws) else UNKNOWN


def measure_fig18(halves: Halves, sizes: tuple[int, ...] = (25, 50), draws: int = 500, ours: int = 200) -> pd.DataFrame:
    """Return what WSMeter says about the CPU upgrade.

    As of `measure_fig17`, with coverage of the quota, the changes over the covered and over all jobs, and the share of
    draws that include the new performance after widening by 20%, at each size too; beside them those of `adjusted`,
    whose margin has what jobs on a machine have in common, about the change over all jobs, in the first `ours` draws.
    """
    table = cluster_draws(halves, sizes, draws=draws)
    done = [size for size in sizes if len(of(table, "wsmeter", size))]
    whole = _whole_changes(halves)
    adjusted = adjusted_draws(halves, tuple(done), whole["change_all"], draws=min(draws, ours))
    coverage = [mean_of(table, "wsmeter", size, "quota_coverage").low for size in done]
    excludes = [share_of(table, "wsmeter", "excludes", size).low for size in done]
    return measures(
        *_wsmeter(table, done),
        numbers(includes_new_adjusted=share_of(adjusted, "adjusted", "includes")),
        rows("margin_adjusted", done, [mean_of(adjusted, "adjusted", size, "margin").value for size in done]),
        _shares_by_size("includes_new_adjusted", adjusted, "adjusted", "includes", done),
        **_changes(table, whole),
        draws_adjusted=min(draws, ours),
        excludes_current_low_min=min(excludes, default=np.nan),
        quota_coverage_low_min=min(coverage, default=np.nan),
        draws=_fewest(table, "wsmeter"),
    )


def inclusion_by_estimator(measured: pd.DataFrame) -> pd.DataFrame:
    """Return how often intervals of each estimator hold the change, and how wide they are, a row a size.

    Parameters
    ----------
    measured : as of `measure_fig18`
    """
    sizes, _ = curve(measured, "includes_new")
    estimators = {"published": "", "widened": "_widened", "adjusted": "_adjusted"}
    return pd.DataFrame(
        [
            {"machines": f"{size:.0f}"}
            | {name: f"{number(measured, f'includes_new{end}', size):.1%}" for name, end in estimators.items()}
            | {f"± {name}": f"{number(measured, f'margin{end}', size):.2%}" for name, end in estimators.items()}
            for size in sizes
        ]
    )


def _wsmeter(table: pd.DataFrame, sizes: list[int]) -> list[pd.DataFrame]:
    """Return what Figures 18 and 19 say of WSMeter, with the published margins and with those widened by 20%."""
    inclusion = {
        "includes_new": share_of(table, "wsmeter", "includes"),
        "includes_new_widened": share_of(table, "wsmeter-widened", "includes"),
    }
    highs = {f"margin_{size}_high": mean_of(table, "wsmeter", size, "margin").high for size in sizes}
    margins = [mean_of(table, "wsmeter-widened", size, "margin").value for size in sizes]
    return [
        numbers(**inclusion, **highs),
        rows("margin_widened", sizes, margins),
        _shares_by_size("includes_new_widened", table, "wsmeter-widened", "includes", sizes),
        *_by_size(table, "wsmeter", sizes),
    ]


def _changes(table: pd.DataFrame, whole: dict[str, float]) -> dict[str, float]:
    """Return the changes over covered jobs (mean over draws), over all jobs seen in both halves, and of machines."""
    covered = float(of(table, "wsmeter")["reference"].mean())
    return {"change_covered": covered, **whole}


def _whole_changes(halves: Halves) -> dict[str, float]:
    before, after = (job_statistics(side) for side in (halves.current, halves.new))
    both = before.merge(after, on="job", suffixes=("_current", "_new"))
    share = np.nan_to_num(quota_shares(halves.jobs, pd.Index(both["job"])))
    everything = float(share @ both["mean_new"].to_numpy() / (share @ both["mean_current"].to_numpy()) - 1)
    machines, error = machine_change(halves.current, halves.new)
    return {
        "change_all": everything,
        "change_all_abs": abs(everything),
        "change_machines": machines,
        "change_machines_error": error,
    }


def changes(halves: Halves) -> pd.DataFrame:
    """Return the changes over all jobs seen in both halves and of the mean machine, as Figure 19 names them."""
    return numbers(**_whole_changes(halves))


def measure_fig19(halves: Halves, sizes: tuple[int, ...] = (100, 200, 400), draws: int = 300) -> pd.DataFrame:
    """Return what WSMeter says about the DVFS policy, and how many machines the baseline would need.

    As of `measure_fig18`; baseline_machines make its margin half of the change between the halves (footnote 6 of the
    paper), baseline_machines_low with the upper 95% end of that change.
    """
    table = cluster_draws(halves, sizes, draws=draws)
    done = [size for size in sizes if len(of(table, "wsmeter", size))]
    found, cv = _changes(table, _whole_changes(halves)), machine_cv(halves.current).value
    upper = abs(found["change_machines"]) + NORMAL_95 * found["change_machines_error"]
    return measures(
        *_wsmeter(table, done),
        **found,
        **{f"excludes_current_low_{size}": share_of(table, "wsmeter", "excludes", size).low for size in done},
        **{f"quota_coverage_{size}_low": mean_of(table, "wsmeter", size, "quota_coverage").low for size in done},
        margin_fall_low=worst_step(table, "wsmeter", "margin", -1),
        draws=_fewest(table, "wsmeter"),
        baseline_machines=(2 * cv / (found["change_machines"] / 2)) ** 2,
        baseline_machines_low=(2 * cv / (upper / 2)) ** 2,
    )


def fig17(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw example estimates of the baseline per cluster size, and how many draws include and exclude."""
    return _study(measured, published, "change_reference", "margin", "change of IPC per core")


def fig18(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw example estimates of WSMeter per cluster size, and how many draws include and exclude."""
    return _study(measured, published, "change_covered", "margin", "change of IPC")


fig19 = fig18


def _study(measured: pd.DataFrame, published: pd.DataFrame, change: str, margin: str, name: str) -> Figure:
    """Draw (a) three estimates of each size beside the printed one, and (b) shares of all draws.

    Parameters
    ----------
    measured, published : series, x, value
    change, margin : the printed change, and the printed margins over the size
    name : of the vertical axis
    """
    figure, (examples, draws) = style.panels(columns=2, height_inches=2.5)
    sizes, _ = curve(measured, "margin")
    places = np.arange(len(sizes), dtype=float)
    for example in range(EXAMPLES):
        at = places + 0.2 * (example - (EXAMPLES - 1) / 2) - 0.1
        estimate, half, reference = (
            curve(measured, f"example{example}_{column}")[1] for column in ("change", "margin", "reference")
        )
        look: dict[str, Any] = {"color": style.BLUE, "markersize": 3, "capsize": 2, "linewidth": 1}
        first = not example
        examples.errorbar(at, estimate, half, fmt="o", label="estimate (95%)" if first else "", **look)
        examples.plot(at, reference, "_", color=style.RED, markersize=9, label="reference" if first else "")
    printed = [number(published, margin, size) for size in sizes]
    known = np.isfinite(printed)
    paper = np.full(int(known.sum()), number(published, change))
    style.published_interval(examples, places[known] + 0.28, paper, np.asarray(printed)[known])
    wider = np.array([number(published, f"{margin}_widened", size) for size in sizes])
    if np.isfinite(wider).any():
        style.published_interval(examples, places + 0.4, np.full(len(sizes), paper[0]), wider, "published, widened")
    examples.axhline(0, color=style.GREY, linewidth=0.8, label="current performance")
    style.percent(examples)
    style.label(examples, "machines (three draws of each size)", name, "(a) examples")
    _inclusion(draws, measured, published)
    _also_printed(examples, measured, published, {"change_all": "all jobs", "change_machines": "machines", "cv": "σ"})
    _also_printed(draws, measured, published, {"baseline_machines": "baseline machines"})
    for panel in (examples, draws):
        panel.set_xticks(places, [f"{size:.0f}" for size in sizes])
        panel.set_xlim(-0.5, len(sizes) - 0.5)
    style.shared_legend(figure, columns=4)
    return figure


def _also_printed(axes: Axes, measured: pd.DataFrame, published: pd.DataFrame, names: dict[str, str]) -> None:
    """Add to a panel's title the single numbers that the paper prints too, ours beside them."""
    printed = {name: words for name, words in names.items() if np.isfinite(number(published, name))}
    for name, words in printed.items():
        ours, paper = statistic(measured, name), number(published, name)
        form = "{:,.0f}" if paper > 1 else "{:.1%}"
        known = np.isfinite([ours.low, ours.high]).all()
        among = f", {form.format(ours.low)} to {form.format(ours.high)}" if known else ""
        line = f"{words} {form.format(ours.value)}{among} (published {form.format(paper)})"
        axes.set_title(f"{axes.get_title()}\n{line}", fontsize=style.FONT_POINTS)


def _inclusion(axes: Axes, measured: pd.DataFrame, published: pd.DataFrame) -> None:
    """Draw the shares of draws over cluster size with their intervals; widened ones where they were measured.

    Printed shares are drawn in the colours of ours, those of all sizes together beside every size.
    """
    for shift, (name, (colour, marker, text)) in zip((-0.27, -0.14, -0.01, 0.12, -0.14), SHARES.items(), strict=True):
        sizes, share, error = error_bars(measured, name)
        if not sizes:
            continue
        at = np.arange(len(sizes)) + shift
        look: dict[str, Any] = {"color": colour, "markersize": 3.5, "capsize": 2, "linewidth": 1, "label": text}
        axes.errorbar(at, share, error, fmt=marker, **look)
        world_bars(axes, at + 0.04, measured, name)
        paper = number(published, name)
        if np.isfinite(paper):
            style.published_points(axes, at, [paper] * len(at), colour, name="")
    sizes, coverage = curve(measured, "quota_coverage")
    paper_at, paper_coverage = curve(published, "quota_coverage")
    if paper_at:
        place = dict(zip(sizes, np.arange(len(sizes)) + 0.24, strict=True))
        axes.plot([*place.values()], coverage, "P", color=style.PURPLE, markersize=4, label="quota covered")
        known = [(place[size], value) for size, value in zip(paper_at, paper_coverage, strict=True) if size in place]
        style.published_points(axes, [at for at, _ in known], [value for _, value in known], style.PURPLE, name="")
    axes.axhline(0.95, color=style.GREY, linestyle="--", linewidth=0.8, label="nominal 95%")
    axes.plot([], [], "D", color=style.INK, markerfacecolor="none", markersize=5.0, label="published")
    style.percent(axes, decimals=0)
    style.label(axes, "machines (all draws, 95% intervals)", "", "(b) summary")
    style.zoom_share(axes, "draws or quota" if paper_at else "share of draws", most=1.02)


def measure_baseline(cv15: float, cv13: float) -> pd.DataFrame:
    """Return the margins and sizes of the machine baseline in sections 6.3 and 6.4, by the estimator itself.

    Margins over machines, machines over the margin (exact, and to two digits as printed), from the spread of the
    machines over their mean in case studies I and II.
    """
    target = 0.006
    sizes = {"cv15": (25, 100), "cv13": (100,)}
    spread = {"cv15": cv15, "cv13": cv13}
    margins = [rows(f"margin_{n}", at, [_margin(spread[n], size) for size in at]) for n, at in sizes.items()]
    machines = float(Baseline().plan(_machines(cv13, 2, ddof=0), None, target)["machines"].iloc[0])
    in_hundreds = rows("machines_cv13_rounded", [target], [round(machines, -2)])
    return measures(*margins, rows("machines_cv13", [target], [machines]), in_hundreds, cv15=cv15, cv13=cv13)


def _margin(cv: float, size: int) -> float:
    return Baseline().estimate(_machines(cv, 2, ddof=0), _machines(cv, size, ddof=1)).margin


def _machines(cv: float, size: int, ddof: int) -> pd.DataFrame:
    """Return as many machines whose mean is 1 and whose standard deviation is exactly `cv`."""
    spread = np.linspace(-1.0, 1.0, size)
    value = 1.0 + cv * spread / spread.std(ddof=ddof)
    return pd.DataFrame({"job": 0, "machine": np.arange(size), "weight": 1.0, "value": value})
