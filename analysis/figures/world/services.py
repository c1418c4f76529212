"""`world/prediction`, `-ablation`, `world/mix`, `world/routing`: methods for services over many worlds, and routers."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.criteria import numbers
from analysis.figures.crossplatform.traits import APPLICATIONS

BEST: Final = "testbed"
CALIBRATED: Final = "calibrated"
MOVED: Final = 0.01
"""Change of the error from which a mechanism counts as one that matters."""


def measure_prediction(scores: pd.DataFrame) -> pd.DataFrame:
    """Return what the criteria on many worlds are put to.

    Errors by application; beats_rivals, coverage_min, coverage_max, half_width, wrong_best and loss of the best method,
    the least favourable over applications.

    Parameters
    ----------
    scores : worlds (default, doubled, ...), application, method, service_error (median over worlds and targets),
        coverage, half_width, wrong, loss, beats (share of worlds and targets in which the best method errs least)
    """
    default = scores[scores["worlds"] == "default"]
    best = default[default["method"] == BEST]
    doubled = scores[(scores["worlds"] == "doubled") & (scores["method"] == BEST)]
    parts = {CALIBRATED: default[default["method"] == CALIBRATED], "best": best, "best_doubled": doubled}
    values = {
        f"{name}_{row['application']}": row["service_error"]
        for name, table in parts.items()
        for row in table.to_dict("records")
    }
    return numbers(
        **values,
        beats_rivals=float(best["beats"].min()),
        coverage_min=float(best["coverage"].min()),
        coverage_max=float(best["coverage"].max()),
        half_width=float(best["half_width"].max()),
        wrong_best=float(best["wrong"].max()),
        loss=float(best["loss"].max()),
    )


def prediction(scores: pd.DataFrame) -> Figure:
    """Draw each method's median error in each kind of worlds, a panel an application.

    Parameters
    ----------
    scores : as for `measure_prediction`

    Examples
    --------
    >>> row = {"worlds": "default", "application": "rubis", "method": ["published", BEST], "service_error": [0.2, 0.1]}
    >>> len(prediction(pd.DataFrame(row)).axes)
    1
    """
    applications = list(dict.fromkeys(scores["application"]))
    methods = list(dict.fromkeys(scores.loc[scores["service_error"].notna(), "method"]))
    figure, axes = style.panels(columns=len(applications), height_inches=1.0 + 0.17 * len(methods), share_y=True)
    looks = dict(zip(dict.fromkeys(scores["worlds"]), zip(style.CYCLE, style.MARKERS, strict=True), strict=False))
    for panel, application in zip(axes, applications, strict=True):
        of = scores[scores["application"] == application]
        for kind, table in of.groupby("worlds", sort=False):
            error = table.set_index("method")["service_error"].reindex(methods)
            colour, marker = looks[kind]
            words = f"{str(kind).replace('_', ' ')} worlds"
            panel.plot(error, range(len(methods)), marker, color=colour, markersize=3.5, label=words)
        panel.set_yticks(range(len(methods)), [name.replace("_", " ") for name in methods])
        panel.set_xlim(0.0, 1.08 * max(panel.dataLim.x1, 0.01))
        style.percent(panel, "x")
        style.label(panel, "median error of CPU time", "", APPLICATIONS.get(application, application))
    axes[0].set_ylim(len(methods) - 0.5, -0.5)
    style.shared_legend(figure, columns=4)
    return figure


def ablation(errors: pd.DataFrame) -> pd.DataFrame:
    """Return the error with each mechanism switched off, and what switching it off moves.

    Parameters
    ----------
    errors : off (a mechanism, nothing or everything), seed, target, service_error

    Returns
    -------
    DataFrame
        off, error (median over worlds and targets), signed (median over pairs of world and target of the change of the
        error), moved (median of its size), the largest first but for nothing and everything.
    """
    wide = errors.pivot_table(index=["seed", "target"], columns="off", values="service_error", sort=False)
    change = wide.sub(wide["nothing"], axis=0)
    medians = pd.DataFrame({"error": wide.median(), "signed": change.median(), "moved": change.abs().median()})
    ends = ["nothing", "everything"]
    order = [*ends, *medians.drop(index=ends).sort_values("moved", ascending=False, kind="stable").index]
    return medians.loc[order].rename_axis("off").reset_index()


def measure_ablation(table: pd.DataFrame) -> pd.DataFrame:
    """Return the error without any mechanism, and how many mechanisms matter.

    Parameters
    ----------
    table : of `ablation`
    """
    left = float(table.loc[table["off"] == "everything", "error"].iloc[0])
    single = table[~table["off"].isin(["nothing", "everything"])]
    return numbers(nothing_left=left, shares_found=int((single["moved"] >= MOVED).sum()))


def draw_ablation(table: pd.DataFrame) -> Figure:
    """Draw the published method's error with each mechanism switched off.

    Parameters
    ----------
    table : of `ablation`

    Examples
    --------
    >>> table = pd.DataFrame({"off": ["nothing", "everything"], "error": [0.2, 0.0], "moved": [0.0, 0.2]})
    >>> len(draw_ablation(table).axes[0].patches)
    2
    """
    figure, (axes,) = style.panels(height_inches=0.7 + 0.17 * len(table))
    places = np.arange(len(table))
    axes.barh(places, table["error"], color=style.BLUE)
    words = {"nothing": "nothing switched off", "everything": "all switched off"}
    axes.set_yticks(places, [words.get(name, f"without {name.replace('_', ' ')}") for name in table["off"]])
    axes.set_ylim(len(table) - 0.5, -0.5)
    axes.set_xlim(0.0, 1.08 * max(float(table["error"].max()), 0.01))
    style.percent(axes, "x")
    style.label(axes, "median error of the published method", "")
    return figure


def measure_mix(table: pd.DataFrame) -> pd.DataFrame:
    """Return how much better than one type the request mix is, and whether it says when it cannot tell the types.

    Parameters
    ----------
    table : load (changing, stationary), application, seed, error and one_type (test errors of CPU time), identified

    Returns
    -------
    DataFrame
        series, x, value: gain_nonstationary, the smallest over applications of the median over worlds; shares of the
        worlds whose types are identified.

    Examples
    --------
    >>> mixes = pd.DataFrame({"load": ["changing", "stationary"], "application": "rubis", "seed": 1,
    ...                       "error": [0.1, np.nan], "one_type": [0.4, np.nan], "identified": [1.0, 0.0]})
    >>> measure_mix(mixes)["value"].tolist()
    [4.0, 1.0, 0.0]
    """
    changing = table[table["load"] == "changing"]
    gain = (changing["one_type"] / changing["error"]).groupby(changing["application"]).median()
    return numbers(
        gain_nonstationary=float(gain.min()),
        identified_nonstationary=float(changing["identified"].mean()),
        identified_stationary=float(table.loc[table["load"] == "stationary", "identified"].mean()),
    )


def measure_routing(routed: pd.DataFrame, ours: str, rivals: Mapping[str, str]) -> pd.DataFrame:
    """Return in how many worlds routing by predicted service time is better than what load balancers do.

    Shares of the worlds in which ours has the lower mean and 99th percentile.

    Parameters
    ----------
    routed : seed, policy, mean_s, p99_s (response times)
    ours : the policy that is judged
    rivals : policy to the name that it has in the judged numbers
    """
    by = routed.pivot_table(index="seed", columns="policy", values=["mean_s", "p99_s"])
    values = {
        f"{what}_over_{name}": float((by[f"{what}_s"][ours] < by[f"{what}_s"][rival]).mean())
        for rival, name in rivals.items()
        for what in ("mean", "p99")
    }
    return numbers(**values)


def routing(measured_by_world: pd.DataFrame) -> Figure:
    """Draw mean and 99th percentile of each policy, a line a world.

    Parameters
    ----------
    measured_by_world : seed, policy, mean_s, p99_s

    Examples
    --------
    >>> responses = pd.DataFrame({"seed": 1, "policy": ["a", "b"], "mean_s": [0.1, 0.2], "p99_s": [0.9, 0.8]})
    >>> len(routing(responses).axes)
    2
    """
    figure, axes = style.panels(columns=2, height_inches=2.5)
    policies = list(dict.fromkeys(measured_by_world["policy"]))
    names = {"mean": "mean response time (ms)", "p99": "99th percentile (ms)"}
    for panel, (what, name) in zip(axes, names.items(), strict=True):
        by = measured_by_world.pivot_table(index="policy", columns="seed", values=f"{what}_s").loc[policies]
        lines = panel.plot(
            range(len(policies)), by.to_numpy() * 1e3, "o-", color=style.SKY, markersize=2, linewidth=0.5
        )
        lines[0].set_label("a world")
        middle = 1e3 * by.median(axis=1).to_numpy()
        panel.plot(
            range(len(policies)), middle, "s-", color=style.BLUE, markersize=4, linewidth=1.4, label="median of worlds"
        )
        panel.set_xticks(range(len(policies)), [name.replace("_", " ") for name in policies], rotation=25, ha="right")
        style.label(panel, "", name)
        style.from_zero(panel)
    style.shared_legend(figure)
    return figure
