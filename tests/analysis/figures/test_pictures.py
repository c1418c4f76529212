"""Every figure is fit to print: nothing cut off, covered, unnamed or too small, and printed values beside ours."""

import itertools
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer
from matplotlib.lines import Line2D

from analysis.figures import style
from analysis.figures.criteria import PRINTED, printed
from analysis.figures.gwp import profiles
from analysis.figures.gwp.hot_functions import draw_query_view
from analysis.figures.spread import with_spread
from analysis.figures.world import services
from scenarios.papers.catalogue import ROWS
from scenarios.papers.rows import Reproduction, published
from tests.helpers import pictures
from tests.helpers.drawn_tables import FURTHER, TABLES

IN_WORDS = ("rank_correlation",)
"""Series of printed numbers that stand for words: the paper prints that they are well correlated."""


def drawn(row):
    """Return the figure of a row in a made-up world, with a second world a tenth off."""
    table = TABLES[row]()
    further = {"table": FURTHER[row]()} if row in FURTHER else {}
    return ROWS[row].draw(
        with_spread([table, table.assign(value=0.9 * table["value"])]), printed(published(row)), **further
    )


def test_every_row_that_is_drawn_is_drawn_here():
    assert {name for name, row in ROWS.items() if getattr(row, "draw", None)} == set(TABLES)


@pytest.mark.parametrize("row", TABLES)
def test_a_figure_is_fit_to_print_and_shows_what_the_paper_prints(row):
    figure = drawn(row)
    assert pictures.faults(figure) == []
    assert figure.dpi >= 200
    assert figure.get_figwidth() <= style.TEXT_INCHES
    paper = printed(published(row), inputs=False)
    if len(paper):
        assert pictures.published(figure)
    if not row.startswith("world/"):  # whose facts are drawn as ratios
        paper = paper[~paper["series"].str.startswith((PRINTED, *IN_WORDS))]
        assert pictures.not_drawn(figure, paper) == []


def test_the_bound_that_is_drawn_is_the_one_that_is_judged_by():
    bounds = published("wsmeter/fig6").set_index("series")["value"]
    lines = [line for axes in drawn("wsmeter/fig6").axes for line in axes.lines if "bound" in str(line.get_label())]
    assert [line.get_ydata()[0] for line in lines] == [bounds["finding:deviation_from_20_percent"]]


@pytest.mark.parametrize("lacking", [("losing",), ("gaining", "losing")])
def test_a_side_without_a_job_leaves_no_empty_panel(lacking):
    table = TABLES["wsmeter/fig2"]()
    known = table[~table["series"].str.endswith(tuple(lacking))]
    figure = ROWS["wsmeter/fig2"].draw(known, printed(published("wsmeter/fig2")))
    assert len([axes for axes in figure.axes if axes.axison]) == 2 - len(lacking)
    assert not pictures.faults(figure)
    assert "published −1.2%" in figure.axes[0].get_title()


def test_rivals_are_drawn_with_the_method_that_is_judged_against_them():
    table = TABLES["crossplatform/fig5"]()
    assert len(ROWS["crossplatform/fig5"].draw(table, printed(published("crossplatform/fig5"))).axes) == 4
    row = replace(
        ROWS["crossplatform/fig5"], measure=lambda _: Reproduction(table, table=FURTHER["crossplatform/fig5"]())
    )
    again = row.outcome(None).draw(table, printed(published("crossplatform/fig5")))
    assert {"cycle scaling", "benchmark"} <= {text.get_text() for text in again.legends[0].get_texts()}


def colours(row):
    """Return the colour of every line and bar of a figure by its name in a legend."""
    named = [pair for axes in drawn(row).axes for pair in zip(*axes.get_legend_handles_labels(), strict=True)]
    bars = {name: bars.patches[0].get_facecolor() for bars, name in named if isinstance(bars, BarContainer)}
    return {name: to_hex(colour) for name, colour in bars.items()} | {
        name: to_hex(line.get_color()) for line, name in named if isinstance(line, Line2D)
    }


def test_a_method_has_one_name_and_one_colour_in_every_figure():
    tables = [colours(f"crossplatform/{name}") for name in ("table4", "table5", "table6", "fig5", "fig6", "fig7")]
    for name in ("the paper's method", "testbed (not in the paper)"):
        assert len({table[name] for table in tables if name in table}) == 1, name
    assert all("the paper's method" in table for table in tables if "artificial neural network" in table)
    assert tables[0]["cycle scaling"] == tables[-1]["cycle-based"]
    assert tables[0]["benchmark"] == tables[-1]["benchmark-based"]


@pytest.mark.parametrize(("row", "panel"), [("gwp/fig4", 0), ("gwp/fig5", 0), ("gwp/fig7", 0), ("gwp/fig7", 1)])
def test_days_near_their_mean_say_where_the_axis_begins(row, panel):
    axes = drawn(row).axes[panel]
    assert f"(axis from {axes.get_ylim()[0]:.2f})" in axes.get_ylabel()


