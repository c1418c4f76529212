"""The scorecard's figures show the numbers of its tables."""

import numpy as np
import pandas as pd
import pytest

from analysis.figures import style
from analysis.figures.world.scorecard import coverage_map, curves

ROWS = pd.DataFrame(
    [
        {"corner": corner, "estimator": estimator, "machines": size, "covered": covered, "draws": 100}
        for corner, estimator, hits in (
            ("base", "cuped", (90, 98)),
            ("base", "shrunken", (95, 96)),
            ("wide_tails", "cuped", (50, 60)),
        )
        for size, covered in zip((25, 50), hits, strict=True)
    ]
)


def test_the_map_has_a_cell_for_each_pair_with_the_coverage_of_all_sizes():
    axes = coverage_map(ROWS).axes[0]
    assert [text.get_text() for text in axes.texts] == ["94", "96", "55"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["base", "wide tails"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["cuped", "shrunken"]
    shown = np.ma.getdata(axes.images[0].get_array())
    assert shown[:, 0].tolist() == pytest.approx([0.94, 0.55])


def test_too_narrow_is_red_nominal_white_and_too_wide_blue():
    image = coverage_map(ROWS).axes[0].images[0]
    red, white, blue = (image.cmap(image.norm(share)) for share in (0.80, 0.95, 1.0))
    assert white == pytest.approx((1, 1, 1, 1), abs=0.01)
    assert red[0] > red[2]
    assert blue[2] > blue[0]


def test_curves_have_a_column_a_design_and_a_line_an_estimator():
    rows = pd.DataFrame(
        [
            {"design": design, "estimator": name, "machines": size, "margin": 0.1 / size, "power": size / 100}
            for design in ("day", "week")
            for name in ("cuped", "shrunken")
            for size in (25, 50)
        ]
    )
    figure = curves(rows)
    assert len(figure.axes) == 4
    above, below = figure.axes[0], figure.axes[2]
    assert above.get_lines()[0].get_ydata().tolist() == pytest.approx([0.004, 0.002])
    lines = [line for line in below.get_lines() if line.get_marker() == "o"]
    assert [line.get_ydata().tolist() for line in lines] == [[0.25, 0.5]] * 2
    assert len({line.get_color() for line in lines}) == 2
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["cuped", "shrunken"]


def test_more_estimators_than_colours_differ_by_their_lines():
    names = [f"method {i}" for i in range(len(style.CYCLE) + 1)]
    rows = pd.DataFrame({"design": "day", "estimator": names, "machines": 25, "margin": 0.01, "power": 0.5})
    lines = curves(rows).axes[0].get_lines()
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == len(names)
