"""Series are the counts that brute force sums from the tables, and the spread of machines is what was drawn."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from analysis.profiling.changes import reading, spread
from analysis.profiling.changes import series as module
from analysis.profiling.changes.detection import WatchCriteria, changes
from analysis.profiling.changes.reading import WatchSpan, read
from analysis.profiling.changes.spread import Spread, smoothed
from analysis.profiling.changes.watching import watch
from analysis.profiling.database import Database
from analysis.profiling.query import QueryError
from analysis.profiling.storage import write_samples
from models.randomness import stream
from tests.helpers.profile_tables import long_form, random_tables, write_folder


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    tables = random_tables(3, rows=6000, visits=80, processes=300)
    tables["visits"]["collection"] = "fleet"
    return long_form(tables), write_folder(tmp_path_factory.mktemp("series"), tables)


def test_series_are_the_sums_of_the_rows(profile):
    rows, folder = profile
    with Database([folder]) as database:
        series = read(database, "cycles", WatchSpan(width_s=6 * 3600.0))
    own = rows[(rows["event"] == "cycles") & (rows["count"] > 0)]
    at = ((own["start_s"] - series.clock.since_s) // (6 * 3600.0)).astype(int)
    wanted = own.groupby(["function", at])["count"].sum()
    function, bins = np.nonzero(series.counts())
    got = zip(zip(series.functions[function], bins, strict=True), series.counts()[function, bins], strict=True)
    assert dict(got) == wanted.to_dict()
    assert series.expected().sum(axis=1) == pytest.approx(series.counts().sum(axis=1))
    assert series.everything.sum() == own["count"].sum()
    value = own.groupby("function")["value"].sum().astype(float)
    told = pd.Series(series.weight * series.counts().sum(axis=1), series.functions) / series.everything.sum()
    assert told.to_dict() == pytest.approx((value / value.sum()).to_dict())


def test_samples_that_stand_for_several_are_counted_once_and_cost_what_they_stand_for(tmp_path):
    tables = random_tables(3, rows=3000, visits=40, processes=150)
    tables["visits"]["collection"] = "fleet"
    taken = tables["samples"]["count"]
    tables["samples"] = tables["samples"].assign(count=taken * (1 + tables["samples"]["location"] % 3))
    folder = write_folder(tmp_path, tables)
    table = pa.Table.from_pandas(tables["samples"].assign(taken=taken), preserve_index=False)
    write_samples(folder / "samples.parquet", [table], taken=True)
    with Database([folder]) as database:
        series = read(database, "cycles", WatchSpan(width_s=6 * 3600.0))
    rows = long_form({**tables, "samples": tables["samples"].assign(taken=taken)}).query("event == 'cycles'")
    sums = rows.groupby("function")[["taken", "value"]].sum().loc[series.functions].astype(float)
    np.testing.assert_array_equal(series.counts().sum(axis=1), sums["taken"])
    share = series.weight * series.counts().sum(axis=1) / series.everything.sum()
    assert share == pytest.approx((sums["value"] / rows["value"].astype(float).sum()).to_numpy())


@pytest.mark.parametrize("together", [1, 10**6])
def test_series_and_their_noise_are_those_of_dense_tables(profile, monkeypatch, together):
    """Functions one at a time or all at once: what is expected, at home and excess against loops over a dense table."""
    monkeypatch.setattr(module, "_DENSE_COUNTS", together)
    monkeypatch.setattr(spread, "_TOGETHER", together)
    monkeypatch.setattr(reading, "_ENTRIES_AT_ONCE", 3 * together)
    rows, folder = profile
    with Database([folder]) as database:
        series = read(database, "cycles", WatchSpan(width_s=6 * 3600.0))
    own = rows[(rows["event"] == "cycles") & (rows["count"] > 0)]
    places = ["application", "platform", "datacentre"]
    bins = ((own["start_s"] - series.clock.since_s) // (6 * 3600.0)).astype(int)
    own = own.assign(
        bin=bins, day=own["start_s"] // 86400.0, stratum=list(own[places].itertuples(index=False, name=None))
    )
    strata = list(series.strata.itertuples(index=False, name=None))
    dense = np.zeros((len(series.functions), *series.exposure.shape))
    every = np.zeros(series.exposure.shape)
    for one in own.itertuples():
        at = strata.index(one.stratum), one.bin
        every[at] += one.count
        if one.function in series.functions:
            dense[(series.functions.get_loc(one.function), *at)] += one.count
    np.testing.assert_array_equal(series.exposure, every)
    np.testing.assert_array_equal(series.counts(), dense.sum(axis=1))
    np.testing.assert_array_equal(series.sizes, dense.sum(axis=(1, 2)))
    some = np.array([0, len(dense) - 1])
    expected = (dense.sum(axis=2) / np.maximum(every.sum(axis=1), 1e-300)) @ every
    np.testing.assert_allclose(series.expected(), expected, rtol=1e-9)
    np.testing.assert_allclose(series.expected(some), expected[some], rtol=1e-9)
    np.testing.assert_array_equal(series.of(1), dense[1])
    np.testing.assert_allclose(series.without([0, 2]).exposure, every - dense[0] - dense[2])
    np.testing.assert_array_equal((series.strata_of() > 0).todense(), dense.sum(axis=2) > 0)
    applications = list(dict.fromkeys(series.strata["application"]))
    by_home = [dense[:, (series.strata["application"] == name).to_numpy()].sum(axis=(1, 2)) for name in applications]
    np.testing.assert_array_equal(series.home(), np.argmax(by_home, axis=0))
    sums = spread_of(own, series.functions, ["machine"])
    square, pairs, mean, concentration = (sums[name].to_numpy() for name in sums.columns[:4])
    machine_days, counts = pairs / concentration * mean**2 / concentration, concentration / mean
    variance = smoothed(square / np.maximum(pairs, 1e-300), machine_days, counts)
    np.testing.assert_allclose(series.noise.excess, variance * counts, rtol=1e-9)
    by_day = clumps_of(square / np.maximum(pairs, 1e-300) * counts, variance * counts, mean**2 / concentration)
    square, _, mean, concentration, largest = spread_of(own, series.functions, ["application", "visit"]).to_numpy().T
    seen = np.where(square > concentration, np.maximum(square / mean, largest / 3.0 - 1.0), square / mean)
    by_visit = clumps_of(seen, variance * concentration / mean, mean**2 / concentration)
    np.testing.assert_allclose(series.noise.clumps, np.maximum(by_day, by_visit), rtol=1e-9)
    assert series.noise.clumps.max() > 0.0


def clumps_of(own, usual, units):
    return np.where(own - usual > 2.0 * np.sqrt(2.0 / units) * (1.0 + usual), own - usual, 0.0)


def spread_of(own, functions, units):
    """Of each function sums of how much a unit's count varies beyond independent samples, by day and place."""
    sums = pd.DataFrame(0.0, functions, ["square", "pairs", "mean", "concentration", "largest"])
    for _, here in own.groupby(["day", "stratum"]):
        size = here.groupby(units)["count"].sum()
        n1, n2, n3 = (float((size**power).sum()) for power in (1, 2, 3))
        for function, rows in here.groupby("function"):
            count = rows.groupby(units)["count"].sum().reindex(size.index, fill_value=0)
            share = count.sum() / n1
            square = ((count - share * size) ** 2).sum() - share * (1.0 - share) * (n1 - n2 / n1)
            pairs = share**2 * (n2 - 2.0 * n3 / n1 + n2**2 / n1**2)
            if function in functions:
                most = max(count.max() - sums.loc[function, "largest"], 0)
                sums.loc[function] += [square, max(pairs, 0.0), count.sum(), share**2 * n2, most]
    return sums


