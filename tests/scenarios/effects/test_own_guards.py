"""Guards of somebody's own look beside ours; what they do wrong is their author's to mend."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import wsc
from analysis.audit.guards import GUARDS
from models.code.parts import PartError
from scenarios.commands.app import app
from scenarios.effects.own_guards import own_guards
from scenarios.files.faults import FaultsError

TABLES = ("docs/examples/fleet_before.csv", "docs/examples/fleet_after.csv")
ROW = {"job": "a", "weight": 1.0, "value": [1 + i * 31 % 17 / 1000 for i in range(160)]}
SMALL = pd.DataFrame(ROW | {"machine": [i // 4 for i in range(160)], "period": [0, 0, 1, 1] * 40})
SMALL["treated"] = SMALL["machine"] % 2 * SMALL["period"]
ALWAYS = """
import wsc


def few_machines(observations, jobs, about):
    if about.looks == 3:
        return None
    machines = observations["machine"].nunique()
    observations["value"] = 0.0
    return wsc.Finding("too_few", "error", "too few machines", {"machines": machines}, "take more")
"""


def told(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def mine(tmp_path):
    """The reference of a guard whose file has a text; beside it is a small table."""
    SMALL.to_csv(tmp_path / "small.csv", index=False)

    def reference(text, name="few_machines"):
        (tmp_path / "mine.py").write_text(text)
        return f"{tmp_path / 'mine.py'}:{name}"

    return reference


def returning(expression):
    return (
        f"import wsc\nNAN = float('nan')\n\n\ndef few_machines(observations, jobs, about):\n    return {expression}\n"
    )


def test_an_error_of_ones_own_withholds_the_verdict_and_changes_nothing_else(mine):
    plain = json.loads(told("effect", *TABLES, "--json").output)
    ended = told("effect", *TABLES, "--guard", mine(ALWAYS), "--json")
    answer = json.loads(ended.output)
    assert (ended.exit_code, plain["trusted"], answer["trusted"]) == (1, True, False)
    assert answer["verdict"].startswith("no verdict: fix too_few first")
    own, *ours = answer["findings"]
    assert own == {
        "code": "too_few",
        "severity": "error",
        "what": "too few machines",
        "evidence": {"machines": 60},
        "remedy": "take more",
    }
    assert (ours, answer["change"]) == (plain["findings"], plain["change"])
    assert answer["checked"] == [*plain["checked"], "few_machines"]


@pytest.mark.parametrize("command", ["audit", "monitor"])
def test_audit_and_monitor_show_it_too(mine, tmp_path, command):
    ended = told(command, tmp_path / "small.csv", "--guard", mine(ALWAYS))
    assert "too few machines" in ended.output
    assert ended.exit_code == 1


def test_what_it_prints_is_no_part_of_the_answer(mine, tmp_path):
    loud = mine("print('loaded')\n\n\ndef few_machines(observations, jobs, about):\n    print('looked')\n")
    ended = told("audit", tmp_path / "small.csv", "--guard", loud, "--json")
    assert "few_machines" in json.loads(ended.stdout)["checked"]
    assert "loaded\nlooked\n" in ended.stderr


def test_it_is_told_what_is_known_of_the_experiment(mine, tmp_path):
    about = tmp_path / "about.yaml"
    about.write_text("looks: 3\n")
    answer = json.loads(told("audit", tmp_path / "small.csv", about, "--guard", mine(ALWAYS), "--json").output)
    assert "few_machines" in answer["checked"]
    assert "too_few" not in [finding["code"] for finding in answer["findings"]]


def test_a_function_is_a_guard_in_python():
    def quota_known(observations, jobs, about):
        if jobs is None:
            raise wsc.NotEnoughData(1, 0, "tables of jobs")
        return [wsc.Finding("first", "note", "one"), wsc.Finding("second", "warning", "two")]

    silent = wsc.audit(SMALL, guards=[quota_known])
    assert "quota_known" not in silent.audit.checked
    lacks = "guard quota_known has too little to look at: no tables of jobs: at least 1 is needed"
    assert silent.payload()["notes"] == [lacks]
    assert silent.payload()["unchecked"]["quota_known"] == "no tables of jobs: at least 1 is needed"
    assert lacks in silent._repr_html_()
    assert lacks in wsc.effect(SMALL, guards=[quota_known]).notes
    assert lacks in wsc.monitor(SMALL, guards=[quota_known]).notes
    answer = wsc.effect(SMALL, jobs=pd.DataFrame({"job": ["a"], "quota": 1.0}), guards=[quota_known])
    codes = [finding.code for finding in answer.audit.findings]
    assert codes.index("second") < codes.index("first")
    assert answer.trusted
    assert wsc.monitor(SMALL, guards=[quota_known]).audit.checked


def test_what_it_raises_is_its_authors_with_his_line_and_status_2(mine, tmp_path):
    ended = told("effect", tmp_path / "small.csv", "--guard", mine(returning("observations['colour']")))
    assert ended.exit_code == 2
    assert ended.stderr.endswith("mine.py:6: KeyError: 'colour'\n")
    assert ended.stderr.count("\n") == 1

    def broken(observations, jobs, about):
        return 1 / 0

    with pytest.raises(ZeroDivisionError):
        wsc.audit(SMALL, guards=[broken])


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("'bad racks'", "should return a wsc.Finding, a list of them or None, returned a str"),
        ("0.3", "should return a wsc.Finding, a list of them or None, returned a float"),
        ("True", "should return a wsc.Finding, a list of them or None, returned a bool"),
        ("observations", "should return a wsc.Finding, a list of them or None, returned a DataFrame"),
        ("[None]", "should return a wsc.Finding, a list of them or None, returned a NoneType"),
        (
            "wsc.Finding('unit_change', 'error', 'a')",
            "code of its finding should be its own, unit_change is one of our",
        ),
        ("wsc.Finding('two words', 'error', 'a')", "code of its finding should be a name such as few_machines"),
        ("wsc.Finding('a', 'bad', 'a')", "severity of its finding should be error or warning or note, is 'bad'"),
        ("wsc.Finding('a', 'error', None)", "what of its finding should be text, is a NoneType"),
        ("wsc.Finding('a', 'error', 'a', 'a')", "evidence of its finding should be numbers by name, is a str"),
        ("wsc.Finding('a', 'error', 'a', {'n': NAN})", "evidence n of its finding should be a finite number, is nan"),
    ],
)
def test_what_is_no_finding_is_said_clearly(mine, expression, problem):
    with pytest.raises(PartError, match=re.escape(f"mine.py: few_machines: {problem}")):
        wsc.audit(SMALL, guards=[mine(returning(expression))])


def test_all_that_cannot_be_a_guard_is_said_at_once(mine, tmp_path):
    good = mine(ALWAYS + "\n\ndef peeking(observations, jobs, about): ...\n\n\ndef narrow(observations): ...\n")
    folder = good.removesuffix(":few_machines")
    wrong = ["mine", "nowhere.py:a", f"{folder}:peeking", f"{folder}:narrow", f"{folder}:wsc", good]
    ended = told("audit", tmp_path / "small.csv", *(word for text in [good, *wrong] for word in ("--guard", text)))
    assert ended.exit_code == 2
    lines = ended.stderr.splitlines()
    assert len(lines) == len(wrong)
    assert all(line.startswith("--guard: ") for line in lines)
    said = "\n".join(lines)
    assert "mine: should be file.py:Name" in said
    assert "nowhere.py cannot be read: No such file" in said
    assert "mine.py:peeking: should have a name of its own, peeking is one of ours" in said
    assert "mine.py:narrow: should be a function of observations, jobs, about: too many positional" in said
    assert "mine.py:wsc: should be a function of observations, jobs, about, is a module" in said
    assert f"{good}: should have a name of its own, {good} is called few_machines, too" in said


def test_a_missing_object_and_a_file_that_cannot_be_run_are_said_with_their_place(mine, tmp_path):
    assert (
        "mine.py: holds no nothing, but few_machines, wsc"
        in told("audit", tmp_path / "small.csv", "--guard", mine(ALWAYS, "nothing")).stderr
    )
    ended = told("audit", tmp_path / "small.csv", "--guard", mine("def few_machines(:\n"))
    assert (ended.exit_code, ended.stderr.count("\n")) == (2, 1)
    assert "mine.py:1: SyntaxError" in ended.stderr


def test_a_function_in_python_needs_a_name_of_its_own():
    with pytest.raises(FaultsError, match=r"guards: .*: should have a name, under which it counts"):
        own_guards([lambda observations, jobs, about: None])
    with pytest.raises(FaultsError, match="guards: 3: should be a function of observations, jobs, about, is an int"):
        own_guards([3])


def test_the_list_of_our_guards_is_that_of_the_table_and_of_the_document():
    ended = told("audit", "--list")
    assert ended.exit_code == 0
    listed = [line.split()[0] for line in ended.output.splitlines()[2:] if line[:1].strip()]
    assert listed == list(GUARDS)
    for options in (["--list", "--json"], ["--json", "--list"]):
        assert [guard["code"] for guard in json.loads(told("audit", *options).output)["guards"]] == listed
    rows = [line.split("`")[1] for line in Path("docs/audit.md").read_text().splitlines() if line.startswith("| `")]
    assert set(GUARDS) <= set(rows)
