"""Experiments on slots by `wsc slots --experiments`: each on its own slots, and what stands between them."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis.effects.strata import StratifiedFleet
from scenarios.commands.app import app
from scenarios.effects import experiments
from scenarios.effects.effect import effect
from scenarios.effects.experiments import ExperimentsQuestion
from scenarios.effects.experiments import experiments as experiments_of
from scenarios.effects.slot_plan import read_plan
from scenarios.files.faults import FaultsError
from tests.scenarios.effects.test_slots import cut, fleet, quiet

MANY = 96
GAINS = {"a": 0.10, "b": -0.06, "c": 0.0}


@pytest.fixture(scope="module")
def study():
    """A fleet of 96 machines in eight slots, two periods before and one with three features; cut and plan beside."""
    table = fleet(MANY, periods=3)
    slots = cut(table[table["period"] == 1], slots=8).frame()
    slot = table["machine"].map(slots.set_index("machine")["slot"])
    treated = {"a": ["1", "2"], "b": ["1", "3"], "c": ["5"]}
    value = table["value"].copy()
    for name, which in treated.items():
        value = np.where(slot.isin(which) & (table["period"] == 2), value * (1 + GAINS[name]), value)
    having = slot.isin(["1", "2", "3", "5"]) & (table["period"] == 2)
    rows = [*(("a", slot, slot in "12") for slot in "1234"), *(("b", slot, slot in "13") for slot in "1234")]
    plan = pd.DataFrame([*rows, ("c", "5", True)], columns=["experiment", "slot", "treated"])
    return table.assign(value=value, treated=having.astype(int)), slots, plan.astype({"treated": int})


@pytest.fixture(scope="module")
def answer(study):
    table, slots, plan = study
    return experiments_of([table], ExperimentsQuestion(slots, plan), None, quiet)


def test_each_experiment_is_estimated_on_its_own_slots(study, answer):
    table, slots, _ = study
    found = answer.frame().set_index("experiment")
    for name, gain in GAINS.items():
        assert found.loc[name, "low"] < gain < found.loc[name, "high"]
    assert found["zero_ruled_out"].tolist() == [True, True, False]
    assert found["machines"].tolist() == [24, 24, 12]
    assert found["controls"].tolist() == [24, 24, 48]
    alone = slots[slots["slot"].isin(["1", "2", "3", "4"])]
    rows = table[table["machine"].isin(alone["machine"])]
    a, b = (
        (rows["machine"].isin(alone["machine"][alone["slot"].isin(of)]) & (rows["period"] == 2)).to_numpy()
        for of in (["1", "2"], ["1", "3"])
    )
    fleet_before = StratifiedFleet.of(rows[rows["period"] < 2])
    strata = pd.Series(fleet_before.stratum, fleet_before.names)
    crossing = effect([rows.assign(treated=b.astype(int))], strata=strata)
    value = rows["value"] / np.where(b, 1 + crossing.change, 1.0)
    same = effect([rows.assign(treated=a.astype(int), value=value)], strata=strata)
    assert (same.change, same.low) == pytest.approx((found.loc["a", "change"], found.loc["a", "low"]), abs=1e-12)


def test_features_that_cross_an_experiment_evenly_do_not_widen_it_nor_look_like_an_interaction(study):
    """Three features on two of four slots each: every two cross, and each is aliased with the others' interaction."""
    table, slots, _ = study
    slot = table["machine"].map(slots.set_index("machine")["slot"])
    plan = pd.DataFrame([(name, of, int(of in "1" + name)) for name in "234" for of in "1234"])
    plan.columns = ["experiment", "slot", "treated"]
    answers = []
    for gains in ((0.0, 0.2, 0.1), (0.0, 0.0, 0.0)):
        factor = np.ones(len(table))
        for name, gain in zip("234", gains, strict=True):
            factor *= np.where(slot.isin(["1", name]) & (table["period"] == 2), 1 + gain, 1.0)
        factor = factor / np.where(slot.isin(["1", "2"]) & (table["period"] == 2), 1.1, 1.0)
        answers.append(
            experiments_of([table.assign(value=table["value"] * factor)], ExperimentsQuestion(slots, plan), None, quiet)
        )
    wide, alone = (of.effects[0].answer.effect.margin for of in answers)
    assert wide == pytest.approx(alone, rel=0.2)
    assert [note.partition(" is estimated")[0] for note in answers[0].notes if "without what" in note] == [
        "2",
        "3",
        "4",
    ]
    assert {of.overlap.meeting for of in answers[0].meetings} == {"crossed"}
    assert not any(of.interaction for of in answers[0].meetings)