def test_subtrees_count_each_sample_once_for_every_function_on_its_path(profile):
    rows, folder = profile
    with Database([folder]) as database:
        series = read(database, "cpu_time", WatchSpan(), subtrees=True)
        whole = database.inclusive(query_of(database), None).set_index("function")["samples"]
    told = pd.Series(series.counts().sum(axis=1), series.functions)
    assert told.to_dict() == whole[whole >= 20].astype(float).to_dict()
    paths = (rows["event"] == "cpu_time") & (rows["stack"] >= 0)
    assert series.everything.sum() == rows.loc[paths, "count"].sum() < told.sum()


@pytest.mark.parametrize("subtrees", [False, True])
@pytest.mark.parametrize("times", [10**4, 10**6, 10**9])
def test_many_samples_of_a_visit_are_counted_exactly(tmp_path, subtrees, times):
    """They are kept in as few bits as hold them."""
    tables = random_tables(3, rows=2000, visits=40, processes=100)
    series = []
    for factor in (1, times):
        many = tables["samples"].assign(count=tables["samples"]["count"] * factor)
        folder = write_folder(tmp_path / str(factor), {**tables, "samples": many})
        with Database([folder]) as database:
            series.append(read(database, "cpu_time", WatchSpan(width_s=6 * 3600.0), subtrees=subtrees))
    few, every = series
    some = every.functions.get_indexer(few.functions)
    np.testing.assert_array_equal(every.counts(some), few.counts() * times)
    np.testing.assert_allclose(every.exposure, few.exposure * times, rtol=1e-12)


