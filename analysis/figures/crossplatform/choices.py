"""Stewart et al. (2008), Tables 7 and 8, Figure 7, in simulated worlds: which platform to buy, for which requests."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.crossplatform import choice
from analysis.figures import style
from analysis.figures.criteria import curve, measures, number, numbers, rows
from analysis.figures.crossplatform.crossplatform_printed import ACTUAL, OURS, TOP
from analysis.figures.crossplatform.prediction import HEADINGS, LOOKS
from analysis.figures.spread import world_bars

PAPERS: Final[Mapping[str, str]] = {
    "cycle_scalar": "cycle-based", "benchmark": "benchmark-based", OURS: "our extensions",
}  # fmt: skip
"""Methods of Table 7 and Figure 7, and how the paper calls them."""
SHORT: Final[Mapping[str, str]] = {"cycle_scalar": "cycle", "benchmark": "benchmark", OURS: OURS}
"""The same methods as the paper's printed numbers are named."""
BETTER: Final = "testbed"
"""Our method, which does not take hardware threads for processors; beside the published one, and in no criterion."""
SIZE: Final = 5
"""Platforms of a subset in Figure 7."""
SUBSETS: Final = 252
"""Subsets of five of the ten platforms."""
TYPES: Final = 4
"""Types of requests in Table 8."""
PAIR: Final = ("pres", "xeon_1h_2c_1p")
"""Table 8: PRES, and the dual-core Xeon of one processor."""


def _by_method(worth: pd.DataFrame) -> pd.DataFrame:
    """Return throughput per watt with a row a world and platform, and a column a method."""
    wide = worth.pivot_table(index=["seed", "platform"], columns="method", values="throughput_per_watt", sort=False)
    return wide[[ACTUAL, *(name for name in wide.columns if name != ACTUAL)]]


def ranking(worth: pd.DataFrame) -> pd.DataFrame:
    """Return Table 7 of one world: each platform's rank by throughput per watt, actual and by each method.

    Parameters
    ----------
    worth : seed, platform, method (one is `ACTUAL`), throughput_per_watt

    Returns
    -------
    DataFrame
        platform and ranks, in the order of the actual ones; of the first world.
    """
    first = _by_method(worth[worth["seed"] == worth["seed"].iloc[0]]).droplevel("seed")
    ranked = first.apply(lambda column: pd.Series(choice.ranks(column.to_numpy()), column.index))
    ranked.columns.name = None
    return ranked.sort_values(ACTUAL).reset_index()


def measure_table7(worth: pd.DataFrame) -> pd.DataFrame:
    """Return how far methods mis-rank platforms in simulated worlds, and what the published one loses by it.

    Medians over worlds of largest mis-rank and largest loss of each method, misrank_{method} and loss_max_{method} by
    the paper's names, and the judged numbers.

    Parameters
    ----------
    worth : as for `ranking`, of every world; methods of `PAPERS` among them
    """
    off, lost = dict[str, list[int]](), dict[str, list[float]]()
    for _, world in _by_method(worth).groupby(level="seed", sort=False):
        actual = choice.ranks(world[ACTUAL].to_numpy())
        for method in PAPERS:
            predicted = choice.ranks(world[method].to_numpy())
            off.setdefault(method, []).append(int(np.abs(predicted - actual).max()))
            losses = choice.losses(world[ACTUAL].to_numpy(), world[method].to_numpy())
            lost.setdefault(method, []).append(float(np.nanmax(losses)))
    ours = np.asarray(off[OURS])
    medians = {
        f"{what}_{SHORT[method]}": float(np.median(table[method]))
        for method in PAPERS
        for what, table in (("misrank", off), ("loss_max", lost))
    }
    if BETTER in worth["method"].to_numpy():
        medians |= _better(worth)
    return numbers(
        **medians,
        simulated_rank_error=float(np.median(ours)),
        simulated_gain_over_cycles=float(np.median(off["cycle_scalar"] - ours)),
        simulated_gain_over_benchmark=float(np.median(off["benchmark"] - ours)),
        simulated_loss=float(np.median(lost[OURS])),
    )


