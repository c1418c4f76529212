"""What `wsc audit` reads, says and refuses."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import wsc
from analysis.audit.guards import GUARDS
from scenarios.effects.audit import GuardList
from scenarios.effects.audit import audit as audit_of
from scenarios.effects.effect import effect as effect_of
from scenarios.files.faults import FaultsError
from scenarios.views.terminal import show


def effect(*sources, **options):
    """What the command prints as JSON."""
    return effect_of(*sources, **options).payload()


def audit(*sources, **options):
    """What the command prints as JSON."""
    return audit_of(*sources, **options).payload()


def table(treated=lambda machine: machine % 2, periods=(0, 1), **columns):
    rng = np.random.default_rng(1)
    rows = [(p, j, m) for p in periods for j in "abc" for m in range(40)]
    frame = pd.DataFrame(rows, columns=["period", "job", "machine"]).assign(weight=1.0, **columns)
    frame["value"] = rng.lognormal(0, 0.1, len(frame))
    frame["treated"] = treated(frame["machine"]) * (frame["period"] > 0)
    return frame


def written(folder, frame, name="seen.csv"):
    (frame.to_parquet if name.endswith("parquet") else frame.to_csv)(folder / name, index=False)
    return folder / name


@pytest.mark.parametrize("name", ["seen.csv", "seen.parquet"])
def test_a_healthy_table_has_status_0(tmp_path, name):
    answer = audit_of([written(tmp_path, table(), name)])
    payload = answer.payload()
    assert answer.clean
    assert set(payload) == {"kind", "findings", "checked", "unchecked", "metric"}
    assert not set(payload["checked"]) & set(payload["unchecked"])
    assert set(payload["checked"]) | set(payload["unchecked"]) == set(GUARDS)
    assert payload["unchecked"]["whole_racks"] == "column rack"
    assert "  whole_racks needs column rack" in answer._repr_html_()
    assert (payload["kind"], GuardList().payload()["kind"]) == ("audit", "guards")
    assert json.loads(json.dumps(payload)) == payload


def test_names_that_differ_between_arms_or_from_the_past_are_told():
    fleet = table()
    of_canary = fleet["job"].where(fleet["treated"] == 0, fleet["job"] + "-canary")
    answer = audit_of([fleet.assign(job=of_canary)])
    assert [finding.code for finding in answer.audit.errors] == ["missing_jobs"]
    assert "3 with the feature, such as a-canary, 3 without it, such as a" in answer.audit.errors[0].what
    renamed = fleet.assign(machine=fleet["machine"].astype(str) + np.where(fleet["period"] == 0, ".prod", ""))
    (note,) = [note for note in audit_of([renamed]).notes if "no row in the periods before" in note]
    assert note.startswith(
        "40 of the study's 40 machines have no row in the periods before, and 40 of 40 there have none"
    )
    assert note in effect_of([renamed]).notes
    assert not any("no row in the periods before" in note for note in audit_of([fleet]).notes)


def test_what_is_said_beside_the_table_is_heeded(tmp_path):
    said = tmp_path / "about.yaml"
    said.write_text("looks: 14\nmetric: ips\n")
    jobs = written(tmp_path, pd.DataFrame({"job": ["a", "b", "c", "d"], "quota": [1, 1, 1, 6]}), "jobs.csv")
    answer = audit_of([written(tmp_path, table()), jobs, said])
    payload = answer.payload()
    assert {"peeking", "weights_renormalised", "missing_jobs"} <= {one["code"] for one in payload["findings"]}
    assert not answer.clean
    assert answer.frame()["code"].tolist() == [one["code"] for one in payload["findings"]]
    console = Console(width=200, file=io.StringIO())
    show(answer.section(), console)
    assert "remedy: decide at the look" in console.file.getvalue()


def test_units_that_differ_between_files_are_named(tmp_path):
    frame = table()
    one = written(tmp_path, frame[frame["machine"] < 25], "one.csv")
    other = frame[frame["machine"] >= 25]
    found = audit([one, written(tmp_path, other.assign(value=other["value"] * 1000), "other.csv")])["findings"]
    assert [line["what"].rpartition(", ")[2] for line in found if line["code"] == "unit_change"] == [
        f"nearly all of file {tmp_path / 'other.csv'}"
    ]


def test_bad_values_are_findings_and_bad_flags_are_faults(tmp_path):
    frame = table().astype({"value": object})
    frame.loc[frame.index % 10 == 0, "value"] = "n/a"
    assert audit([written(tmp_path, frame)])["findings"][0]["code"] == "unusable_values"
    with pytest.raises(FaultsError, match=r"seen.csv:\d+:\d+: treated: should be 0 or 1"):
        audit([written(tmp_path, table().assign(treated=2))])


@pytest.mark.parametrize("name", ["present_s", "cpu_s", "exposure", "mean_frequency_hz"])
@pytest.mark.parametrize("number", [np.nan, np.inf, -1.0])
def test_rows_with_amounts_that_cannot_be_used_are_findings_and_left_out(tmp_path, name, number):
    frame = table(**{name: 2.0})
    frame.loc[3, name] = number
    (found,) = [one for one in audit([written(tmp_path, frame)])["findings"] if one["code"] == "unusable_values"]
    assert found["what"].startswith(f"1 row has no usable {name}")
    assert found["severity"] == "note"
    payload = effect([tmp_path / "seen.csv"])
    assert f"1 of 240 rows are left out: 1 without a usable {name}" in payload["notes"]
    whole = effect([written(tmp_path, frame.drop(index=3), "without.csv")])
    assert (payload["change"], payload["margin"]) == (whole["change"], whole["margin"])


def test_cells_that_are_no_numbers_are_told_with_their_line(tmp_path):
    frame = table().astype({"value": object})
    frame.loc[4, "value"] = "slow"
    written(tmp_path, frame)
    conclusion = audit_of([tmp_path / "seen.csv"])
    (note,) = conclusion.notes
    assert note.endswith('seen.csv: value: 1 cell is no number, first in line 6: "slow"')
    assert "unusable_values" in conclusion.brief()


def test_no_cpu_time_is_a_time(tmp_path):
    frame = table(cpu_s=0.0)
    assert "unusable_values" not in {one["code"] for one in audit([written(tmp_path, frame)])["findings"]}


def test_all_faults_of_all_files_are_told_at_once(tmp_path):
    bad = written(tmp_path, table().drop(columns=["weight", "treated"]), "bad.csv")
    said = tmp_path / "about.json"
    said.write_text('{"looks": 0, "who": 1}')
    with pytest.raises(FaultsError) as caught:
        audit([bad, tmp_path / "none.csv", said])
    lines = str(caught.value).splitlines()
    assert len(lines) == 4
    assert any("none.csv: cannot be read" in line for line in lines)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.yaml", "looks: [", r"a\.yaml:\d+:\d+: "),
        ("a.json", "[1]", "should be a mapping"),
        ("a.json", "{", r"a\.json:1:2"),
        ("a.yaml", "looks: 1\0", "a.yaml:1:1: is not YAML: .*special characters are not allowed"),
        ("a.yaml", "looks: 14\nclusters: job", "a.yaml:2:11: clusters: should be one of instance, machine, rack"),
        ("a.json", '{\n"looks": 14,\n"looks": 3}', "a.json:3:1: looks: is given twice, first in line 2"),
    ],
)
def test_what_is_said_badly_is_refused(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(FaultsError, match=message):
        audit([written(tmp_path, table()), tmp_path / name])


def test_a_table_of_jobs_alone_is_not_enough(tmp_path):
    jobs = written(tmp_path, pd.DataFrame({"job": ["a"], "quota": [1]}), "jobs.csv")
    with pytest.raises(FaultsError, match="at least one table of observations"):
        audit([jobs])


@pytest.mark.parametrize(
    ("column", "number", "problem"),
    [
        ("value", 1e300, "should be at most 1e+50"),
        ("weight", 1e300, "should be at most 1e+50"),
        ("value", 1e-300, "should be at least 1e-50"),
        ("period", 1e300, "should be at most 1e+50"),
        ("present_s", 1e300, "should be at most 1e+50"),
    ],
)
def test_numbers_whose_squares_are_none_are_faults(tmp_path, column, number, problem):
    frame = table(present_s=1.0).astype({column: float})
    frame.loc[5, column] = number
    with pytest.raises(FaultsError, match=rf"seen.csv:7:\d: {column}: {problem.replace('+', '.')}, got \"1e"):
        audit([written(tmp_path, frame)])


def test_a_file_that_is_given_twice_is_told_with_all_else(tmp_path):
    seen = written(tmp_path, table())
    with pytest.raises(FaultsError) as caught:
        audit([seen, seen, tmp_path / "none.csv"])
    assert str(caught.value).splitlines() == [
        f"{tmp_path / 'none.csv'}: cannot be read, got No such file or directory",
        f"{seen}: should be given once, got 2 times",
    ]


BAD = {
    "a missing value": lambda frame: frame.assign(value=frame["value"].where(frame.index != 7)),
    "a value that is no number": lambda frame: frame.astype({"value": object}).replace(
        {"value": {frame["value"][7]: "n/a"}}
    ),
    "a value of 0": lambda frame: frame.assign(value=frame["value"].where(frame.index != 7, 0.0)),
    "a negative weight": lambda frame: frame.assign(weight=frame["weight"].where(frame.index != 7, -1.0)),
    "a row twice": lambda frame: pd.concat([frame, frame.iloc[[7]]]),
    "no column treated": lambda frame: frame.drop(columns="treated"),
    "a period between the others": lambda frame: frame.assign(period=frame["period"].where(frame.index != 7, 0.5)),
    "a flag of 2": lambda frame: frame.assign(treated=2),
    "no machine": lambda frame: frame.drop(columns="machine"),
    "an empty job": lambda frame: frame.assign(job=frame["job"].where(frame.index != 7)),
    "a value beyond all others": lambda frame: frame.assign(value=frame["value"].where(frame.index != 7, 1e40)),
}


@pytest.mark.parametrize("name", BAD)
def test_audit_and_effect_read_the_same_files_and_say_the_same_of_them(tmp_path, name):
    """A past and a study in two files; the first of them has the fault."""
    frame = table()
    before, after = (frame[frame["period"] == period].reset_index(drop=True) for period in (0, 1))
    files = [written(tmp_path, BAD[name](before), "before.csv"), written(tmp_path, after, "after.csv")]
    said = []
    for command in (audit, effect):
        try:
            said.append(command(files)["findings"])
        except FaultsError as error:
            said.append(str(error))
    assert said[0] == said[1]


def test_guards_are_told_the_kind_of_metric(tmp_path):
    frame = table()
    path = written(tmp_path, frame.assign(value=frame["value"] - frame["value"].mean()))
    assert "unusable_values" in {one["code"] for one in audit([path])["findings"]}
    of_means = audit([path], metric_kind="mean")
    assert "unusable_values" not in {one["code"] for one in of_means["findings"]}
    assert of_means["unchecked"]["unit_change"] == "a metric of another kind (metric_kind)"
    assert {*of_means["checked"], *of_means["unchecked"]} == {*GUARDS}
    assert of_means["notes"] == [
        "guards that cannot look at a mean: unit_change, units_between_jobs, weights_renormalised"
    ]
    assert wsc.audit(path, metric_kind="mean").payload() == of_means
