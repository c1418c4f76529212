"""The printed tables of Stewart et al. (2008): what follows from their numbers, and that other numbers would fail."""

import numpy as np
import pytest

from analysis.figures.criteria import from_cells, judge, number, printed
from analysis.figures.crossplatform import crossplatform_printed as tables
from scenarios.papers.rows import published

MEASURES = {
    "table1": tables.measure_table1,
    "table4": tables.measure_table4,
    "table5": tables.measure_table4,
    "table6": tables.measure_table4,
    "table7": tables.measure_table7,
    "table8": tables.measure_table8,
    "fig7": tables.measure_fig7,
}


def paper(row):
    return printed(published(f"crossplatform/{row}"))


def of_the_paper(row, measured):
    """Return which checks of the paper's own arithmetic fail; findings are of simulated worlds, judged elsewhere."""
    told = judge(from_cells(measured), published(f"crossplatform/{row}"))
    checks = [check for check in told if check.kind != "finding"]
    assert checks, row
    return [check.name for check in checks if not check.holds]


@pytest.mark.parametrize("row", MEASURES)
def test_the_printed_results_follow_from_the_printed_cells(row):
    assert of_the_paper(row, MEASURES[row](paper(row))) == []


@pytest.mark.parametrize(
    ("row", "series", "x", "value", "failed"),
    [
        ("table1", "l2_misses", 1, 1000.0, ["agreement"]),
        ("table4", "error_published", 2, 0.08, ["agreement"]),
        ("table4", "error_cycle_mix", 3, 0.09, ["agreement"]),
        ("table5", "error_published", 4, 0.14, ["agreement"]),
        ("table6", "error_cycle_scalar", 1, 0.10, ["agreement"]),
        ("table7", "rank_cycle", 7, 3.0, ["agreement"]),
        ("table8", "predicted_xeon", 4, 70.0, ["agreement"]),
        ("fig7", "rank_published", 1, 2.5, ["agreement", "printed_right_published"]),
    ],
)
def test_another_cell_gives_another_result(row, series, x, value, failed):
    table = paper(row)
    table.loc[(table["series"] == series) & (table["x"] == x), "value"] = value
    assert of_the_paper(row, MEASURES[row](table)) == failed


@pytest.mark.parametrize("row", MEASURES)
def test_what_follows_from_printed_cells_is_no_finding(row):
    """A table of printed cells alone meets no criterion: each of them asks for what simulated worlds show."""
    made = judge(from_cells(MEASURES[row](paper(row))), published(f"crossplatform/{row}"))
    assert [check.name for check in made if check.kind == "finding" and np.isfinite(check.measured)] == []


@pytest.mark.parametrize(("row", "median"), [("table4", 0.065), ("table5", 0.12), ("table6", 0.125)])
def test_the_medians_over_ten_targets(row, median):
    assert number(MEASURES[row](paper(row)), "median_published") == pytest.approx(median)


def test_the_benchmark_has_no_column_where_it_was_the_application_itself():
    made = tables.measure_table4(paper("table6"))
    assert np.isnan(number(made, "median_benchmark"))
    assert np.isnan(number(made, "beats_benchmark"))


def test_the_printed_ranks_give_one_right_choice_more_than_is_printed():
    made = tables.measure_fig7(paper("fig7"))
    assert [number(made, f"right_{name}") for name in ("published", "benchmark", "cycle")] == [231, 217, 148]
    assert [round(number(made, f"times_{name}"), 1) for name in ("benchmark", "cycle")] == [1.7, 5.0]


def test_losses_need_more_than_ranks():
    assert np.isnan(number(tables.measure_table7(paper("table7")), "loss_max_published"))