def test_callers_are_not_watched_where_no_sample_in_this_time_has_a_call_path(tmp_path):
    """It was a fault of the watch, though the functions themselves can be watched."""
    tables = random_tables(3, rows=4000, visits=120, processes=300)
    tables["visits"] = tables["visits"].assign(collection="fleet", machine=np.arange(120) % 12)
    later = tables["visits"].loc[tables["visits"]["start_s"] >= 86400.0, "visit"]
    process = tables["processes"].loc[tables["processes"]["visit"].isin(later), "process"]
    tables["samples"].loc[tables["samples"]["process"].isin(process), "stack"] = -1
    with Database([write_folder(tmp_path, tables)]) as database:
        whole, part = (watch(database, "cpu_time", WatchCriteria(), WatchSpan(since_s=at)) for at in (None, 86400.0))
    assert (whole.paths_event, part.paths_event, part.subtrees) == ("cpu_time", "", None)
    assert part.series.everything.sum() > 0


def test_visits_of_the_fleet_without_a_process_are_no_fault(tmp_path):
    """Samples are of another collection then; the watch ended in a traceback."""
    tables = random_tables(3, rows=4000, visits=120, processes=300)
    fleet = np.arange(120) < 20
    tables["visits"] = tables["visits"].assign(collection=np.where(fleet, "fleet", "watch"))
    tables["processes"] = tables["processes"].assign(visit=20 + np.arange(300) % 100)
    with Database([write_folder(tmp_path, tables)]) as database:
        for subtrees in (False, True):
            with pytest.raises(QueryError, match="no samples in this time"):
                read(database, "cpu_time", WatchSpan(), subtrees=subtrees)


def query_of(database):
    from analysis.profiling.fleet_samples import of_fleet

    return of_fleet(database, "cpu_time", ())


def test_a_time_restricts_the_visits(profile):
    rows, folder = profile
    with Database([folder]) as database:
        series = read(database, "cycles", WatchSpan(since_s=86400.0, until_s=3 * 86400.0))
        with pytest.raises(QueryError, match="no visits in this time"):
            read(database, "cycles", WatchSpan(since_s=1e9))
        with pytest.raises(QueryError, match="bins of time are more than"):
            read(database, "cycles", WatchSpan(width_s=1.0))
    inside = rows[(rows["event"] == "cycles") & rows["start_s"].between(86400.0, 3 * 86400.0, inclusive="left")]
    assert series.everything.sum() == inside["count"].sum()


