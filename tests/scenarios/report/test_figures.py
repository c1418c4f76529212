"""Figures of a report can be read: legends beside the data, cells high enough for their numbers, panels stacked."""

from io import BytesIO

import numpy as np
import pandas as pd
import pytest

from analysis.figures.gwp.hot_functions import draw_functions
from analysis.figures.occupancy.utilisation import draw_beside
from analysis.figures.style import COLUMN_INCHES, write
from analysis.figures.world.scorecard import coverage_map
from analysis.figures.wsmeter.fleet import draw_day, draw_estimates

EPOCHS = pd.DataFrame({"start_s": [0.0, 300.0], "quota_vcpu": 8.0, "cpu_s": 1200.0, "energy_j": 6e4})
EPOCHS = EPOCHS.assign(capped_share=0.5)
FUNCTIONS = pd.DataFrame({"function": [f"f{i}" for i in range(10)], "share": [0.04 - 0.003 * i for i in range(10)]})
FUNCTIONS = FUNCTIONS.assign(low=FUNCTIONS["share"] - 1e-3, high=FUNCTIONS["share"] + 1e-3, true=FUNCTIONS["share"])
ESTIMATES = pd.DataFrame({"estimator": ["a", "b"] * 2, "machines": [25, 25, 50, 50], "change": 0.05, "margin": 0.04})


def test_the_panels_of_a_day_stand_below_each_other():
    figure = draw_day(EPOCHS, threads=10.0)
    figure.draw_without_rendering()
    above, below = (axes.get_position() for axes in figure.axes)
    assert below.y1 < above.y0
    assert figure.get_figwidth() == COLUMN_INCHES


@pytest.mark.parametrize("figure", [draw_functions(FUNCTIONS), draw_day(EPOCHS, 10.0), draw_estimates(ESTIMATES, 0.05)])
def test_a_legend_is_not_on_the_data(figure):
    figure.draw_without_rendering()
    (legend,) = [axes.get_legend() for axes in figure.axes if axes.get_legend()]
    box = legend.get_window_extent()
    assert not any(box.overlaps(axes.get_window_extent()) for axes in figure.axes)
    assert figure.bbox.x0 <= box.x0
    assert box.x1 <= figure.bbox.x1


@pytest.mark.parametrize("corners", [1, 2, 12])
@pytest.mark.parametrize("names", [["adjusted"], ["cuped", "published-widened", *(f"method-{i}" for i in range(8))]])
def test_cells_of_a_heat_map_are_higher_than_their_numbers(corners, names):
    rows = [
        {"corner": f"corner {i}", "estimator": name, "covered": 95, "draws": 100}
        for i in range(corners)
        for name in names
    ]
    figure = coverage_map(pd.DataFrame(rows))
    figure.draw_without_rendering()
    (axes,) = figure.axes
    number = axes.texts[0].get_window_extent()
    assert axes.get_window_extent().height / corners > 1.4 * number.height
    assert axes.get_window_extent().width / len(names) > number.width
    title = axes.title.get_window_extent()
    assert figure.bbox.x0 <= title.x0
    assert title.x1 <= figure.bbox.x1
    assert title.y1 <= figure.bbox.y1


def test_the_svg_of_a_long_run_is_no_larger_than_that_of_a_middling_one():
    def size(intervals):
        busy = np.random.default_rng(0).uniform(0.2, 0.9, intervals)
        beside = pd.DataFrame({"start_s": 60.0 * np.arange(intervals), "law": busy + 0.01, "counted": busy})
        write(draw_beside(beside), file := BytesIO(), "svg")
        return len(file.getvalue())

    assert size(20) < size(1_000)
    assert size(4_000) < size(1_000)