def _better(worth: pd.DataFrame) -> dict[str, float]:
    """Return largest mis-rank and largest loss of our better method, medians over worlds."""
    worlds = [world for _, world in _by_method(worth).groupby(level="seed", sort=False)]
    off = [np.abs(choice.ranks(w[BETTER].to_numpy()) - choice.ranks(w[ACTUAL].to_numpy())).max() for w in worlds]
    lost = [np.nanmax(choice.losses(w[ACTUAL].to_numpy(), w[BETTER].to_numpy())) for w in worlds]
    return {f"misrank_{BETTER}": float(np.median(off)), f"loss_max_{BETTER}": float(np.median(lost))}


def wrong(worth: pd.DataFrame) -> pd.DataFrame:
    """Return how often each method names a wrong best, top two and top three of subsets of five.

    Parameters
    ----------
    worth : as for `ranking`

    Returns
    -------
    DataFrame
        seed, method, best, top_2, top_3 (shares of the subsets), loss (mean, of throughput per watt).
    """
    table_rows = []
    for seed, world in _by_method(worth).groupby(level="seed", sort=False):
        actual = world[ACTUAL].to_numpy()
        for method in world.columns.drop(ACTUAL):
            shares = choice.wrong_choices(actual, world[method].to_numpy(), SIZE, TOP)
            lost = choice.loss_of_best(actual, world[method].to_numpy(), SIZE)
            table_rows.append((seed, method, *shares, lost))
    return pd.DataFrame(table_rows, columns=["seed", "method", "best", "top_2", "top_3", "loss"])


def measure_fig7(decisions: pd.DataFrame) -> pd.DataFrame:
    """Return how often the paper's methods choose wrongly in simulated worlds.

    Parameters
    ----------
    decisions : of `wrong`

    Returns
    -------
    DataFrame
        series, x (1, 2, 3 for best, top two, top three), value: means over worlds, by the paper's names of methods;
        right_published, of the 252 subsets; times_{method}, wrong ones over those of `OURS`; and the judged numbers.
    """
    mean = decisions.groupby("method")[["best", "top_2", "top_3"]].mean()
    parts = [rows(f"wrong_{SHORT[method]}", TOP, mean.T[method]) for method in PAPERS]
    if BETTER in mean.index:
        parts.append(rows(f"wrong_{BETTER}", TOP, mean.T[BETTER]))
    best = mean["best"].to_dict()
    ours = best[OURS]
    over = {method: _times(best[method], ours) for method in PAPERS}
    values = {
        "right_published": SUBSETS * (1.0 - ours),
        **{f"times_{SHORT[method]}": over[method] for method in PAPERS},
        "simulated_wrong_best": ours,
        "simulated_cycles_over_ours": over["cycle_scalar"],
        "simulated_benchmark_over_ours": over["benchmark"],
    }
    return measures(*parts, **values)


def _times(share: float, ours: float) -> float:
    """Return how many times as often a rival is wrong: infinity if only the rival is, once if neither is."""
    if ours > 0.0:
        return share / ours
    return float("inf") if share > 0.0 else 1.0


def pool_fig7(worlds: Sequence[pd.DataFrame]) -> dict[str, float]:
    """Return shares of wrong choices of all worlds together, and the rivals' over those of `OURS`."""
    best = {
        name: float(np.mean([number(world, f"wrong_{SHORT[name]}", TOP[0]) for world in worlds])) for name in PAPERS
    }
    over = {name: _times(best[name], best[OURS]) for name in PAPERS}
    return {
        "simulated_wrong_best": best[OURS],
        "simulated_cycles_over_ours": over["cycle_scalar"],
        "simulated_benchmark_over_ours": over["benchmark"],
    }


