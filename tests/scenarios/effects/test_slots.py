"""`wsc slots`: tables in, a cut out; what is wrong with tables, former cuts and questions is said at once."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from scenarios.commands.app import app
from scenarios.effects.slots import SlotsQuestion, read_slots
from scenarios.effects.slots import slots as slots_of
from scenarios.files.faults import FaultsError


def fleet(machines=60, periods=2, seed=1):
    """Return a fleet's observations: four jobs on every machine, two platforms in three clusters."""
    rng = np.random.default_rng(seed)
    machine, job = np.divmod(np.arange(4 * machines), 4)
    own = (1.0 + job) * (1.0 + 0.05 * rng.standard_normal(machines)[machine] + 0.2 * (machine % 2))
    row = {"job": job, "machine": [f"m{number}" for number in machine], "weight": 1.0 + job}
    places = {"platform": np.array(["old", "new"])[machine % 2], "cluster": machine % 3}
    return pd.concat(
        [
            pd.DataFrame({"period": period, **row, **places, "value": own * rng.uniform(0.98, 1.02, len(own))})
            for period in range(periods)
        ],
        ignore_index=True,
    )


def quiet(_what, _share):
    """Tell nobody."""


def cut(table, **question):
    return slots_of([table], SlotsQuestion(**question), None, quiet)


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "fleet.csv"
    fleet().to_csv(path, index=False)
    return path


