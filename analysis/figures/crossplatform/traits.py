"""Stewart et al. (2008), Figures 2 to 4, Tables 2 and 3: traits of a service, its cache misses and request mixes."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.crossplatform import traits
from analysis.figures import style
from analysis.figures.criteria import curve, measures, number, numbers, rows
from models.arrays import Floats

APPLICATIONS: Final[Mapping[str, str]] = {"rubis": "RUBiS", "stockonline": "StockOnline", "tpcw": "TPC-W"}
"""The paper's applications, and how it writes them."""
SLOPES: Final[Mapping[str, float]] = {"rubis": -0.83, "stockonline": -0.77, "tpcw": -0.89}
"""Printed slopes of log misses over log cache size (section 3.3)."""
FORMS: Final[Mapping[str, traits.Form]] = {
    "log": "logarithmic", "exponential": "exponential", "power": "power_law", "lognormal": "log_normal",
}  # fmt: skip
"""Names of Table 2's models here and in `traits`."""
METRICS: Final = ("instructions", "l1_misses", "l2_misses")
PROVISIONED: Final = ("smp_l1", "dual_core_l2", "hyperthreading_l1")
"""Columns of Table 3 before the last."""
SATURATED: Final = "saturated_l1"
FULL: Final = 0.995
"""Utilisation from which an interval counts as saturated."""


def measure_fig2(counts: pd.DataFrame, log: pd.DataFrame) -> pd.DataFrame:
    """Return requests, instructions and the ratio of the two most frequent types over the hours.

    Parameters
    ----------
    counts : start_s, type, requests
    log : start_s, instructions; of one platform

    Returns
    -------
    DataFrame
        series, x (hours), value: requests, first and second (of the two most frequent types), instructions, ratio;
        and the judged numbers. `mix_share` is what the counts by type explain of the variance of instructions beyond
        the number of requests.
    """
    by_type = counts.pivot_table(index="start_s", columns="type", values="requests", aggfunc="sum").astype(float)
    instructions = log.set_index("start_s")["instructions"].loc[by_type.index].to_numpy()
    first, second = by_type.sum().sort_values(ascending=False, kind="stable").index[:2]
    requests, hours = by_type.sum(axis=1).to_numpy(), by_type.index.to_numpy() / 3600.0
    ratio = by_type[first].to_numpy() / np.where(by_type[second] > 0, by_type[second], np.nan)
    low, high = np.quantile(requests, [0.05, 0.95])
    values = {
        "ratio_low": float(np.nanmin(ratio)),
        "ratio_high": float(np.nanmax(ratio)),
        "volume_swing": float(high / low),
        "instructions_correlation": float(np.corrcoef(requests, instructions)[0, 1]),
        "mix_share": _explained(by_type.to_numpy(), instructions) - _explained(requests[:, None], instructions),
    }
    of_types = {"first": by_type[first].to_numpy(), "second": by_type[second].to_numpy()}
    curves = {"requests": requests, **of_types, "instructions": instructions, "ratio": ratio}
    return measures(*(rows(name, hours, line) for name, line in curves.items()), **values)