def test_it_says_which_meet_and_whether_they_interact(answer):
    meeting = {(meeting.overlap.first, meeting.overlap.second): meeting for meeting in answer.meetings}
    assert {pair: of.overlap.meeting for pair, of in meeting.items()} == {
        ("a", "b"): "crossed",
        ("a", "c"): "controls",
        ("b", "c"): "controls",
    }
    assert meeting["a", "b"].interact is False
    assert meeting["a", "b"].biases == pytest.approx((0.0, 0.0))
    assert "a and b cross evenly" in answer._repr_html_()
    assert repr(answer) == "<ExperimentsAnswer: 3 experiments, 2 with a change; none is seen to interact>"


def test_the_command_prints_what_is_answered(study, answer, tmp_path):
    table, slots, plan = study
    files = [tmp_path / name for name in ("table.csv", "slots.csv", "plan.csv")]
    for file, frame in zip(files, (table, slots, plan), strict=True):
        frame.to_csv(file, index=False)
    words = ["slots", files[0], "--previous", files[1], "--experiments", files[2], "--json"]
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == (0 if answer.trusted else 1), result.output
    said = json.loads(result.stdout)
    assert said["kind"] == "experiments"
    assert [row["change"] for row in said["experiments"]] == pytest.approx(answer.frame()["change"].tolist())
    assert said["experiments"][2]["control_slots"] == ["4", "6", "7", "8"]
    assert said["pairs"] == 3
    result = CliRunner().invoke(app, [str(word) for word in (*words[:2], *words[4:])])
    assert result.exit_code == 2
    assert "--previous: should name the slots that the experiments ran on" in result.output


def test_others_that_stand_unevenly_in_its_arms_take_the_verdict_away(study):
    """Experiment d treats slots 1 and 5, of which slot 1 has two other features that its controls have not."""
    table, slots, plan = study
    more = pd.DataFrame({"experiment": "d", "slot": ["1", "6"], "treated": [1, 0]})
    both = pd.concat([plan[plan["experiment"] == "a"], more], ignore_index=True)
    answer = experiments_of([table], ExperimentsQuestion(slots, both), None, quiet)
    (of_d,) = (of for of in answer.effects if of.experiment.name == "d")
    assert not of_d.trusted
    assert [finding.code for finding in of_d.findings if finding.severity == "error"] == ["uneven_overlap"]
    (what,) = (finding.what for finding in of_d.findings if finding.severity == "error")
    assert what == "cannot be told apart from a: one arm has that feature, the other has not"
    assert "no verdict" in answer._repr_html_()


def test_slots_whose_machines_were_exchanged_are_named_with_the_skew(study):
    """Of two slots one has lost its new machines to the other, and no feature acts."""
    table, slots, _ = study
    platform = table.drop_duplicates("machine").set_index("machine")["platform"]
    first, second = (slots.index[slots["slot"] == slot] for slot in "67")
    old = [row for row in first if platform[slots["machine"][row]] == "old"][:4]
    new = [row for row in second if platform[slots["machine"][row]] == "new"][:4]
    exchanged = slots.assign(slot=slots["slot"].mask(slots.index.isin(old), "7").mask(slots.index.isin(new), "6"))
    plan = pd.DataFrame({"experiment": "a", "slot": ["6", "7"], "treated": [1, 0], "since": 2.0})
    for of_slots, codes in ((slots, []), (exchanged, ["unlike_slots"])):
        (of,) = experiments_of([table], ExperimentsQuestion(of_slots, plan), None, quiet).effects
        assert [finding.code for finding in of.findings if finding.code == "unlike_slots"] == codes
        assert of.mix_skew == pytest.approx((1 + 0.2 * 10 / 12) / (1 + 0.2 * 2 / 12) - 1 if codes else 0.0, abs=0.03)