def fig7(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw wrong decisions for the best, the top two and the top three of five platforms, printed ones beside ours.

    Of the best, the paper prints how many of ours are right and how many times as often the others are wrong; of the
    top two and three one share together.
    """
    figure, axes = style.panels(columns=2, share_y=True, height_inches=2.3)
    places = np.arange(len(TOP), dtype=float)
    ours = 1.0 - number(published, "right_published") / SUBSETS
    hatches = zip((-0.3, -0.1, 0.1), PAPERS.items(), ("/////", "....", "\\\\\\\\\\"), strict=True)
    for shift, (method, printed_name), hatch in hatches:
        name = HEADINGS[OURS] if method == OURS else printed_name
        colour, _ = LOOKS[method]
        _wrong(figure, measured, SHORT[method], [*(places + shift)], colour=colour, name=name)
        best = ours if method == OURS else ours * number(published, f"times_{SHORT[method]}")
        both = number(published, f"wrong_{SHORT[method]}", 2)
        bars: dict[str, Any] = {"facecolor": "white", "edgecolor": colour, "hatch": hatch, "linewidth": 0.8}
        axes[1].bar(places + shift, [best, both, both], 0.2, label=f"published, {name}", **bars)
    _wrong(figure, measured, BETTER, [*(places + 0.3)], colour=LOOKS[BETTER][0], name=f"{BETTER} (not in the paper)")
    style.from_zero(*axes)
    right, *times = (number(published, name) for name in ("right_published", "times_cycle", "times_benchmark"))
    words = (
        f"published: best right in {right:g} of {SUBSETS},\nrivals {times[0]:g}× and {times[1]:g}× as often wrong;\n"
        "top 2 and top 3 printed as one"
    )
    for panel, title in zip(axes, ("measured", words), strict=True):
        panel.set_xticks(places, ["best", "top 2", "top 3"])
        style.percent(panel)
        style.label(panel, "", "wrong decisions" if panel is axes[0] else "", title)
    style.shared_legend(figure)
    return figure


def _wrong(
    figure: Figure, measured: pd.DataFrame, method: str, places: Sequence[float], *, colour: str, name: str
) -> None:
    """Draw a method's shares of wrong decisions in the first panel, where it was tried; a bar of no height is a 0."""
    axes, shares = figure.axes[0], curve(measured, f"wrong_{method}")[1]
    if shares:
        axes.bar(places, shares, 0.2, color=colour, label=name)
        for place, share in zip(places, shares, strict=True):
            axes.text(place, 0.0, "" if share else "0", ha="center", va="bottom", fontsize=style.LEAST_POINTS)
        world_bars(axes, places, measured, f"wrong_{method}")


def measure_table8(types: pd.DataFrame) -> pd.DataFrame:
    """Return how often the better processor of `PAIR` is predicted for a type of request.

    simulated_right, the share of right choices, and right_choices, the same of four types; simulated_error_median, of
    the predicted response times; simulated_disagreement, the share of types for which the less often better processor
    is the better one; better_on_first, of those that the first of the pair serves better.

    Parameters
    ----------
    types : seed, type, platform (of `PAIR`), actual_s, predicted_s; the types that are asked about in each world
    """
    both = types.pivot_table(index=["seed", "type"], columns="platform", values=["actual_s", "predicted_s"])
    better = {what: both[what][PAIR[0]] <= both[what][PAIR[1]] for what in ("actual_s", "predicted_s")}
    right = float((better["actual_s"] == better["predicted_s"]).mean())
    first = float(better["actual_s"].mean())
    off = (types["predicted_s"] / types["actual_s"] - 1.0).abs()
    return numbers(
        right_choices=TYPES * right,
        simulated_right=right,
        simulated_error_median=float(off.median()),
        simulated_disagreement=min(first, 1.0 - first),
        better_on_first=first,
    )


def pool_table8(worlds: Sequence[pd.DataFrame]) -> dict[str, float]:
    """Return the shares of Table 8 over the types of all worlds together."""
    first = float(np.mean([number(world, "better_on_first") for world in worlds]))
    right = float(np.mean([number(world, "simulated_right") for world in worlds]))
    return {"simulated_right": right, "simulated_disagreement": min(first, 1.0 - first)}
