"""Both sides read from databases in numbers are those of tables with every name."""

import numpy as np
import pandas as pd
import pytest

from analysis.profiling import counted
from analysis.profiling import database as databases
from analysis.profiling.database import Database
from analysis.profiling.fleet_samples import of_fleet
from analysis.profiling.regressions.comparison import AlarmCriteria, CostComparison
from analysis.profiling.regressions.reading import CostReader
from analysis.profiling.shelf import Shelf
from benchmarks import profiles

TAGS = ("function", "image", "application", "revision", "compiler", "kernel", "platform", "datacentre")
LOOSE = AlarmCriteria(0.9, 1.0, 0.0, "benjamini-hochberg")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A profile of six programs on twelve machines; a build lacks a library's symbols, one function grows eightfold."""
    sizes = {"MACHINES": 12, "VISITS": 80, "PROCESSES": 600, "PROGRAMS": 6, "LOCATIONS": 6 * profiles.PER_PROGRAM}
    for name, size in sizes.items():
        monkeypatch.setattr(profiles, name, size)
    profiles.synthesise(tmp_path, 40_000)
    places = pd.read_parquet(tmp_path / "locations.parquet")
    nameless = (places["image"] == "libz") & (places["build"] == 4) & (places["location"] % 2 == 0)
    places.assign(function=places["function"].mask(nameless, "[unknown]")).to_parquet(tmp_path / "locations.parquet")
    samples = pd.read_parquet(tmp_path / "samples.parquet")
    dear = samples["location"].isin(places["location"][places["function"] == "job1::run_40"])
    count = samples["count"] * np.where(dear & (samples["process"] > 300), 8, 1)
    samples.assign(count=count).to_parquet(tmp_path / "samples.parquet")
    return tmp_path


@pytest.mark.parametrize("chunk", [1, 10**6])
def test_a_comparison_is_that_of_a_table_with_every_name(folder, monkeypatch, chunk):
    """Also where one answer of so many rows would be refused."""
    with Database([folder]) as database:
        query = of_fleet(database, "cycles", TAGS)
        days = profiles.DAYS * 43200.0
        table = [database.clustered(query.during(*span)) for span in ((None, days), (days, None))]
        monkeypatch.setattr(databases, "MOST_ROWS", 10)
        monkeypatch.setattr(counted, "_PENDING", chunk)
        reader = CostReader()
        first = reader.add(database, "cycles", (None, days), later=False)
        second = reader.add(database, "cycles", (days, None), later=True)
    assert [first.samples, second.samples] == [int(side["samples"].sum()) for side in table]
    named, read = CostComparison.of(*table), reader.comparison()
    assert read.functions.tolist() == named.functions.tolist()
    np.testing.assert_allclose(read.value, named.value)
    for ask in ("alarms", "improvements", "detectable"):
        answers = [getattr(comparison, ask)(LOOSE) for comparison in (read, named)]
        pd.testing.assert_frame_equal(*answers, rtol=1e-9)
    assert len(read.alarms(LOOSE))


def test_arrays_come_back_from_memory_and_from_a_file():
    arrays = [np.arange(5, dtype=np.int32), np.zeros(0), np.array([0.1, 0.2, 0.3])]
    for shelf in (Shelf(0), Shelf(10**6)):
        places = [shelf.put(array) for array in arrays]
        for array, place in zip(arrays, places, strict=True):
            np.testing.assert_array_equal(shelf.get(place), array)
        assert shelf.get(places[2], 1, 3).tolist() == [0.2, 0.3]
