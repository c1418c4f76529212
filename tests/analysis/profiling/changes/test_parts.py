"""Changes on one platform or in one data centre are found beside what the rest of the fleet hides, and told once."""

from dataclasses import astuple, replace

import numpy as np
import pandas as pd
import pytest

from analysis.profiling.changes import parts as module
from analysis.profiling.changes.detection import SeriesChange, WatchCriteria, changes, drifting
from analysis.profiling.changes.parts import (
    HALVES,
    LEAST_IN_PART,
    PartChange,
    changes_in_parts,
    clearest_of_both,
    scanned_parts,
    scanned_series,
)
from analysis.profiling.changes.reading import WatchSpan, read
from analysis.profiling.changes.scan import Geometry, threshold
from analysis.profiling.database import Database
from benchmarks.watch import series_of
from models.randomness import stream
from tests.helpers.drawn_profiles import write
from tests.helpers.profile_tables import long_form, random_tables, write_folder
from tests.helpers.watched_fleets import Design, WatchedFleet

DESIGN = Design(functions=8, days=20)
PLACES = [("a", platform, centre) for platform in ("broadwell", "haswell", "skylake") for centre in ("east", "west")]
TAGS = pd.DataFrame(PLACES, columns=["application", "platform", "datacentre"])
SKYLAKE = (TAGS["platform"] == "skylake").to_numpy()


def drawn(name, functions=8, mean=40.0, grown=1.0, where=SKYLAKE):
    """Series of 20 days on six places, alike but for a function that grows in some of them on the last."""
    rng = stream(21, name)
    level = np.full((functions, 6, 480), mean)
    level[0, where, 456:] *= grown
    rest = np.full((1, 6, 480), 1e5)
    return series_of(TAGS, np.concatenate([rng.poisson(level), rest]).astype(float), DESIGN)


CRITERIA = WatchCriteria(min_cost=0.0)


def both(series, criteria=CRITERIA):
    scanned, _ = scanned_parts(series, criteria)
    own = changes(series, criteria, HALVES * len(series.functions))
    local = changes_in_parts(series, criteria, scanned, own)
    parts = [PartChange(part, some, change) for part, some, named in local for change in named]
    return own, parts, clearest_of_both(own, parts)


def test_growth_on_one_platform_that_the_others_hide_is_found_there():
    series = drifting(drawn("diluted", grown=1.15))
    own, parts, told = both(series)
    assert not changes(series, CRITERIA)
    assert not own
    assert {(own.part.value, own.change.series, own.change.kind) for own in parts} == {("skylake", 0, "growth")}
    (told_once,) = told
    assert np.exp(told_once.change.log_factor) == pytest.approx(1.15, abs=0.06)
    assert told_once.change.start == pytest.approx(456, abs=3)


def test_growth_everywhere_is_told_of_the_whole_fleet():
    (told,) = both(drifting(drawn("everywhere", grown=1.5, where=np.ones(6, dtype=bool))))[2]
    assert isinstance(told, SeriesChange)
    assert (told.series, told.kind) == (0, "growth")


def test_a_season_of_the_week_that_the_whole_fleet_tells_is_no_change_of_a_part():
    """Hours of a weekend stood out in a data centre, whose samples did not show for certain that others do, too."""
    fleet = WatchedFleet(237, "nothing", Design(functions=60, walk=0.003))
    series = drifting(series_of(*fleet.cells(fleet.counts()), fleet.design))
    (east,) = (own for own in scanned_parts(series, CRITERIA)[0] if own.part.value == "east")
    some = series.only(east.part)
    assert not changes(some, CRITERIA, HALVES * 4_000, among=east.functions)
    alone = changes(replace(some, whole=None), CRITERIA, HALVES * 4_000, among=east.functions)
    assert [change.series for change in alone] == [29]


@pytest.mark.parametrize("world", range(4))
def test_where_nothing_changed_no_part_did(world):
    assert not both(drifting(drawn(f"healthy {world}", functions=60)))[1]


def test_cost_that_moved_in_the_whole_fleet_did_not_grow_in_a_part_of_it():
    _, parts, _ = both(drifting(drawn("diluted", grown=1.15)))
    (growth,) = parts
    moved = replace(growth.change, kind="shift", root=1.0)
    assert clearest_of_both([moved], [growth]) == [moved]
    clearer = replace(growth.change, root=growth.change.root + 1.0)
    assert clearest_of_both([clearer], [growth]) == [clearer]
    assert clearest_of_both([replace(growth.change, root=1.0)], [growth]) == [growth]


@pytest.mark.parametrize(("of_fleet", "own"), [(1e-4, False), (1e-6, True)])
def test_days_of_a_part_differ_at_least_as_much_as_those_of_the_fleet(of_fleet, own):
    """A part whose days are alike has the fleet's drift; one whose days differ by 10% beyond chance has its own."""
    cells = drawn("drifting").cells.toarray().reshape(9, 6, 480)
    cells[0, SKYLAKE, 456:] *= 1.5
    if own:
        cells[:8] *= np.repeat(np.exp(stream(21, "days").normal(0.0, 0.1, (8, 1, 20))), 24, axis=2)
    series = series_of(TAGS, cells, DESIGN)
    series = replace(series, noise=replace(series.noise, drift=np.full(1, of_fleet), walk=np.full(1, of_fleet / 10)))
    (skylake,) = (part for part in scanned_parts(series, CRITERIA)[0] if part.part.value == "skylake")
    ((_, some, _),) = changes_in_parts(series, CRITERIA, [skylake], [])
    assert some.noise.drift.min() >= of_fleet
    assert some.noise.walk.min() >= of_fleet / 10
    assert own == (some.noise.drift.max() + some.noise.walk.max() > 1e-3)