def test_changes_of_machines_are_drawn_with_their_intervals():
    low, high = (TABLES["wsmeter/fig3"]().set_index("series")["value"][f"change_{end}"] for end in ("low", "high"))
    title = f"{low:+.1%} to {high:+.1%} (published +1.0%)".replace("-", "−")
    assert title in drawn("wsmeter/fig3").axes[0].get_title()
    assert " to " in drawn("wsmeter/fig17").axes[0].get_title()
    assert drawn("wsmeter/fig17").axes[1].get_ylabel().startswith("share of draws")


def test_numbers_from_draws_and_samples_have_their_intervals():
    for row, name in (("wsmeter/fig13", "95% interval of the mean"), ("wsmeter/fig16", "95% interval of the mean")):
        assert name in {text for axes in drawn(row).axes for text in axes.get_legend_handles_labels()[1]}, row
    days = np.arange(3.0)
    table = profiles.measure_fig7(days, [1.72, 1.73, 1.74], 1.73, {"low": [1.5, 1.72, 1.73], "high": [1.9, 1.74, 1.75]})
    axes = ROWS["gwp/fig7"].draw(table, printed(published("gwp/fig7"))).axes[0]
    assert "95% interval, by visits" in axes.get_legend_handles_labels()[1]
    low, high = axes.get_ylim()
    assert (low < 1.5, high > 1.9) == (True, True)


def test_figures_of_more_than_their_table_are_fit_to_print():
    top = pd.DataFrame({"name": [f"long_name_of_a_function_{i}" for i in range(12)], "share": 0.05})
    view = top.assign(low=0.04, high=0.06)
    methods = [
        (w, a, m, 0.1) for w in ("default", "cliffs") for a in ("rubis", "tpcw") for m in ("published", "testbed")
    ]
    scores = pd.DataFrame(methods, columns=["worlds", "application", "method", "service_error"])
    off = pd.DataFrame({"off": ["nothing", "everything", "smt_contention"], "error": [0.2, 0.01, 0.15]})
    times = [(seed, policy, 0.1 * seed, 0.3) for seed in (1, 2) for policy in ("least_added", "weighted")]
    routed = pd.DataFrame(times, columns=["seed", "policy", "mean_s", "p99_s"])
    for figure in (
        draw_query_view({"(a) executables": view, "(b) functions": view}),
        services.prediction(scores),
        services.draw_ablation(off),
        services.routing(routed),
    ):
        assert pictures.faults(figure) == []


def test_faults_are_found():
    figure, (axes,) = style.panels()
    axes.plot([0.0, 1.0], [2.8, 3.1], label="raw_name")
    axes.set_ylim(0.0, 3.05)
    axes.legend(loc="upper center", fontsize=5)
    axes.set_title("a long title that runs over it", y=0.9)
    faults = " ".join(pictures.faults(figure))
    for fault in ("cut off", "below a legend", "raw name", "points: 'raw_name'", "without a name", "overprinted"):
        assert fault in faults
    assert not pictures.published(figure)


SIMULATED = {
    "normal": np.eye(3),
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
"""Machado et al. (2009), table 1, severity 1: what is seen of a colour in linear RGB."""
XYZ = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
WHITE = np.array([0.95047, 1.0, 1.08883])


def lab(colour, seen):
    """Return a colour as it is seen in CIELAB (1976)."""
    coded = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)
    ratio = np.asarray(XYZ) @ np.clip(np.asarray(seen) @ linear, 0, 1) / WHITE
    f = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("seen", SIMULATED.values(), ids=SIMULATED)
def test_colours_can_be_told_apart_by_colour_blind_readers(seen):
    """A distance of 2.3 is just noticeable; the old grey was 11 away from green for deuteranopes."""
    colours = (*style.CYCLE, style.GREY, style.INK)
    pairs = itertools.combinations([lab(colour, seen) for colour in colours], 2)
    assert min(np.linalg.norm(a - b) for a, b in pairs) > 15


def test_series_take_the_colours_of_the_palette_without_being_told():
    _, (axes,) = style.panels()
    lines = [axes.plot([0.0, i])[0].get_color() for i in range(6)]
    assert lines == list(style.CYCLE)


WRITES = """
import json, sys
from io import BytesIO
from analysis.figures import style
figure, (axes,) = style.panels()
axes.plot([0.0, 1.0], label="ours")
style.published_bars(axes, [0.5], [1.0], 0.2)
style.legend(axes, above=True)
written = {}
for kind in style.KINDS:
    style.write(figure, file := BytesIO(), kind)
    written[kind] = file.getvalue().decode("latin-1")
json.dump(written, sys.stdout)
"""


def test_files_are_the_same_from_process_to_process_and_have_no_date():
    def written(seed):
        out = subprocess.run(
            [sys.executable, "-c", WRITES],
            check=True,
            capture_output=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
        ).stdout
        return json.loads(out)

    first, second = written("1"), written("2")
    for kind, begins in {"png": "\x89PNG", "pdf": "%PDF", "svg": "<?xml"}.items():
        assert first[kind] == second[kind]
        assert first[kind].startswith(begins)
        assert "Date" not in first[kind]
    assert set(first) == set(style.KINDS)
