"""Stewart et al. (2008), Tables 4 to 6, Figures 5 and 6: errors of predictions for platforms never measured."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.criteria import curve, measures, number, numbers, rows
from analysis.figures.crossplatform.crossplatform_printed import ERRORS, OURS, PLATFORM_NAMES, measure_table4
from analysis.figures.crossplatform.traits import APPLICATIONS
from analysis.figures.spread import world_bar, world_bars

COLUMNS: Final[dict[str, str]] = {
    "cycle_scalar": "scalar", "cycle_mix": "req-mix", "benchmark": "benchmark", OURS: "our method",
}  # fmt: skip
"""Methods of Tables 4 to 6, and how the paper heads them."""
BEYOND: Final = ("calibrated", "testbed")
"""Columns that the paper does not have."""
HEADINGS: Final[Mapping[str, str]] = COLUMNS | {
    "cycle_scalar": "cycle scaling", "cycle_mix": "cycles with request mix", OURS: "the paper's method",
    **{name: name for name in BEYOND},
}  # fmt: skip
"""Methods as drawings call them."""
LOOKS: Final[Mapping[str, tuple[str, str]]] = dict(
    zip((*COLUMNS, *BEYOND), zip(style.CYCLE, style.MARKERS, strict=True), strict=True)
)
"""Colour and marker of each method: the same in every figure."""
NAIVE: Final = "cycle_scalar"
"""The rival that counts clock cycles and nothing else."""
SCORED: Final = "benchmark"
"""The rival that runs a public benchmark on both platforms; it has no column where the benchmark is the service."""
TARGETS: Final = (
    "pres",
    "pd4",
    *(f"xeon_{threads}h_{cores}c_{processors}p" for threads in (1, 2) for cores in (1, 2) for processors in (1, 2)),
)
"""Platforms of Tables 4 to 6, in the order in which the paper numbers them."""
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
    drawn = _cells(errors)
    return measures(*drawn, table, simulated_median=float(ours.median()), simulated_best=best)


def _cells(errors: pd.DataFrame) -> list[pd.DataFrame]:
    """Return each method's error over the number of the target, medians where there are several worlds."""
    medians = _medians(errors[errors["target"].isin(TARGETS)])
    at = [TARGETS.index(str(target)) + 1 for target in medians.index]
    return [rows(f"{ERRORS}{name}", at, medians[name]) for name in medians]


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
        rows(f"{application}_{direction}", shares, np.quantile(direction_rows["error"], shares, method="inverted_cdf"))
        for (application, direction), direction_rows in first.groupby(["application", "direction"], sort=False)
    ]
    return measures(*parts, **values)


def _share_below(cells: pd.DataFrame, rival: str) -> float:
    """Return the share of the pairs with a rival's error in which that of the published method is less."""
    if rival not in cells:
        return float("nan")
    both = cells.dropna(subset=[rival])
    return float((both[OURS] < both[rival]).mean())


def fig5(measured: pd.DataFrame, published: pd.DataFrame, table: pd.DataFrame | None = None) -> Figure:
    """Draw response-time errors as the paper does, below them those of its rivals, and mean response times.

    Parameters
    ----------
    measured, published : series, x, value
    table : median errors of all methods, of `by_direction`; no rivals without it
    """
    rivals = table is not None and len(table) > 0
    figure, axes = style.panels(columns=4, rows=2 if rivals else 1, height_inches=2.3)
    _distributions(figure, measured, published)
    if table is not None and rivals:
        figure.delaxes(axes[7])
        grid = axes[3].get_gridspec()
        if grid is not None:
            axes[3].set_subplotspec(grid[:, 3])
        _rivals(figure, table)
    _mean_responses(figure, measured, published)
    style.shared_legend(figure, columns=4)
    return figure


