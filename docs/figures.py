"""The pictures of README.md and docs/, drawn from the examples that stand beside them.

    python docs/figures.py [NAME ...]

Each picture is the figure of one answer of `wsc`, so it changes when the world or an estimator does. `make docs` draws
all of them into docs/images; the same answers give the same bytes.
"""

import contextlib
import sys
from collections.abc import Callable

import pandas as pd
from matplotlib.figure import Figure

import wsc
from analysis.figures.style import GREY, label, legend, panels, write
from docs.shown import ROOT, blocks, examples, run

IMAGES = ROOT / "docs" / "images"


def estimates() -> Figure:
    """Draw one test cluster of each size of `make demo`, beside the truth (README.md)."""
    with contextlib.chdir(ROOT):  # where `make demo` keeps its run
        return wsc.measure(wsc.simulate("cpu_upgrade")).figure()


def change() -> Figure:
    """Draw the change of the example's fleet, and of its jobs (own-fleet.md)."""
    return wsc.effect("fleet_before.csv", "fleet_after.csv", jobs="fleet_jobs.csv").figure()


def waiting() -> Figure:
    """Draw the shop's requests over time, and other numbers of cores (own-requests.md)."""
    return wsc.requests("shop.log.gz", servers=4, to=[5, 6, 8], policy="auto").figure()


def servers() -> Figure:
    """Draw servers by requests per watt, from the log that own-servers.md puts together."""
    for block in blocks(ROOT / "docs/own-servers.md"):
        if block.language == "python":
            exec(compile("\n".join(block.lines), f"{block.document}:{block.line}", "exec"), {})
    service = wsc.service("web1.csv", platform="skylake_6148")
    return service.select(0.15, ["skylake_6148", "rome_7742", "genoa_9654", "sapphirerapids_8480"]).figure()


def release() -> Figure:
    """Draw the functions that changed with the release (own-profiles.md)."""
    for when in ("before", "after"):
        run(f"wsc profile import profiles/{when}-*.pb.gz --drawn-from 240 --out {when}")
    return wsc.profile("before").diff(wsc.profile("after")).figure()


def autoscalers() -> Figure:
    """Draw late requests and server hours under each rule, as `benchmarks/autoscalers.py` wrote them (scenarios.md)."""
    stored = pd.read_csv(ROOT / "docs" / "autoscalers.csv")
    worlds = ("swing and bursts, FCFS", "swing alone, FCFS")
    figure, panes = panels(rows=len(worlds), height_inches=1.6)
    for axes, world in zip(panes, worlds, strict=True):
        for rule, points in stored[stored["world"] == world].groupby("rule", sort=False):
            hours, late = points["server_hours"], 100.0 * points["late"].clip(lower=1e-5)
            axes.plot(hours, late, marker="o", markersize=2.5, linewidth=0.8, label=str(rule))
        axes.set_yscale("log")
        axes.annotate(world, (0.5, 0.98), xycoords="axes fraction", ha="center", va="top", fontsize=7.0)
        label(axes, "server hours in two hours", "late, %")
    legend(panes[0], columns=1)
    return figure


def least_change() -> Figure:
    """Draw the least change that slots show, as `benchmarks/least_change.py` wrote it (slots.md)."""
    stored = pd.read_csv(ROOT / "docs" / "least_change.csv")
    figure, (axes,) = panels(height_inches=1.9)
    shown = stored[stored["days"].isin([1, 7])].sort_values("slot_machines")
    for (controls, days), points in shown.groupby(["controls", "days"]):
        words = (
            f"{'a day' if days == 1 else 'a week'}, {'one slot' if controls == 1 else f'{controls} slots'} of controls"
        )
        style = {"linewidth": 0.8, "linestyle": "-" if controls == 1 else "--"}
        axes.plot(
            points["slot_machines"], 100.0 * points["least_change"], marker="o", markersize=2.5, label=words, **style
        )
    axes.axhline(0.14, color=GREY, linewidth=0.6, linestyle="--")
    at_left = {"xycoords": ("axes fraction", "data"), "ha": "left", "va": "bottom", "fontsize": 6.0}
    axes.annotate("ServiceLab, median: 0.14%", (0.02, 0.14), **at_left)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks([100, 500, 1000, 10000], ["100", "500", "1,000", "10,000"], minor=False)
    axes.set_yticks([0.1, 0.2, 0.5, 1.0, 2.0], ["0.1", "0.2", "0.5", "1", "2"], minor=False)
    axes.minorticks_off()
    label(axes, "machines of each slot", "least change, %")
    legend(axes, columns=1)
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    draw.__name__: draw for draw in (estimates, change, waiting, servers, release, autoscalers, least_change)
}


def main(names: list[str]) -> None:
    """Draw the pictures of these names, or all."""
    with examples():
        for name in names or PICTURES:
            write(PICTURES[name](), IMAGES / f"{name}.png", "png")


if __name__ == "__main__":
    main(sys.argv[1:])