def test_the_spread_between_machines_is_measured(tmp_path):
    """Forty machines, six days, twelve functions of one program; log costs differ by 0.3 between machines for good and
    by 0.2 from day to day. The mean excess is within a fifth of the truth: about three standard errors."""
    rng, machines, days, functions = stream(5, "spread"), 40, 6, 12
    lasting, daily = rng.normal(0, 0.3, (machines, 1, functions)), rng.normal(0, 0.2, (machines, days, functions))
    counts = rng.poisson(200.0 * np.exp(lasting + daily))
    tables = random_tables(1, rows=2, visits=machines * days, processes=machines * days, locations=functions)
    machine, day = np.divmod(np.arange(machines * days), days)
    tables["visits"] = tables["visits"].assign(
        collection="fleet", machine=machine, platform="rome", datacentre="east", weight=12, start_s=day * 86400.0
    )
    tables["processes"] = tables["processes"].assign(visit=np.arange(machines * days), application="search", build=-1)
    tables["locations"] = tables["locations"].assign(function=[f"f{at}" for at in range(functions)])
    process, location = np.divmod(np.arange(counts.size), functions)
    tables["samples"] = pd.DataFrame(
        {"process": process, "event": "cycles", "location": location, "stack": -1, "count": counts.ravel()}
    )
    with Database([write_folder(tmp_path / "profile", tables)]) as database:
        series = read(database, "cycles", WatchSpan())
    variance = np.exp(0.3**2 + 0.2**2) - 1.0
    assert series.noise.excess.mean() == pytest.approx(variance * 200.0 * np.exp(0.065), rel=0.2)
    assert series.noise.lasting == pytest.approx((np.exp(0.09) - 1.0) / variance, abs=0.1)


def clumped_profile(folder, functions=400, machines=40, days=6, visits_a_day=4):
    """Write a profile in which functions are on one visit in thirty, with about five samples each; one has the rest."""
    rng, visits = stream(11, "clumped"), machines * days * visits_a_day
    there = rng.random((visits, functions)) < 1 / 30
    counts = np.column_stack([np.where(there, rng.geometric(0.2, there.shape), 0), np.full(visits, 600)])
    tables = random_tables(1, rows=2, visits=visits, processes=visits, locations=functions + 1)
    machine, at = np.divmod(np.arange(visits), days * visits_a_day)
    start_s = at * 86400.0 / visits_a_day + rng.uniform(0.0, 86400.0 / visits_a_day, visits)
    tables["visits"] = tables["visits"].assign(
        collection="fleet", machine=machine, platform="rome", datacentre="east", weight=12, start_s=start_s
    )
    tables["processes"] = tables["processes"].assign(visit=np.arange(visits), application="search", build=-1)
    tables["locations"] = tables["locations"].assign(function=[f"f{at}" for at in range(functions + 1)])
    process, location = np.nonzero(counts)
    tables["samples"] = pd.DataFrame(
        {"process": process, "event": "cycles", "location": location, "stack": -1, "count": counts[process, location]}
    )
    return write_folder(folder, tables)


def test_a_function_on_one_machine_alone_has_the_usual_noise():
    """Nothing is known of how machines differ in it; rounding had it vary without bound, so that it was never named."""
    sums = Spread.of(2)
    square, pairs = np.array([1e4, 1e-7]), np.array([1e5, 3e-8])
    for name, values in (("square", square), ("pairs", pairs)):
        setattr(sums, name, values)
    sums.mean, sums.concentration = np.array([1e4, 1e4]), np.array([1e5, 1e8])
    noise = sums.noise(np.arange(2), 0.0)
    assert noise.clumps.tolist() == [0.0, 0.0]
    assert noise.excess[1] == pytest.approx(0.1 * 1e4)  # its count of a machine-day times the other's variance


def test_functions_whose_samples_come_in_clumps_raise_no_false_alarm(tmp_path):
    """Of 400 healthy functions 358 were told, as their counts were taken to be as quiet as independent samples."""
    with Database([clumped_profile(tmp_path / "profile")]) as database:
        series = read(database, "cycles", WatchSpan())
    clumps = np.median(series.noise.clumps[:-1])
    assert clumps == pytest.approx(8.0, rel=0.15)  # E[x²] / E[x] of clumps − 1
    assert not changes(series, WatchCriteria(false_alarms=0.01))


def test_a_variance_that_is_told_well_is_the_functions_own():
    variances = smoothed(np.array([0.09] + [0.01] * 20), np.full(21, 1e4), np.full(21, 1e4))
    assert variances == pytest.approx([0.09] + [0.01] * 20, rel=0.01)


def test_functions_tell_together_how_machines_differ_where_none_does_alone():
    """15 machine-days of each of 40 functions: three of them say nothing, forty say what is usual."""
    days, counts = np.full(40, 15.0), np.full(40, 30.0)
    own = np.linspace(0.1, 0.3, 40)
    assert np.all(smoothed(own, days, counts) >= 0.1)
    assert np.all(smoothed(own[:3], days[:3], counts[:3]) < 0.06)