def _distributions(figure: Figure, measured: pd.DataFrame, published: pd.DataFrame) -> None:
    """Draw the distributions of the error for each application and direction, with printed quantiles."""
    looks = zip(style.CYCLE, ("-", "--", "-.", (0, (5, 1, 1, 1, 1, 1))), strict=False)
    forms = dict(zip(DIRECTIONS, looks, strict=False))
    longest = 0.0
    for panel, letter, (application, name) in zip(figure.axes, "abc", APPLICATIONS.items(), strict=False):
        for (origin, target), (colour, form) in forms.items():
            shares, error = curve(measured, f"{application}_{origin}_to_{target}")
            text = f"{PLATFORM_NAMES[origin]} to {PLATFORM_NAMES[target]}"
            panel.plot(error, shares, linestyle=form, color=colour, linewidth=1.2, label=text)
            longest = max(longest, *error)
        median, p85 = (number(published, f"{what}_{application}") for what in ("median_piii_xeon", "p85_worst"))
        style.published_points(panel, [median], [0.5], style.CYCLE[0], "published median, PIII to XEON")
        panel.plot(
            [0.0, p85, p85], [0.85, 0.85, 0.0], ":", color=style.INK, linewidth=1.2, label="published: 85% below"
        )
        ours = number(measured, f"median_piii_xeon_{application}")
        title = f"({letter}) {name}\nPIII to XEON {ours:.2f}\n(published {median:.2f})"
        style.label(panel, "normalised error", "CDF" if panel is figure.axes[0] else "", title)
        style.percent(panel)
    for panel in figure.axes[: len(APPLICATIONS)]:
        panel.set_xlim(0.0, 1.03 * max(longest, 0.31))
        panel.set_ylim(0.0, 1.03)
        panel.tick_params(labelleft=panel is figure.axes[0])


def _rivals(figure: Figure, table: pd.DataFrame) -> None:
    """Draw the median error of each method in each direction, in the panels after the first four."""
    names = {f"{origin}_to_{target}": (origin, target) for origin, target in DIRECTIONS}
    places = np.arange(len(names), dtype=float)
    for panel, letter, (application, name) in zip(figure.axes[4:], "efg", APPLICATIONS.items(), strict=True):
        errors = table[table["application"] == application]
        for i, method in enumerate(COLUMNS):
            if method in errors and errors[method].notna().any():
                colour, marker = LOOKS[method]
                at = places + 0.16 * (i - 1.5)
                error = errors.set_index("direction")[method].reindex([*names])
                panel.plot(at, error, marker, color=colour, markersize=3.5, label=HEADINGS[method])
        ticks = [f"{PLATFORM_NAMES[origin]} to {PLATFORM_NAMES[target]}" for origin, target in names.values()]
        panel.set_xticks(places, ticks, rotation=35, ha="right", rotation_mode="anchor", fontsize=style.LEAST_POINTS)
        panel.set_xlim(-0.5, len(places) - 0.5)
        if panel is not figure.axes[4]:
            panel.sharey(figure.axes[4])
        panel.tick_params(labelleft=panel is figure.axes[4])
        style.label(panel, "", "median normalised error" if letter == "e" else "", f"({letter}) {name}: rivals")
    style.from_zero(figure.axes[4])


def _mean_responses(figure: Figure, measured: pd.DataFrame, published: pd.DataFrame) -> None:
    """Draw RUBiS's mean response time on each platform beside the printed one, in the fourth panel."""
    panel, platforms = figure.axes[3], ("piii", "pres", "xeon")
    places = np.arange(len(platforms), dtype=float)
    ours, paper = ([number(of, f"mean_response_{platform}") for platform in platforms] for of in (measured, published))
    panel.bar(places - 0.2, ours, 0.36, color=style.SKY, label="mean response time")
    style.published_bars(panel, places + 0.2, paper, 0.36, "published mean response time")
    panel.set_xticks(places, [PLATFORM_NAMES[platform] for platform in platforms])
    style.from_zero(panel)
    style.label(panel, "", "seconds", "(d) RUBiS: mean\nresponse time")


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