def test_scanned_are_functions_that_would_be_found_if_they_doubled_for_a_day(monkeypatch):
    """By hand: of 9 functions all are told everywhere, of a twentieth of their samples none; machines decide, too."""
    criteria = WatchCriteria()
    series = drawn("scanned")
    scanned, left_out = scanned_parts(series, criteria)
    assert {part.part.value: len(part.functions) for part in scanned} == {
        "broadwell": 9,
        "haswell": 9,
        "skylake": 9,
        "east": 9,
        "west": 9,
    }
    assert (left_out, scanned_series(scanned)) == (0, 90)
    bound = threshold(HALVES * 5 * 9, len(series.geometry.lengths) * 480, 0.01)
    least = bound**2 / (2.0 * (2.0 * np.log(2.0) - 1.0)) / 48.0
    few, enough = (
        {len(part.functions) for part in scanned_parts(drawn("few", mean=part * least), criteria)[0]}
        for part in (0.8, 1.3)
    )
    assert few == {1, 9}  # In data centres there are half as many again.
    assert enough == {9}
    lonely = tuple(replace(part, side_by_side=LEAST_IN_PART - 1) for part in series.parts_of)
    assert scanned_parts(replace(series, parts_of=lonely), criteria) == ([], 0)
    monkeypatch.setattr(module, "MOST_SERIES", 12)
    scanned, left_out = scanned_parts(series, criteria)
    assert (sum(len(part.functions) for part in scanned), left_out) == (12, 33)


def test_a_function_of_one_platform_is_not_looked_at_there_again():
    series = drawn("of one platform")
    alone = series.cells.toarray().reshape(9, 6, 480)
    alone[3, ~SKYLAKE] = 0.0
    series = series_of(TAGS, alone, DESIGN)
    looked_at = {part.part.value: part.functions.tolist() for part in scanned_parts(series, WatchCriteria())[0]}
    assert 3 not in looked_at["skylake"]
    assert 3 in looked_at["east"]


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    tables = random_tables(3, rows=6000, visits=80, processes=300)
    tables["visits"]["collection"] = "fleet"
    return write_folder(tmp_path_factory.mktemp("parts"), tables)


def test_series_of_a_part_are_its_strata_alone(profile):
    with Database([profile]) as database:
        series = read(database, "cycles", WatchSpan())
        assert {part.dimension for part in series.parts_of} == {"platform", "datacentre"}
        for part in series.parts_of:
            some, inside = series.only(part), (series.strata[part.dimension] == part.value).to_numpy()
            for row in range(0, len(series.functions), 7):
                whole = series.of(row)
                np.testing.assert_array_equal(some.of(row), whole * inside[:, None])
                np.testing.assert_array_equal(some.counts([row])[0], whole[inside].sum(axis=0))
                share = whole.sum(axis=1) / np.maximum(series.exposure.sum(axis=1), 1.0)
                expected = (share[:, None] * series.exposure)[inside].sum(axis=0)
                np.testing.assert_allclose(some.expected([row])[0], expected, rtol=1e-9, atol=1e-9)
            np.testing.assert_array_equal(some.sizes, some.counts().sum(axis=1))
            np.testing.assert_array_equal(some.everything, series.everything)


def test_machines_of_a_part_differ_as_they_do_there(tmp_path):
    """On one platform a function costs 1 or 3 by machine and day; on the other its machines are alike."""
    platforms = ("even", "odd") * 6
    folder = write(tmp_path, stream(4, "machines of parts"), samples=5000, platforms=platforms, uneven="odd")
    with Database([folder]) as database:
        series = read(database, "cpu", WatchSpan())
    row = list(series.functions).index("f12")
    excess = {part.value: float(part.excess[row]) for part in series.parts_of}
    assert excess["odd"] > 4.0 * excess["even"]


def test_windows_of_a_part_are_of_its_machines_alone(tmp_path):
    tables = random_tables(3, rows=4000, visits=120, processes=300)
    machine = np.arange(120) % 10
    platform = np.where(machine < 3, "rome", "haswell")
    tables["visits"] = tables["visits"].assign(collection="fleet", machine=machine, platform=platform)
    with Database([write_folder(tmp_path, tables)]) as database:
        series = read(database, "cycles", WatchSpan(width_s=6 * 3600.0))
    clock, rows = series.clock, long_form(tables).query("event == 'cycles'")
    bins = ((rows["start_s"] - clock.since_s) // (6 * 3600.0)).astype(int)
    exposure = np.zeros((10, clock.bins))
    np.add.at(exposure, (rows["machine"], bins), rows["count"])
    parts = {part.value: part for part in series.parts_of if part.dimension == "platform"}
    for value, machines in (("rome", exposure[:3]), ("haswell", exposure[3:])):
        expected, told = Geometry.of(machines, clock.day, clock.period), parts[value].geometry_of(0)
        for own, twin in zip(astuple(told), astuple(expected), strict=True):
            np.testing.assert_allclose(own, twin, rtol=1e-9)