def test_a_cut_is_told_written_and_mended(file, tmp_path):
    out = tmp_path / "cut.parquet"
    result = invoke("slots", file, "--slots", 2, "--out", out, "--json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert (said["kind"], said["slots"], said["machines"], said["moves"]) == ("slots", 2, 60, None)
    assert {row["of"] for row in said["counts"]} == {
        "machines",
        "machines by platform",
        "machines by cluster",
        "machines by platform and cluster",
    }
    assert all(row["apart"] == row["least"] == 0 for row in said["counts"])
    assert len(said["noise_floor"][0]["pairs"]) == 1
    assert said["noise_floor"][0]["half_width"]["low"] <= said["noise_floor"][0]["half_width"]["median"]
    before = pd.read_parquet(out)
    assert before["slot"].value_counts().tolist() == [30] * 2
    later = fleet(periods=1)
    later.loc[later["machine"].isin(["m3", "m4", "m5"]), "machine"] += "new"
    later.to_csv(file, index=False)
    result = invoke("slots", file, "--previous", out, "--out", out, "--json")
    assert result.exit_code == 0, result.output
    moves = json.loads(result.stdout)["moves"]
    assert moves == {"moved": 0, "fewest": 0, "share": 0.0, "newcomers": 3, "left": 3}
    both = before.merge(pd.read_parquet(out), on="machine", suffixes=("", "_after"))
    assert len(both) == 57
    assert (both["slot"] == both["slot_after"]).all()


def test_people_read_counts_balance_moves_and_the_noise_floor(file, tmp_path):
    out = tmp_path / "cut.csv"
    text = invoke("slots", file, "--slots", 2, "--out", out).output
    assert "2 slots of 30 machines: 60 machines, 6 combinations of platform and cluster" in text
    assert "past performance" in text
    assert "two slots without any difference are within ±" in text
    text = " ".join(invoke("slots", file, "--previous", out, "--where", "machine <> 'm7'").output.split())
    assert (
        "moved to another slot; no even cut moves fewer. 0 machines of the tables had no slot, 1 of the former" in text
    )


def test_a_conclusion_has_a_frame_pairs_and_a_figure():
    answer = cut(fleet(), slots=3)
    assert list(answer.frame().columns) == ["machine", "slot"]
    assert set(answer.frame()["slot"]) == {"1", "2", "3"}
    assert len(answer.pairs()) == 3
    assert [panel.get_xlabel() for panel in answer.figure().axes] == [
        "spread of slots, in that of random ones",
        "slot against all others, in the past",
    ]
    assert repr(answer).startswith("<SlotsAnswer: 3 slots of 20 machines; noise floor of a pair ±")


def test_one_period_has_no_noise_floor_and_tables_without_places_say_so():
    answer = cut(fleet(periods=1).drop(columns=["platform", "cluster"]), slots=3)
    assert answer.pairs().empty
    assert len(answer.figure().axes) == 1
    notes = " ".join(answer.notes)
    assert "no noise floor: it needs two periods" in notes
    assert "no column platform and no column cluster" in notes


@pytest.mark.parametrize(("slots", "no_floor"), [(60, "1 machine a slot is too few; cut 15 slots at most"), (15, None)])
def test_slots_of_too_few_machines_have_no_noise_floor(slots, no_floor):
    answer = cut(fleet(), slots=slots)
    said = answer.payload()
    assert said["no_noise_floor"] == no_floor
    assert (said["noise_floor"] is None) == (no_floor is not None)
    assert (f"no noise floor: {no_floor}" in answer.notes) == (no_floor is not None)
    assert "± of each other" not in answer._repr_html_()


@pytest.mark.parametrize(("others", "gone"), [(31, True), (30, False)])
def test_a_former_cut_of_which_most_machines_are_gone_is_refused(others, gone):
    former = pd.DataFrame({"machine": [f"m{number}" for number in range(60)], "slot": ["1", "2"] * 30})
    former.loc[former.index < others, "machine"] += "old"
    if not gone:
        assert cut(fleet(periods=1), previous=former).left == 30
        return
    with pytest.raises(FaultsError, match=r'31 of 60 are not there.*got "m0old", "m1old"'):
        cut(fleet(periods=1), previous=former)


CUT = ("--out", "x.csv"), ("--slots", 2), ("--most-moved", 0.1), ("--seed", 3), ("--metrics", "ips,ipc")


def test_options_of_the_cut_and_of_the_estimate_do_not_go_together(file, tmp_path):
    plan = tmp_path / "plan.csv"
    words = [word for pair in CUT for word in pair]
    result = invoke("slots", file, "--previous", plan, "--experiments", plan, *words)
    assert result.exit_code == 2
    assert [line.partition(":")[0] for line in result.output.splitlines()] == sorted(pair[0] for pair in CUT)
    assert "--estimator: is of --experiments" in invoke("slots", file, "--slots", 2, "--estimator", "cuped").output


def test_periods_with_the_feature_are_no_past():
    table = fleet().assign(treated=lambda rows: (rows["period"] == 1) & (rows["machine"] == "m1"))
    later = table.assign(value=np.where(table["period"] == 1, 9.0, table["value"]))
    assert cut(table, slots=4).frame().equals(cut(later, slots=4).frame())


def test_machines_that_are_gone_or_were_changed_are_told():
    table = fleet()
    table = table[(table["machine"] != "m9") | (table["period"] == 0)]
    table.loc[(table["machine"] == "m8") & (table["period"] == 1), "platform"] = "new"
    notes = " ".join(cut(table, slots=2).notes)
    assert "1 machine without a row in the last period" in notes
    assert "1 machine changed platform or cluster" in notes


def test_names_of_slots_stay_as_they_are(tmp_path):
    former = pd.DataFrame({"machine": [f"m{number}" for number in range(60)], "slot": ["blue", "red"] * 30})
    path = tmp_path / "former.csv"
    former.to_csv(path, index=False)
    assert read_slots(path).nunique() == 2
    assert set(cut(fleet(periods=1), previous=path).frame()["slot"]) == {"blue", "red"}


WRONG = {
    "none": ({}, "slots: should say how many slots to cut, or previous a former cut to mend"),
    "few machines": ({"slots": 61}, "slots: should be at most the 60 machines of the tables, got 61"),
    "others": (
        {"previous": pd.DataFrame({"machine": ["x", "y"], "slot": [1, 2]})},
        "machine: should name machines of the tables, but 2 of 2 are not there",
    ),
    "twice": (
        {"previous": pd.DataFrame({"machine": ["m1", "m1"], "slot": [1, 2]})},
        "machine: should be there once, got the same as in line 2",
    ),
    "one slot": (
        {"previous": pd.DataFrame({"machine": ["m1"], "slot": [1]})},
        "slot: should name two slots at least, got 1",
    ),
    "no slot": (
        {"previous": pd.DataFrame({"machine": ["m1"]})},
        "1:1: slot: column is missing",
    ),
    "another number": (
        {"previous": pd.DataFrame({"machine": ["m1", "m2"], "slot": [1, 2]}), "slots": 3},
        "slots: should be left out, or be the 2 of ",
    ),
}


@pytest.mark.parametrize(("question", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_with_a_question_is_said(question, message):
    with pytest.raises(FaultsError) as caught:
        cut(fleet(), **question)
    assert message in str(caught.value)


def test_what_is_wrong_with_a_table_is_said_where_it_stands(file):
    table = fleet()
    table.loc[3, "value"] = np.nan
    table.loc[5, "weight"] = -1.0
    table.to_csv(file, index=False)
    result = invoke("slots", file, "--slots", 4)
    assert result.exit_code == 2
    assert f"{file}:5:" in result.output
    assert f"{file}:7:" in result.output
    fleet().drop(columns="machine").to_csv(file, index=False)
    result = invoke("slots", file, "--slots", 4)
    assert result.exit_code == 2
    assert "machine: column is missing" in result.output
    fleet().assign(treated=1).to_csv(file, index=False)
    result = invoke("slots", file, "--slots", 4)
    assert result.exit_code == 2
    assert "at least one period in which nothing has the feature is needed" in result.output


def test_a_file_that_is_no_former_cut_is_left_alone(file, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    result = invoke("slots", file, "--slots", 4, "--out", other)
    assert result.exit_code == 2
    assert "--out: is there and holds no former table of the kind (machine, slot)" in result.output
    assert other.read_text() == "a,b\n1,2\n"