def fig6(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw the network's and our errors side by side, with how far apart the paper says that they are.

    The axis is logarithmic: in some worlds the network errs by thirty times what it predicts.
    """
    figure, axes = style.panels(columns=2, share_y=True, height_inches=2.5)
    value = measured.set_index("series")["value"].to_dict()
    gap, ratio = (number(published, name) for name in ("workload_gap", "platform_ratio"))
    places = np.arange(len(APPLICATIONS), dtype=float)
    names = {
        "network": ("artificial neural network", style.GREY, "s"),
        "ours": (HEADINGS[OURS], *LOOKS[OURS]),
    }
    for panel, (situation, title) in zip(axes, _SITUATIONS.items(), strict=True):
        for shift, (model, (name, colour, marker)) in zip((-0.19, 0.19), names.items(), strict=True):
            heights = [value[f"{model}_{situation}_{application}"] for application in APPLICATIONS]
            panel.plot(places + shift, heights, marker, color=colour, markersize=4.0, label=name)
            for place, application in zip(places + shift, APPLICATIONS, strict=True):
                world_bar(panel, place, measured, f"{model}_{situation}_{application}")
        new = situation == "platform"
        printed = [ratio * height if new else height + gap for height in heights]
        for place, height in zip(places, printed, strict=True):
            style.published_step(
                panel, height, place - 0.38, place, "" if place or new else "published limit of the network"
            )
        panel.set_xticks(places, [*APPLICATIONS.values()])
        panel.set_xlim(-0.6, len(places) - 0.4)
        words = f"up to {ratio:g}× the method" if new else f"within {gap:g} of the method"
        text = f"{title}\npublished: network {words}"
        style.label(panel, "", "median normalised error" if panel is axes[0] else "", text)
    style.plain_log(axes[0])
    style.shared_legend(figure)
    return figure


_SITUATIONS: Final[Mapping[str, str]] = {"workload": "New workload only", "platform": "New platform"}


def draw_table(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw the errors of Tables 4 to 6 as points on a line for each target, those that the paper prints beside ours.

    Parameters
    ----------
    measured : error_{method} over the number of the target; of `measure_errors`
    published : error_{method} over the number of the target

    Examples
    --------
    >>> ours = rows("error_published", [1, 2], [0.1, 0.2])
    >>> [text.get_text() for text in draw_table(ours, ours).axes[0].get_yticklabels()]
    ['PRES', 'PD4']
    """
    methods = [name for name in (*COLUMNS, *BEYOND) if curve(measured, f"{ERRORS}{name}")[0]]
    at, _ = curve(measured, f"{ERRORS}{methods[0]}")
    figure, (ours, paper) = style.panels(columns=2, share_y=True, height_inches=0.9 + 0.27 * len(at))
    for i, name in enumerate(methods):
        colour, marker = LOOKS[name]
        aside = 0.11 * (i - (len(methods) - 1) / 2)
        look: dict[str, Any] = {"color": colour, "markersize": 3.5, "linestyle": ""}
        targets, error = curve(measured, f"{ERRORS}{name}")
        places = np.asarray(targets) + aside
        words = HEADINGS[name] if name in COLUMNS else f"{HEADINGS[name]} (not in the paper)"
        ours.plot(error, places, marker, label=words, **look)
        world_bars(ours, places, measured, f"{ERRORS}{name}", across=True)
        targets, error = curve(published, f"{ERRORS}{name}")
        if targets:
            paper.plot(error, np.asarray(targets) + aside, marker, markerfacecolor="none", label="_published", **look)
    for panel, title in ((ours, "measured"), (paper, "published")):
        style.percent(panel, "x")
        style.label(panel, "median error of service time", "", title)
    _say_printed(figure, measured, published)
    names = [PLATFORM_NAMES[TARGETS[int(target) - 1]] for target in at]
    ours.set_yticks(at, names)
    ours.set_ylim(max(at) + 0.6, min(at) - 0.6)
    longest = max(panel.dataLim.x1 for panel in (ours, paper))
    for panel in (ours, paper):
        panel.set_xlim(0.0, 1.05 * longest)
    style.shared_legend(figure)
    return figure


def _say_printed(figure: Figure, measured: pd.DataFrame, published: pd.DataFrame) -> None:
    """Add to the titles of measured and published errors the single numbers that the paper prints."""
    forms = {
        f"median_{OURS}": "the paper's method: median {:.3f}",
        f"largest_{OURS}": "at most {:.2f}",
        f"best_{OURS}": "best on {:g} of 10",
        "beats_benchmark": "beats the benchmark on {:g}",
    }
    known = {name: form for name, form in forms.items() if np.isfinite(number(published, name))}
    for panel, table in zip(figure.axes, (measured, published), strict=True):
        words = [form.format(number(table, name)) for name, form in known.items()]
        lines = [panel.get_title(), *words[:1], ", ".join(words[1:])]
        panel.set_title("\n".join(line for line in lines if line), fontsize=style.FONT_POINTS)


def draw_errors(table: pd.DataFrame, methods: Sequence[str]) -> Figure:
    """Draw the error of several methods on each target of one run as points.

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
        axes.plot(table[method], places, marker, markersize=3.5, label=method.replace("_", " "))
    axes.set_yticks(places, [PLATFORM_NAMES.get(name, name) for name in table["target"]])
    axes.invert_yaxis()
    style.percent(axes, "x")
    style.label(axes, "median error of service time", "")
    style.legend(axes, columns=3, above=True)
    return figure
