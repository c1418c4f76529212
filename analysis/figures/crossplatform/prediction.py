"""Stewart et al. (2008), Tables 4 to 6, Figures 5 and 6: errors of predictions for platforms never measured."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.criteria import curve, measures, numbers, rows
from analysis.figures.crossplatform.crossplatform_printed import ERRORS, OURS, measure_table4
from analysis.figures.crossplatform.traits import APPLICATIONS

COLUMNS: Final[Mapping[str, str]] = {
    "cycle_scalar": "scalar", "cycle_mix": "req-mix", "benchmark": "benchmark", OURS: "our method",
}  # fmt: skip
"""Methods of Tables 4 to 6, and how the paper heads them."""
BEYOND: Final = ("calibrated", "testbed")
"""Columns that the paper does not have."""
NAIVE: Final = "cycle_scalar"
"""The rival that counts clock cycles and nothing else."""
SCORED: Final = "benchmark"
"""The rival that runs a public benchmark on both platforms; it has no column where the benchmark is the service."""
DIRECTIONS: Final = (("piii", "xeon"), ("piii", "pres"), ("pres", "xeon"), ("xeon", "piii"))
"""Figure 5: from the measured to the predicted platform."""


def layout(errors: pd.DataFrame) -> pd.DataFrame:
    """Return errors in the layout of Tables 4 to 6: a row a target, a column a method, medians over worlds.

    Parameters
    ----------
    errors : method, target, seed, service_error (median over intervals)

    Returns
    -------
    DataFrame
        target and a column for each method that the table has, those beyond the paper last.
    """
    median = _medians(errors)
    names = {name: heading for name, heading in {**COLUMNS, **{b: b for b in BEYOND}}.items() if name in median}
    columns = median[list(names)].rename(columns=names)
    columns.columns.name = None
    return columns.loc[errors["target"].drop_duplicates()].round(4).reset_index()


def _medians(errors: pd.DataFrame) -> pd.DataFrame:
    """Return median errors over worlds: a row a target, a column a method."""
    return errors.pivot_table(index="target", columns="method", values="service_error", aggfunc="median", sort=False)


def measure_errors(errors: pd.DataFrame) -> pd.DataFrame:
    """Return how the published method does beside the paper's alternatives in simulated worlds.

    simulated_median, over platforms and worlds; simulated_best, on how many platforms it has the least median error of
    the methods of the paper's table; and what `crossplatform_printed.measure_table4` says of the medians over worlds,
    laid out as the paper's table.

    Parameters
    ----------
    errors : method, target, seed, service_error
    """
    known = errors[errors["method"].isin(COLUMNS)]
    medians = _medians(known)
    best = int((medians.idxmin(axis=1) == OURS).sum())
    ours = known.loc[known["method"] == OURS, "service_error"]
    cells = [rows(f"{ERRORS}{name}", range(1, len(medians) + 1), medians[name]) for name in medians]
    table = measure_table4(pd.concat(cells, ignore_index=True))
    return measures(table, simulated_median=float(ours.median()), simulated_best=best)


def by_direction(errors: pd.DataFrame) -> pd.DataFrame:
    """Return each method's median error of response time by application and direction, medians over worlds.

    Parameters
    ----------
    errors : application, direction, method, seed, error (of one mix)

    Returns
    -------
    DataFrame
        application, direction and a column for each method.
    """
    keys = ["application", "direction"]
    median = errors.groupby([*keys, "method", "seed"], sort=False)["error"].median().reset_index()
    table = median.pivot_table(index=keys, columns="method", values="error", aggfunc="median", sort=False).reset_index()
    table.columns.name = None
    return table


def measure_fig5(errors: pd.DataFrame, responses: pd.DataFrame) -> pd.DataFrame:
    """Return how far predicted response times are off, in four directions between platforms, and how far rivals' are.

    Parameters
    ----------
    errors : application, direction (two names of `DIRECTIONS` with "_to_" between), method (`OURS`, `NAIVE` and any
        other), seed, error (of one mix)
    responses : platform (piii, pres, xeon), response_time_s (mean, one row a world); of RUBiS

    Returns
    -------
    DataFrame
        series, x (share of the mixes), value (error) of the first world by the published method; medians over worlds
        as numbers: of the published method, below_cycles, the share of the pairs of application and direction in which
        its median error is less than that of `NAIVE`, below_benchmark, the same of `SCORED` where there is one, and
        worst_share, that in which no method errs more.
    """
    cells = by_direction(errors)
    rivals = cells.drop(columns=["application", "direction", OURS])
    errors = errors[errors["method"] == OURS]
    by = errors.groupby(["application", "direction", "seed"], sort=False)["error"]
    p85 = by.quantile(0.85).groupby(["application", "direction"], sort=False).median().reset_index()
    half = by.median().groupby(["application", "direction"], sort=False).median().reset_index()
    mean = responses.groupby("platform")["response_time_s"].median().to_dict()
    xeon = half[half["direction"] == "piii_to_xeon"].set_index("application")["error"].to_dict()
    worst = p85.groupby("application", sort=False)["error"].max().to_dict()
    values = {f"median_piii_xeon_{application}": value for application, value in xeon.items()}
    values |= {f"p85_worst_{application}": value for application, value in worst.items()}
    values |= {f"mean_response_{platform}": value for platform, value in mean.items()}
    values |= {
        "median_piii_xeon_max": max(xeon.values()),
        "p85_max": max(worst.values()),
        "piii_over_pres": mean["piii"] / mean["pres"],
        "pres_over_xeon": mean["pres"] / mean["xeon"],
        "below_cycles": float((cells[OURS] < cells[NAIVE]).mean()),
        "below_benchmark": _share_below(cells, SCORED),
        "worst_share": float((cells[OURS] > rivals.max(axis=1)).mean()),
    }
    shares = np.linspace(0.0, 1.0, 101)
    first = errors[errors["seed"] == errors["seed"].iloc[0]]
    parts = [
        rows(f"{application}_{direction}", shares, np.quantile(direction_rows["error"], shares))
        for (application, direction), direction_rows in first.groupby(["application", "direction"], sort=False)
    ]
    return measures(*parts, **values)


def _share_below(cells: pd.DataFrame, rival: str) -> float:
    """Return the share of the pairs with a rival's error in which that of the published method is less."""
    if rival not in cells:
        return float("nan")
    both = cells.dropna(subset=[rival])
    return float((both[OURS] < both[rival]).mean())


