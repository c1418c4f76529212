"""Predicted neighbours: an exact law is found again, and what cannot be predicted is said with its reason."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.profiling.database import Database
from analysis.profiling.query import QueryError
from analysis.profiling.questions.catalogue import QUESTIONS
from analysis.profiling.questions.corunners import EVENTS, CoRunnerSettings, JobVisits, co_runners, job_visits
from models.randomness import stream
from tests.helpers.profile_in_memory import ProfileTable
from tests.helpers.profile_tables import long_form, random_tables, write_folder

BUSY = np.array([2.0, 1.0, 3.0, 1.5, 0.5])
MISSES_PER_S = np.array([1.0, 3.0, 0.5, 2.0, 1.2])
"""Of a busy thread."""
SENSITIVITY = np.array([0.05, 0.15, 0.1, 0.2, 0.0])
NAMES = ("a", "b", "c", "d", "e")


def obeying(visits=300, machines=60, present=0.6):
    """Visits on which CPI is exactly base + sensitivity × pressure, and pressure is made of who is there."""
    rng = stream(1, "exact law")
    there = rng.random((visits, BUSY.size)) < present
    there[:, 0] |= there.sum(axis=1) < 2
    visit, job = np.nonzero(there)
    machine = visit % machines
    length = 1.0
    busy, misses = BUSY[job], BUSY[job] * MISSES_PER_S[job]
    intensity = MISSES_PER_S / (misses.sum() / busy.sum())
    own = BUSY[job] * intensity[job]
    beside = np.bincount(visit, own)[visit] - own
    mean_busy = busy.sum() / np.unique(visit).size
    cpi = np.exp(SENSITIVITY[job] * beside / mean_busy)
    instructions = np.full(job.size, 100.0)
    return JobVisits(
        names=NAMES,
        platforms=("p",),
        application=job.astype(np.int64),
        visit=visit.astype(np.int64),
        machine=machine.astype(np.int64),
        platform=np.zeros(job.size, np.int64),
        instances=np.ones(job.size),
        busy_threads=busy / length,
        events=np.array([cpi * instructions, instructions, misses]),
        samples=np.full((3, job.size), 1e6),
    )


@pytest.fixture(scope="module")
def visits():
    return obeying()


def test_an_exact_law_is_found_again(visits):
    model = co_runners(visits, CoRunnerSettings())
    assert model.busy_threads == pytest.approx(BUSY)
    assert model.sensitivity == pytest.approx(SENSITIVITY, abs=0.004)
    busy = visits.busy_threads
    mean = visits.events[2].sum() / busy.sum()
    assert model.intensity == pytest.approx(MISSES_PER_S / mean, rel=1e-3)
    pair = model.predicted(2.0).set_index(["application", "beside"]).loc["d", "b"]
    assert pair["effect"] == pytest.approx(by_law(visits, visits, 2.0), rel=0.03)
    assert pair["low"] <= pair["effect"] <= pair["high"]


def by_law(visits, rows, threads):
    """Return the true effect on d of threads of b in place of d's mean neighbours in some rows."""
    job, visit = rows.application, rows.visit
    own = job == NAMES.index("d")
    misses, busy = (np.bincount(visit, values)[visit[own]] - values[own] for values in (rows.events[2], BUSY[job]))
    more = MISSES_PER_S[NAMES.index("b")] - misses.sum() / busy.sum()
    unit = visits.events[2].sum() / np.unique(visits.visit).size
    return SENSITIVITY[NAMES.index("d")] * threads * more / unit


def test_a_pair_that_was_never_seen_together_is_predicted_all_the_same(visits):
    apart = visits.without(visits.shared(NAMES.index("d"), NAMES.index("b")))
    assert apart.shared(NAMES.index("d"), NAMES.index("b")).size == 0
    assert apart.visit.size < visits.visit.size
    pair = co_runners(apart, CoRunnerSettings()).predicted(2.0).set_index(["application", "beside"]).loc["d", "b"]
    assert pair["effect"] == pytest.approx(by_law(visits, apart, 2.0), rel=0.05)


def test_prediction_is_in_proportion_to_threads(visits):
    model = co_runners(visits, CoRunnerSettings())
    assert model.predicted(6.0)["effect"].to_numpy() == pytest.approx(3.0 * model.predicted(2.0)["effect"].to_numpy())


def test_slow_machines_that_jobs_share_widen_the_intervals(visits):
    slow = np.exp(0.1 * stream(2, "slow machines").standard_normal(60))[visits.machine]
    events = visits.events * np.array([slow, np.ones_like(slow), np.ones_like(slow)])
    sure, unsure = (co_runners(rows, CoRunnerSettings()) for rows in (visits, replace(visits, events=events)))
    assert (unsure.sensitivity_sd > 5 * sure.sensitivity_sd).all()
    assert (np.abs(unsure.sensitivity - SENSITIVITY) < 3 * unsure.sensitivity_sd).all()


