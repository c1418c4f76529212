"""Documented questions, asked of a database and of fleets whose answers are known."""

import numpy as np
import pandas as pd
import pytest

from analysis.profiling.database import Database
from analysis.profiling.fleet_samples import of_fleet
from analysis.profiling.query import Query, QueryError
from analysis.profiling.questions.catalogue import QUESTIONS
from analysis.profiling.questions.question import read
from models.randomness import stream
from tests.helpers.profile_in_memory import ProfileTable
from tests.helpers.small_profile import write

EVENTS = ("cycles", "instructions", "cpu_time", "lock_wait", "heap_bytes")


def fleet(rng, visits=120, antagonist=1.4):
    """A made-up profile: a is slower beside c, z is shared, b differs between machines, c is on old ones only."""
    rows, seen = [], []
    for visit in range(visits):
        machine, day = visit % 40, visit // 30
        platform = "old" if machine < 20 and (machine >= 10 or day < 2) else "new"
        present = [name for name in ("a", "b", "c") if rng.random() < 0.7 and (name != "c" or platform == "old")]
        for name in present:
            seen.append((visit, name))
            slower = (1.5 if platform == "old" else 1.0) * (antagonist if name == "a" and "c" in present else 1.0)
            tilt = 0.8 if name == "b" and machine % 2 else 0.2
            shares = {f"{name}::x": 0.9 * tilt, f"{name}::y": 0.9 * (1 - tilt), "z": 0.1}
            for function, share in shares.items():
                for event in EVENTS:
                    mean = 400 * share * (slower * rng.lognormal(0, 0.03) if event == "cycles" else 1.0)
                    count = rng.poisson(mean)
                    image = "libz" if function == "z" else name
                    tags = (event, name, image, function, "main", machine, visit, platform, "v1", "k1", "gcc", day)
                    if count:
                        rows.append((*tags, count, count * 10**9))
    names = ["event", "application", "image", "function", "caller", "machine", "visit", "platform"]
    columns = [*names, "revision", "kernel", "compiler", "day", "samples", "value"]
    number = np.arange(visits)
    table = pd.DataFrame({"visit": number, "collection": "fleet", "start_s": number // 30 * 86400.0})
    machine = number % 40
    old = (machine < 20) & ((machine >= 10) | (number // 30 < 2))
    table = table.assign(weight=12, length_s=300.0, frequency_hz=2e9, platform=np.where(old, "old", "new"))
    traits = pd.DataFrame({"image": ["libz", "a"], "function": ["z", "a::x"], "floating_point": [0.5, 0.1]})
    processes = pd.DataFrame(seen, columns=["visit", "application"])
    tables = {"visits": table, "processes": processes, "function_traits": traits}
    return ProfileTable(pd.DataFrame(rows, columns=columns).assign(collection="fleet"), tables)


@pytest.fixture(scope="module")
def held():
    return fleet(stream(1, "questions"))


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    with Database([write(tmp_path_factory.mktemp("questions"))]) as opened:
        yield opened


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_has_an_answer_with_its_defaults(held, name):
    found = QUESTIONS[name].ask(held)
    assert len(found) > 0
    assert len(found.columns) >= 4


@pytest.mark.parametrize("name", ["shared", "savings", "deprecated", "fdo", "versions", "compilers", "platforms"])
def test_a_database_answers_too(database, name):
    assert len(QUESTIONS[name].ask(database)) > 0


def test_one_application_after_another_is_asked_how_machines_differ(database, monkeypatch):
    """Of a hundred million rows it was refused, as every function on every machine was one answer."""
    monkeypatch.setattr(Database, "clustered", lambda *_: pytest.fail("everything at once"))
    assert len(QUESTIONS["fdo"].ask(database)) > 0


@pytest.mark.parametrize("name", ["floating-point", "locks", "memory", "old-hardware", "colocate"])
def test_what_a_profile_lacks_is_said(database, name):
    with pytest.raises(QueryError, match=r"unknown|has no table"):
        QUESTIONS[name].ask(database)


def test_shares_of_a_database_are_those_of_its_query(database):
    found = QUESTIONS["shared"].ask(database, top=99).set_index("function")["share"]
    asked = database.query(Query(by=("function",))).set_index("function")["share"]
    pd.testing.assert_series_equal(found.sort_index(), asked.reindex(found.index).sort_index())


def test_shared_code_is_found_that_is_hot_in_none(held):
    row = QUESTIONS["shared"].ask(held).iloc[0]
    assert row["function"] == "z"
    assert row["applications"] == 3
    assert row["low"] < 0.1 < row["high"]
    assert row["largest_share_in_one"] < 0.12


def test_savings_are_the_functions_core_hours_over_a_year(held):
    row = QUESTIONS["savings"].ask(held, function="z", change="0.02", price_per_core_hour="2").iloc[0]
    used = held.rows[(held.rows["event"] == "cycles") & (held.rows["function"] == "z")]["value"].sum()
    assert row["cycles_saved"] == pytest.approx(0.02 * used)
    assert row["money_per_year"] == pytest.approx(0.02 * used / 2e9 / 3600 * 365 / 4 * 2)


def test_callers_are_told_in_the_unit_of_their_event(held):
    waits = QUESTIONS["deprecated"].ask(held, function="z", event="lock_wait")
    used = held.rows[(held.rows["event"] == "lock_wait") & (held.rows["function"] == "z")]
    assert waits["lock_wait_s"].sum() == pytest.approx(used["value"].sum() / 1e9)
    assert "cycles" in QUESTIONS["deprecated"].ask(held, function="z", event="cycles").columns


def test_floating_point_counts_what_is_known(held):
    found = QUESTIONS["floating-point"].ask(held).set_index("application")
    used = held.rows[held.rows["event"] == "instructions"].groupby(["application", "function"])["value"].sum()
    expected = 0.5 * used.xs("z", level=1).sum() + 0.1 * used["a", "a::x"]
    assert found.loc["[all]", "class_instructions"] == pytest.approx(expected)
    assert found.loc["c", "share"] == pytest.approx(0.5 * used["c", "z"] / used["c"].sum())


def test_the_platform_that_goes_is_the_old_one(held):
    found = QUESTIONS["old-hardware"].ask(held).set_index("application")
    assert set(found["platform"]) == {"old"}
    assert found.loc["b", "time_ratio"] == pytest.approx(1.5, rel=0.05)
    assert np.isnan(found.loc["c", "time_ratio"])
    assert found.loc["c", "share_of_application"] == 1.0
    with pytest.raises(QueryError, match="old: no samples on vax; there are new, old"):
        QUESTIONS["old-hardware"].ask(held, old="vax")


def test_who_suffers_beside_whom_is_found_first(held):
    row = QUESTIONS["colocate"].ask(held).iloc[0]
    assert row[["application", "beside"]].tolist() == ["a", "c"]
    assert row["low"] < np.log(1.4) < row["high"]
    assert abs(row["shrunk"]) <= abs(row["effect"])


def visited(rng, slow, others=6, calm=60):
    """A profile in which a is beside b on some machines: {machine: (visits, factor on a's CPI)}; elsewhere alone.

    Applications c to h come and go at random, without any effect; CPI varies a little from machine to machine.
    """
    plan = [(machine, True, factor) for machine, (visits, factor) in slow.items() for _ in range(visits)]
    plan += [(100 + number % 20, False, 1.0) for number in range(calm)]
    own = {machine: rng.lognormal(0, 0.02) for machine in sorted({each for each, _, _ in plan})}
    rows, seen = [], []
    for visit, (machine, beside, factor) in enumerate(plan):
        present = [name for name in "cdefgh"[:others] if rng.random() < 0.5]
        for name in ["a", *["b"] * beside, *present]:
            seen.append((visit, name))
            cpi = own[machine] * (factor if name == "a" else 1.0) * rng.lognormal(0, 0.02)
            for event, mean in (("cycles", 2000 * cpi), ("instructions", 2000)):
                count = rng.poisson(mean)
                rows.append((event, name, machine, visit, "p", count, count))
    columns = ["event", "application", "machine", "visit", "platform", "samples", "value"]
    return ProfileTable(
        pd.DataFrame(rows, columns=columns), {"processes": pd.DataFrame(seen, columns=["visit", "application"])}
    )


def advised(profile):
    """Return what is advised for a beside b, and all of the answer."""
    found = QUESTIONS["colocate"].ask(profile, top=999).set_index(["application", "beside"])
    return found["advice"].get(("a", "b"), "none"), found


@pytest.mark.parametrize("others", [0, 1, 5])
def test_one_machine_visited_often_is_no_reason_to_move_a_job(others):
    slow = {0: (30, 1.4)} | dict.fromkeys(range(1, 1 + others), (1, 1.0))
    advice, found = advised(visited(stream(3, "one machine"), slow))
    assert advice == "none"
    assert others == 5 or ("a", "b") not in found.index


def test_twelve_machines_are():
    advice, found = advised(visited(stream(4, "twelve machines"), dict.fromkeys(range(12), (3, 1.4))))
    assert advice == "apart"
    row = found.loc["a", "b"]
    assert row[["machines_beside", "machines_apart", "visits_beside"]].tolist() == [12, 20, 36]
    assert row["low"] < np.log(1.4) < row["high"]
    assert found.index[0] == ("a", "b")
    assert (found["advice"] != "none").mean() < 0.1


def test_the_error_is_that_of_leaving_out_one_machine_at_a_time():
    profile = visited(stream(5, "jackknife"), {machine: (1 + machine, 1.1) for machine in range(5)}, others=0)
    wide = profile.rows.pivot_table(index=["application", "machine", "visit"], columns="event", values="value")
    own = wide.loc["a"].reset_index()
    own = own.assign(log=np.log(own["cycles"] / own["instructions"]), beside=own["machine"] < 100)
    own = own.assign(weight=1 / (1 / own["cycles"] + 1 / own["instructions"]))
    own["weight"] = own["weight"].clip(upper=own["weight"].median())

    def difference(rows):
        sides = [rows[rows["beside"] == side] for side in (True, False)]
        return np.subtract(*[np.average(side["log"], weights=side["weight"]) for side in sides])

    without = np.array([difference(own[own["machine"] != machine]) for machine in own["machine"].unique()])
    effect = difference(own)
    row = advised(profile)[1].loc["a", "b"]
    assert row["effect"] == pytest.approx(effect)
    assert row["standard_error"] == pytest.approx(
        np.sqrt((without.size - 1) / without.size * ((without - effect) ** 2).sum())
    )


@pytest.mark.statistical
def test_machines_that_merely_differ_seldom_give_advice():
    """No pair suffers; machines differ by 10%, visits of one machine are alike. Advice in over 3 of 20: 3 in 1,000."""
    calm = 0
    for seed in range(20):
        rng = stream(seed, "machines differ")
        slow = {machine: (int(rng.integers(1, 12)), rng.lognormal(0, 0.1)) for machine in range(8)}
        calm += advised(visited(rng, slow, others=2, calm=40))[0] == "none"
    assert calm >= 17


def test_without_interference_effects_are_shrunk_to_little():
    found = QUESTIONS["colocate"].ask(fleet(stream(2, "peace"), antagonist=1.0))
    assert (found["shrunk"].abs() < 0.03).all()
    assert found["shrunk"].abs().sum() < 0.7 * found["effect"].abs().sum()


def test_code_that_differs_between_machines_suits_one_profile_badly(held):
    found = QUESTIONS["fdo"].ask(held).set_index("application")
    assert found.loc["b", "reason"] == "differs"
    assert found.loc["b", "excess"] == pytest.approx(0.54, abs=0.06)
    assert found.loc[["a", "c"], "excess"].max() < 0.1


def test_roll_outs_are_shares_of_each_day(held):
    found = QUESTIONS["platforms"].ask(held)
    assert found.groupby("day")["share"].sum().to_numpy() == pytest.approx(1.0)
    old = found[found["platform"] == "old"].set_index("day")["share"]
    assert old[3] < old[0]


def test_samples_of_other_collections_are_not_added():
    rows = {"event": "cycles", "collection": ["fleet", "watch"], "function": "f", "samples": 1, "value": [3, 5]}
    two = ProfileTable(pd.DataFrame(rows))
    assert two.query(of_fleet(two, "cycles", ("function",)))["value"].tolist() == [3]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"colour": "red"}, "colour: no such parameter; there are by, event, top"),
        ({"top": "many"}, 'top: should be a whole number, got "many"'),
        ({"top": 0}, "top: should be 1 or more, got 0"),
        ({"by": "line"}, "by: should be function or image, got line"),
    ],
)
def test_wrong_parameters_are_said(held, given, said):
    with pytest.raises(QueryError, match=said):
        QUESTIONS["shared"].ask(held, **given)


def test_infinite_and_senseless_numbers_are_refused(held):
    with pytest.raises(QueryError, match="should be finite"):
        read({"change": 0.1}, {"change": "inf"})
    with pytest.raises(QueryError, match="change: should be a share"):
        QUESTIONS["savings"].ask(held, change=0.0)
    with pytest.raises(QueryError, match='no samples of "nothing"'):
        QUESTIONS["savings"].ask(held, function="nothing")
