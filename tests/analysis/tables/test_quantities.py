import numpy as np
import pandas as pd
import pytest

from analysis.tables.quantities import is_numeric, numbers, periods, times_s


@pytest.mark.parametrize(
    ("cells", "values", "scale"),
    [
        (["1", "2.5", "-3e2"], [1.0, 2.5, -300.0], None),
        (["500m", "2"], [0.5, 2.0], "quantity"),
        (["1.5GiB", "512Mi", "1G"], [1.5 * 2**30, 512 * 2.0**20, 1e9], "quantity"),
        (["12ms", "3us", "4 s"], [0.012, 3e-6, 4.0], "duration"),
        (["5m", "1h"], [300.0, 3600.0], "duration"),
        (["5m", "7m"], [0.005, 0.007], "quantity"),
        (["3%", "12"], [0.03, 12.0], "quantity"),
        (["2", "N/A", "", "ten"], [2.0, np.nan, np.nan, np.nan], None),
        (["2", "5 parsecs"], [2.0, np.nan], "quantity"),
        (["12ms", "1.5GiB"], [np.nan, 1.5 * 2**30], "quantity"),
    ],
)
def test_numbers_are_read_with_their_units(cells, values, scale):
    read = numbers(pd.Series(cells))
    np.testing.assert_allclose(read.value, values, rtol=1e-12)
    assert read.scale == scale


def test_a_column_known_to_be_of_durations_has_minutes():
    assert numbers(pd.Series(["5m"]), "duration").value.tolist() == [300.0]


@pytest.mark.parametrize(
    ("cells", "is_one"),
    [(["1", "2", "x"], True), (["1", "x", "y"], False), (["007", "1"], False), (["0.5", "0"], True), ([""], False)],
)
def test_a_column_is_one_of_numbers_by_what_most_of_its_cells_are(cells, is_one):
    texts = pd.Series(cells)
    assert is_numeric(texts, numbers(texts).value) is is_one


@pytest.mark.parametrize(
    ("cell", "time_s"),
    [
        ("2026-03-06T00:00:00Z", 1772755200.0),
        ("2026-03-06 01:00:00+01:00", 1772755200.0),
        ("2026-03-06", 1772755200.0),
        ("2026-03-06T00:00:00.25", 1772755200.25),
        ("1772755200", 1772755200.0),
        ("1772755200123", 1772755200.123),
        ("1772755200123456", 1772755200.123456),
        (1772755200123456789, 1772755200.1234567),
        (pd.Timestamp("2026-03-06", tz="UTC"), 1772755200.0),
        ("12", np.nan),
        ("yesterday", np.nan),
        ("", np.nan),
    ],
)
def test_points_in_time_are_read_in_every_form(cell, time_s):
    np.testing.assert_allclose(times_s(pd.Series([cell]))[0], [time_s], rtol=1e-15)


def test_stamps_without_a_zone_are_of_the_zone_that_is_said():
    value, zoneless = times_s(pd.Series(["2026-03-06T01:00:00", "2026-03-06T00:00:00Z"]), "Europe/Berlin")
    assert (value.tolist(), zoneless) == ([1772755200.0, 1772755200.0], True)


def test_an_hour_that_a_change_of_clocks_skips_or_repeats_is_no_point_in_time():
    cells = pd.Series(["2026-03-29T02:30:00", "2026-10-25T02:30:00", "2026-10-25T04:30:00"])
    assert np.isnan(times_s(cells, "Europe/Berlin")[0]).tolist() == [True, True, False]


def test_days_begin_at_midnight_of_their_zone_across_a_change_of_clocks():
    times, _ = times_s(pd.Series(["2026-03-28T23:30", "2026-03-29T00:30", "2026-03-30T00:30"]), "Europe/Berlin")
    first, *others = periods(times, 86400.0, "Europe/Berlin")
    assert [other - first for other in others] == [1, 2]
    assert len(set(periods(times, 86400.0))) == 2