def over_worlds(measured: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the curves of the first world, and the medians over worlds of the numbers.

    Parameters
    ----------
    measured : of `measure_fig2`, a world each

    Examples
    --------
    >>> summary = over_worlds([numbers(ratio_low=0.1), numbers(ratio_low=0.3)])
    >>> summary["value"].tolist()
    [0.2]
    """
    single = pd.concat([world[world["x"].isna()] for world in measured])
    middle = single.groupby("series", sort=False)["value"].median().reset_index().assign(x=np.nan)
    return pd.concat([measured[0][measured[0]["x"].notna()], middle], ignore_index=True)


def _explained(design: Floats, values: Floats) -> float:
    """Return the share of the variance that a linear model explains, its degrees of freedom taken off."""
    with_level = np.column_stack([design, np.ones(len(values))])
    left = values - with_level @ np.linalg.lstsq(with_level, values, rcond=None)[0]
    freedom = max(len(values) - np.linalg.matrix_rank(with_level), 1)
    return float(1.0 - (left @ left / freedom) / values.var(ddof=1))


def fig2(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw arrivals, the two top types and instructions over ten hours, and below them the ratio of the two types."""
    figure, (volume, ratio) = style.panels(rows=2, height_inches=2.0)
    right = style.right_axis(volume, "10⁹ instructions", style.RED)
    hours, instructions = curve(measured, "instructions")
    dots: dict[str, Any] = {"linestyle": "", "marker": ".", "markersize": 1.5}
    right.plot(hours, 1e-9 * np.asarray(instructions), color=style.RED, label="instructions (right)", **dots)
    for name, colour, text in _RATES:
        volume.plot(*curve(measured, name), color=colour, label=text, **dots)
    style.from_zero(volume)
    style.from_zero(right, headroom=0.6)
    style.label(volume, "", "requests in an interval")
    volume.tick_params(labelbottom=False)
    low, high = (number(published, f"ratio_{end}") for end in ("low", "high"))
    style.published_line(ratio, low, name=f"published range, {low:g} to {high:g}")
    style.published_line(ratio, high, name="")
    ratio.plot(*curve(measured, "ratio"), color=style.BLUE, label="_measured", **dots)
    style.plain_log(ratio)
    style.label(ratio, "time (h)", "most popular type\nover the second")
    for panel in (volume, ratio):
        panel.set_xlim(0.0, max(hours))
    style.shared_legend(figure, columns=2)
    style.enlarge(figure.legends[0])
    return figure


_RATES: Final = (
    ("requests", style.BLUE, "request arrivals"),
    ("first", style.GREEN, "most popular type"),
    ("second", style.ORANGE, "2nd most popular type"),
)
"""What is counted in an interval, and how the paper calls it."""


def measure_fig3(curves: pd.DataFrame) -> pd.DataFrame:
    """Return each application's misses over cache size, its power law's slope and its largest residual.

    Parameters
    ----------
    curves : application, seed, size_bytes, misses_per_instruction; one world a seed

    Returns
    -------
    DataFrame
        series, x (bytes), value: misses and fit of the first world; medians over worlds as numbers.
    """
    values, parts = dict[str, float](), []
    for application, worlds in curves.groupby("application", sort=False):
        fits = {seed: _fitted("power_law", world) for seed, world in worlds.groupby("seed", sort=False)}
        values[f"slope_{application}"] = float(np.median([float(fit.exponent) for fit, _ in fits.values()]))
        values[f"largest_residual_{application}"] = float(np.median([left.max() for _, left in fits.values()]))
        first = worlds[worlds["seed"] == worlds["seed"].iloc[0]]
        size = first["size_bytes"].to_numpy()
        parts.append(rows(f"misses_{application}", size, first["misses_per_instruction"]))
        parts.append(rows(f"fit_{application}", size, next(iter(fits.values()))[0](size)))
    residuals = [value for name, value in values.items() if name.startswith("largest")]
    distance = [abs(values[f"slope_{name}"] - slope) for name, slope in SLOPES.items() if f"slope_{name}" in values]
    judged = {
        "slope_error": max(distance),
        "largest_residual_max": max(residuals),
        "largest_residual_min": min(residuals),
    }
    return measures(*parts, **values, **judged)


def _fitted(form: traits.Form, world: pd.DataFrame) -> tuple[traits.MissModel, Floats]:
    """Return a model of misses over size and its normalised residuals."""
    size, misses = world["size_bytes"].to_numpy(), world["misses_per_instruction"].to_numpy()
    model = traits.fit(size, misses, form)
    return model, traits.normalised_residuals(misses, model(size))


def fig3(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw misses per 10,000 instructions over cache size in logs, the power law through them and the printed slope."""
    figure, axes = style.panels(columns=3, share_y=True, height_inches=2.1)
    for panel, (application, name) in zip(axes, APPLICATIONS.items(), strict=True):
        size, misses = (np.asarray(side) for side in curve(measured, f"misses_{application}"))
        _, fit = (np.asarray(side) for side in curve(measured, f"fit_{application}"))
        slope, paper = (number(table, f"slope_{application}") for table in (measured, published))
        middle = np.exp(np.log(size).mean()), np.exp(np.log(fit).mean())
        panel.loglog(size / 1024, 1e4 * misses, "o", base=2, markersize=3, color=style.BLUE, label="a cache")
        panel.loglog(size / 1024, 1e4 * fit, "-", base=2, linewidth=1.2, color=style.ORANGE, label="power law")
        printed = 1e4 * middle[1] * (size / middle[0]) ** paper
        panel.loglog(size / 1024, printed, ":", base=2, color=style.INK, linewidth=1.4, label="published slope")
        panel.set_xticks([16, 256, 16384], ["16", "256", "16384"])
        panel.minorticks_off()
        left, printed_left = (number(table, f"largest_residual_{application}") for table in (measured, published))
        words = f"{name}: slope −{-slope:.2f} (published −{-paper:.2f})\n"
        words += f"largest residual {left:.2f} (published {printed_left:.2f})"
        style.label(panel, "cache size (KB)", "misses per 10k instructions" if panel is axes[0] else "", words)
    style.shared_legend(figure)
    return figure


def measure_table2(curves: pd.DataFrame) -> pd.DataFrame:
    """Return lowest, median and highest normalised residual of four models of misses over cache size.

    A number for each model, quantile and application, the median over worlds.

    Parameters
    ----------
    curves : as for `measure_fig3`
    """
    values = dict[str, float]()
    for application, worlds in curves.groupby("application", sort=False):
        for name, form in FORMS.items():
            left = np.array([_fitted(form, world)[1] for _, world in worlds.groupby("seed", sort=False)])
            spread = np.median([left.min(axis=1), np.median(left, axis=1), left.max(axis=1)], axis=1)
            for quantile, value in zip(("lowest", "median", "highest"), spread, strict=True):
                values[f"{name}_{quantile}_{application}"] = float(value)
    median = {name: [v for key, v in values.items() if key.startswith(f"{name}_median")] for name in FORMS}
    judged = {
        "power_over_log": max(np.divide(median["power"], median["log"])),
        "power_over_exponential": max(np.divide(median["power"], median["exponential"])),
        "lognormal_gain": max(np.subtract(median["power"], median["lognormal"])),
    }
    return numbers(**values, **judged)


def measure_fig4(mixes: pd.DataFrame) -> pd.DataFrame:
    """Return the 90th percentile of the request-mix model's error, and its predictions beside what was counted.

    Parameters
    ----------
    mixes : seed, metric (of `METRICS`), actual, predicted; an interval of the second half a row

    Returns
    -------
    DataFrame
        series, x (actual), value (predicted) of the first world; percentiles, the median over worlds, as numbers.
    """
    error = (mixes["predicted"] - mixes["actual"]).abs() / mixes["actual"]
    by_world = error.groupby([mixes["metric"], mixes["seed"]]).quantile(0.9)
    p90 = {metric: float(by_world[metric].median()) for metric in METRICS}
    first = mixes[mixes["seed"] == mixes["seed"].iloc[0]]
    parts = [
        rows(name, metric_rows["actual"], metric_rows["predicted"])
        for name, metric_rows in first.groupby("metric", sort=False)
    ]
    named = {f"{metric}_p90": value for metric, value in p90.items()}
    return measures(*parts, **named, p90_min=min(p90.values()))


def fig4(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw predicted over counted instructions and misses in logs, with the printed lines at 15%."""
    figure, (axes,) = style.panels(height_inches=3.2)
    names = {"instructions": "instructions", "l1_misses": "L1 misses", "l2_misses": "L2 misses"}
    for (metric, name), color, marker in zip(names.items(), style.CYCLE, style.MARKERS, strict=False):
        ours, paper = (number(table, f"{metric}_p90") for table in (measured, published))
        text = f"{name}: 90% within {ours:.2f} (published {paper:.2f})"
        axes.loglog(*curve(measured, metric), marker, markersize=1.5, color=color, label=text)
    ends = np.array([*axes.dataLim.intervalx])
    for factor in (0.85, 1.15):
        label = "published lines, y = 1.15x and 0.85x" if factor > 1 else "_published"
        axes.plot(ends, factor * ends, ":", color=style.INK, linewidth=1.0, label=label)
    style.label(axes, "actual, in an interval", "prediction by the request mix")
    style.shared_legend(figure, columns=1)
    style.enlarge(figure.legends[0])
    return figure


def measure_table3(errors: pd.DataFrame) -> pd.DataFrame:
    """Return the median error of request-mix models of misses on four kinds of machine.

    A number for each condition and application, the median over worlds, and the judged ones.

    Parameters
    ----------
    errors : application, condition (of `PROVISIONED` or `SATURATED`), seed, error (median over the intervals of the
        second half), full (share of intervals with the processors all busy)
    """
    median = errors.pivot_table(index="condition", columns="application", values="error", aggfunc="median", sort=False)
    values = {f"{name}_{app}": float(median.loc[name, app]) for name in median.index for app in median.columns}
    worst = median.loc[list(PROVISIONED)].max()
    return numbers(
        **values,
        provisioned_max=float(worst.max()),
        saturated_over_provisioned=float((median.T[SATURATED] / worst).min()),
        saturated_share=float(errors.loc[errors["condition"] == SATURATED, "full"].median()),
    )