WRONG = {
    "slot": ({"slot": ["1", "x"]}, ['table:3:2: slot: should be a slot of the cut, got "x"']),
    "treated": ({"treated": [0, 0]}, ["table:2:3: treated: should be 1 for a slot of a"]),
    "since": (
        {"slot": ["6", "7"]},
        ["table:2:1: since: is needed: the tables have nothing as treated in the slots of a"],
    ),
    "twice": ({"slot": ["1", "1"]}, ["should be there once"]),
    "several": (
        {"slot": ["1", "x"], "since": [1.0, 2.0], "treated": [0, 0]},
        [
            "table:2:3: treated: should be 1 for a slot of a",
            'table:3:2: slot: should be a slot of the cut, got "x"',
            "table:3:4: since: should be 1 as in line 2: a begins once, got 2",
        ],
    ),
    "outside": ({"since": [7.0, None]}, ["table:2:4: since: should be in the tables' periods, 0 to 2, got 7"]),
}


@pytest.mark.parametrize(("change", "messages"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_with_a_plan_is_said_at_once(study, change, messages):
    table, slots, _ = study
    plan = pd.DataFrame({"experiment": "a", "slot": ["1", "2"], "treated": [1, 0]}).assign(**change)
    with pytest.raises(FaultsError) as caught:
        experiments_of([table], ExperimentsQuestion(slots, plan), None, quiet)
    said = str(caught.value).splitlines()
    assert len(said) == len(messages)
    assert all(message in line for message, line in zip(messages, said, strict=True))


AGAINST = {
    "swapped": ([("c", "8", 1), ("c", "5", 0)], 2.0, {"other_slots": {"treated slot 8": 0.0, "control slot 5": 1.0}}),
    "late": ([("c", "5", 1), ("c", "6", 0)], 1.0, {"other_since": {"since": 1.0, "first_treated": 2.0}}),
    "explained": ([("a", "1", 1), ("a", "2", 1), ("a", "3", 0), ("b", "3", 1), ("b", "2", 0)], np.nan, {}),
    "unexplained": ([("a", "1", 1), ("a", "3", 0)], np.nan, {"other_slots": {"control slot 3": 1.0}}),
}


@pytest.mark.parametrize(("entries", "since", "found"), AGAINST.values(), ids=AGAINST)
def test_a_plan_is_held_against_what_the_tables_have_as_treated(study, entries, since, found):
    table, slots, _ = study
    rows = table.assign(slot=table["machine"].map(slots.set_index("machine")["slot"]))
    plan = pd.DataFrame(entries, columns=["experiment", "slot", "treated"]).assign(since=since)
    _, findings, _ = read_plan(plan, rows, slots.set_index("machine")["slot"])
    assert {finding.code: finding.evidence for finding in findings[0]} == found


def test_slots_treated_elsewhere_are_no_controls_unless_they_are_named(study):
    table, slots, _ = study
    plan = pd.DataFrame({"experiment": ["c"], "slot": ["5"], "treated": [1]})
    answer = experiments_of([table], ExperimentsQuestion(slots, plan), None, quiet)
    assert answer.effects[0].experiment.controls == frozenset("4678")
    assert answer.notes == ("c: slots 1, 2, 3: no controls, as the tables have treated rows there",)
    swapped = pd.DataFrame({"experiment": "c", "slot": ["8", "5"], "treated": [1, 0], "since": 2.0})
    answer = experiments_of([table], ExperimentsQuestion(slots, swapped), None, quiet)
    assert not answer.trusted
    assert "no verdict" in answer._repr_html_()


def test_few_machines_cannot_tell_what_features_that_cross_an_experiment_change(study, monkeypatch):
    """What is taken out takes noise along: of 8 machines and 7 features 60% of the intervals held, for 95%."""
    table, slots, _ = study
    few = slots.groupby("slot").head(7)
    plan = pd.DataFrame([(name, of, int(of in "1" + name)) for name in "234" for of in "1234"])
    plan.columns = ["experiment", "slot", "treated"]
    of = [table[table["machine"].isin(few["machine"])]]
    for room, told in ((10, 0), (1, 3)):
        monkeypatch.setattr(experiments, "ROOM", room)
        answer = experiments_of(of, ExperimentsQuestion(few, plan), None, quiet)
        assert sum("without what" in note for note in answer.notes) == told