def table(rows, **dropped):
    """Return visits of jobs as a profile: samples by application and visit, processes, visits."""
    keys = {"application": np.array(rows.names)[rows.application], "visit": rows.visit, "platform": "p"}
    events = pd.concat(
        [
            pd.DataFrame(
                {**keys, "machine": rows.machine, "event": event, "samples": 10**6, "value": values * 300 * 12}
            )
            for event, values in zip(("cycles", "instructions", "llc_misses"), rows.events, strict=True)
            if event not in dropped
        ]
    )
    processes = pd.DataFrame({k: keys[k] for k in ("visit", "application")} | {"cpu_s": rows.busy_threads * 300})
    number, first = np.unique(rows.visit, return_index=True)
    visits = {"visit": number, "machine": rows.machine[first], "platform": "p", "length_s": 300.0, "weight": 12}
    tables = {"processes": processes, "visits": pd.DataFrame(visits).assign(collection="fleet")}
    return ProfileTable(events.assign(collection="fleet"), tables)


@pytest.fixture(scope="module")
def profile(visits):
    return table(visits)


def test_a_profile_is_read_as_what_jobs_did(visits, profile):
    rows = job_visits(profile)
    assert rows.names == NAMES
    assert rows.busy_threads == pytest.approx(visits.busy_threads)
    assert rows.events == pytest.approx(visits.events)


def test_only_jobs_of_visits_that_stand_for_the_fleet_count(tmp_path):
    """Neither the kernel's work nor what other collectors saw; compared with the tables put together by pandas."""
    tables = random_tables(5, rows=3000, visits=40, processes=90)
    for name in ("samples", "rates"):
        tables[name]["event"] = tables[name]["event"].replace("cpu_time", "llc_misses")
    samples = tables["samples"]
    tables["samples"] = samples[(samples["event"] != "llc_misses") | (samples["process"] % 3 > 0)]
    of_fleet = tables["visits"].query("collection == 'fleet'").set_index("visit")
    jobs = tables["processes"].query("application != '[kernel]' and visit in @of_fleet.index")
    known = jobs.groupby(["visit", "application"]).size()
    sums = long_form(tables).groupby(["event", "visit", "application"])[["count", "value"]].sum()
    with Database([write_folder(tmp_path, tables)]) as database:
        rows = job_visits(database)
    names = np.array(rows.names)[rows.application]
    assert list(zip(rows.visit, names, strict=True)) == known.index.tolist()
    assert rows.instances.tolist() == known.tolist()
    weight = of_fleet["weight"].loc[rows.visit].to_numpy() * 300.0
    for at, event in enumerate(EVENTS):
        own = sums.loc[event].reindex(known.index, fill_value=0)
        assert rows.samples[at].tolist() == own["count"].tolist()
        assert rows.events[at] == pytest.approx(own["value"].to_numpy(float) / weight)
    assert (rows.samples[EVENTS.index("llc_misses")] == 0).any()


def test_the_question_predicts_and_says_what_could_have_been_found(profile):
    predicted = QUESTIONS["colocate"].predict(profile, top="3", threads="2")
    assert (predicted.threads, predicted.pairs, len(predicted.rows)) == (2.0, 20, 3)
    sizes = predicted.rows["effect"].abs()
    assert sizes.is_monotonic_decreasing
    assert predicted.slower + predicted.faster <= predicted.pairs
    assert predicted.half_width > 0
    only = QUESTIONS["colocate"].predict(profile, application="d", beside="b").rows
    assert only[["application", "beside", "advice"]].to_numpy().tolist() == [["d", "b", "apart"]]
    assert only["visits_together"].tolist() == [obeying().shared(3, 1).size]
    assert QUESTIONS["shared"].predict(profile) is None


def test_jobs_with_too_few_visits_are_not_predicted_and_why(visits):
    few = np.flatnonzero(visits.application == 1)[4:]
    keep = np.setdiff1d(np.arange(visits.visit.size), few)
    names = ("application", "visit", "machine", "platform", "instances", "busy_threads", "events", "samples")
    rows = replace(visits, **{name: getattr(visits, name)[..., keep] for name in names})
    predicted = QUESTIONS["colocate"].predict(table(rows))
    assert predicted.left_out.to_numpy().tolist() == [
        ["b", 4, 4, "4 visits of 4 machines, 5 visits of 5 machines are needed"]
    ]
    assert "b" not in set(predicted.rows["application"]) | set(predicted.rows["beside"])
    none = QUESTIONS["colocate"].predict(table(rows), min_visits=1000)
    assert (none.pairs, none.reason) == (0, "no pair of applications was visited often enough")


def test_nobody_is_put_beside_others_by_the_hundred(visits):
    model = co_runners(visits, CoRunnerSettings())
    assert set(model.predicted(16.0)["beside"]) == set(NAMES)
    assert set(model.predicted(16.1)["beside"]) == set("abcd")
    predicted = QUESTIONS["colocate"].predict(table(visits), threads=16.1)
    assert (predicted.too_small, predicted.pairs) == (1, 16)


def test_a_profile_without_misses_predicts_nothing_and_says_why(visits):
    predicted = QUESTIONS["colocate"].predict(table(visits, llc_misses=True))
    assert len(predicted.rows) == 0
    assert "llc_misses" in predicted.reason


@pytest.mark.parametrize("ask", ["ask", "predict"])
@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("threads", 0, "threads: should be above 0, got 0"),
        ("threads", "many", 'threads: should be a number, got "many"'),
        ("application", "dd", 'unknown application "dd"'),
        ("beside", "f", 'unknown application "f"'),
    ],
)
def test_wrong_parameters_are_refused(profile, ask, parameter, value, message):
    with pytest.raises(QueryError, match=message):
        getattr(QUESTIONS["colocate"], ask)(profile, **{parameter: value})