def fig5(measured: pd.DataFrame, _published: pd.DataFrame) -> Figure:
    """Draw the distribution of the response-time error for each application and direction."""
    figure, axes = style.panels(columns=3, share_y=True)
    for panel, (application, name) in zip(axes, APPLICATIONS.items(), strict=True):
        for origin, target in DIRECTIONS:
            shares, error = curve(measured, f"{application}_{origin}_to_{target}")
            panel.plot(error, shares, label=f"{origin} to {target}")
        panel.set_xlim(0.0, 0.65)
        style.label(panel, "normalised error", "share of the mixes" if panel is axes[0] else "", name)
        style.percent(panel)
    style.legend(axes[0])
    return figure


def measure_fig6(errors: pd.DataFrame) -> pd.DataFrame:
    """Return the errors of the neural network beside ours, for new mixes and for a new platform.

    Medians over worlds by model, situation and application; workload_gap, the largest distance; platform_ratio, the
    smallest ratio of the network's error to ours.

    Parameters
    ----------
    errors : application, seed, situation (workload, platform), network, ours (median response-time errors)
    """
    both = errors.assign(gap=errors["network"] - errors["ours"], ratio=errors["network"] / errors["ours"])
    columns = ["network", "ours", "gap", "ratio"]
    median = both.groupby(["situation", "application"], sort=False)[columns].median().reset_index()
    values = {
        f"{model}_{row['situation']}_{row['application']}": row[model]
        for row in median.to_dict("records")
        for model in ("network", "ours")
    }
    gaps = median.loc[median["situation"] == "workload", "gap"].abs()
    ratios = median.loc[median["situation"] == "platform", "ratio"]
    return numbers(**values, workload_gap=float(gaps.max()), platform_ratio=float(ratios.min()))


def fig6(measured: pd.DataFrame, _published: pd.DataFrame) -> Figure:
    """Draw the network's and our errors side by side."""
    figure, axes = style.panels(columns=2, share_y=True)
    value = measured.set_index("series")["value"].to_dict()
    names = {"workload": "new workload only", "platform": "new platform"}
    places = np.arange(len(APPLICATIONS))
    for panel, (situation, title) in zip(axes, names.items(), strict=True):
        for shift, (model, name) in enumerate({"network": "neural network", "ours": "our model"}.items()):
            heights = [value[f"{model}_{situation}_{application}"] for application in APPLICATIONS]
            panel.bar(places + 0.38 * shift, heights, 0.36, label=name)
        panel.set_xticks(places + 0.19, list(APPLICATIONS.values()))
        style.label(panel, "", "median normalised error" if panel is axes[0] else "", title)
    style.legend(axes[0])
    return figure


def draw_errors(table: pd.DataFrame, methods: Sequence[str]) -> Figure:
    """Draw the error of several methods on each target as points.

    Parameters
    ----------
    table : target and a column for each method; of `layout`
    methods : columns to draw

    Examples
    --------
    >>> errors = pd.DataFrame({"target": ["pres", "pd4"], "our method": [0.1, 0.2]})
    >>> len(draw_errors(errors, ["our method"]).axes[0].lines)
    1
    """
    figure, (axes,) = style.panels(height_inches=2.8)
    places = np.arange(len(table))
    for method, marker in zip(methods, "osD^vx*", strict=False):
        axes.plot(table[method], places, marker, markersize=3.5, label=method)
    axes.set_yticks(places, table["target"])
    axes.invert_yaxis()
    style.percent(axes, "x")
    style.label(axes, "median error of service time", "")
    style.legend(axes, columns=3, above=True)
    return figure
