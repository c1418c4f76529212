"""The command: what it prints where, and with which status it ends."""

import ast
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from numba.core import event
from typer.testing import CliRunner

from analysis.effects.methods import of_tables
from analysis.statistics import NotEnoughDataError
from models.fleet import world
from scenarios.commands.app import PANELS, app
from scenarios.files import options
from scenarios.files.faults import Fault, FaultsError
from scenarios.files.json_schema import json_schema
from scenarios.files.loader import LIBRARY, library
from scenarios.runs import execution
from scenarios.runs.rundir import RunError, run_directory
from scenarios.views import terminal
from scenarios.views.conclusion import Conclusion
from scenarios.views.section import Section

ROOT = Path(__file__).parents[3]
COMMANDS = (
    *("run", "validate", "wsmeter", "occupancy", "predict", "select", "platforms", "reproduce", "live"),
    *("scenarios", "check"),
)


def wsc(*arguments):
    return CliRunner().invoke(app, arguments)


class Said(Conclusion):
    """A conclusion that says no more than its payload."""

    def __init__(self, **values):
        self.values = values

    def section(self):
        return Section("")

    def payload(self):
        return self.values

    def frame(self):
        return pd.DataFrame([self.values])


def fleet(**_):
    return Said(kind="fleet", truth={"change": float("nan")}, estimates=[])


def test_help_lists_every_command_once_under_the_question_that_it_answers():
    shown = wsc("--help").stdout
    panels = re.split(r"╭─ (.+?) ─+╮", shown)
    listed = {
        title: re.findall(r"^│ (\w+) ", body, re.MULTILINE)
        for title, body in zip(panels[3::2], panels[4::2], strict=True)
    }
    assert {title: tuple(names) for title, names in listed.items()} == dict(PANELS)


def test_help_of_an_estimator_lists_all_of_them():
    shown = re.sub(r"[│\s]+", " ", wsc("effect", "--help").stdout)
    assert f"Estimator: {', '.join(of_tables()[:-1])} or {of_tables()[-1]} (see" in shown


def test_help_lists_the_commands_of_the_contract():
    shown = wsc("--help").stdout
    assert [name for name in COMMANDS if re.search(rf"^\W*{name}\b", shown, re.MULTILINE)] == list(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command):
    result = wsc(command, "--help")
    assert result.exit_code == 0
    assert "Usage" in result.stdout


def test_help_imports_nothing_heavy():
    program = (
        "import sys; from scenarios.commands.app import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'pandas', 'pyarrow', 'numba', 'scipy', 'pydantic', 'ruamel', 'matplotlib'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=LIBRARY.parents[1]
    )
    assert found.stdout.splitlines()[-1] == "[]"


def test_the_schema_that_editors_use_is_up_to_date():
    """Written by ``wsc check --schema > scenarios/library/schema.json``."""
    result = wsc("check", "--schema")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == json.loads((LIBRARY / "schema.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", library())
def test_shipped_files_name_their_schema_for_editors(name):
    first = (LIBRARY / f"{name}.yaml").read_text(encoding="utf-8").splitlines()[0]
    assert first == "# yaml-language-server: $schema=schema.json"


def test_the_schema_says_meaning_unit_and_bounds_of_every_key():
    parts = json_schema()
    described = [parts, *parts["$defs"].values()]
    assert all(
        entry.get("description") for part in described for name, entry in part["properties"].items() if name != "sweep"
    )
    assert parts["$defs"]["Churn"]["properties"]["drain_s"]["description"] == "Mean length of a drain. Unit: seconds."
    share = parts["$defs"]["Population"]["properties"]["allocated_share"]
    assert (share["minimum"], share["maximum"], share["default"]) == (0, 1, world.Population().allocated_share)
    assert parts["$defs"]["WSMeter"]["properties"]["machines"]["default"] == [25, 50, 100]


def test_the_schema_asks_for_no_key_that_a_base_may_say():
    parts = json_schema()
    assert "required" not in parts
    assert {name for name, part in parts["$defs"].items() if "required" in part} == {
        "Cache",
        "Incident",
        "Library",
        "LoadPoint",
        "NetworkStation",
        "RequestType",
        "Served",
        "ServedType",
        "ServerStep",
        "Service",
        "Software",
        "Sweep",
        "Watch",
        "Window",
    }


def test_scenarios_lists_the_library_with_descriptions():
    listed = json.loads(wsc("scenarios", "--json").stdout)
    kinds = {"fleet", "queue", "cross_platform", "profile", "sweep"}
    assert [one["name"] for one in listed] == library()
    assert {"cpu_upgrade", "dvfs_policy", "customer_services", "two_wscs", "small"} <= {one["name"] for one in listed}
    assert all(one["description"] and one["kind"] in kinds for one in listed)
    assert "cpu_upgrade" in wsc("scenarios").stdout


def test_scenarios_of_wsmeter_are_as_large_and_alike_as_the_paper_says():
    from scenarios.files.loader import load

    for name in ("cpu_upgrade", "dvfs_policy", "customer_services"):
        scenario = load(name)
        assert scenario.population.jobs >= 3000
        assert len(scenario.fleet.platforms) == 1


def test_check_passes_good_files_and_prints_all_faults_of_bad_ones(tmp_path):
    (tmp_path / "one.yaml").write_text("seed: x\nepoch_s: 7\n")
    (tmp_path / "two.yaml").write_text("sed: 1\n")
    good = wsc("check", "small", "two_wscs")
    assert (good.exit_code, good.stderr) == (0, "")
    assert good.stdout.splitlines() == ["small: no faults", "two_wscs: no faults in 2 scenarios"]
    bad = wsc("check", "small", str(tmp_path / "one.yaml"), str(tmp_path / "two.yaml"))
    assert bad.exit_code == 2
    assert bad.stdout.splitlines() == ["small: no faults"]
    assert bad.stderr.splitlines() == [
        f'{tmp_path}/one.yaml:1:7: seed: should be a whole number, got "x"',
        f"{tmp_path}/one.yaml:2:10: epoch_s: should divide horizon_s = 86400, got 7",
        f"{tmp_path}/two.yaml:1:1: sed: unknown key (did you mean seed?), got 1",
    ]


def test_check_gives_faults_as_one_json_value_too(tmp_path):
    (tmp_path / "one.yaml").write_text("seed: x\n")
    result = wsc("check", str(tmp_path / "one.yaml"), "--json")
    assert result.exit_code == 2
    (file,) = json.loads(result.stdout)["files"]
    assert file["faults"][0] == {
        "file": str(tmp_path / "one.yaml"),
        "line": 1,
        "column": 7,
        "field": "seed",
        "problem": "should be a whole number",
        "got": '"x"',
        "record": "",
    }


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("run", "small", "--seed", "1.0"), "--seed: should be a whole number, got 1.0"),
        (("run", "small", "--seed", "nan"), '--seed: should be a whole number, got "nan"'),
        (("run", "small", "--set", "seed=-1"), "--set: seed: should be at least 0, got -1"),
        (("validate", "small", "--draws", "0"), "--draws: analyses.wsmeter.draws: should be at least 1, got 0"),
        (
            ("validate", "small", "--machines", "10,x"),
            '--machines: analyses.wsmeter.machines.1: should be a whole number, got "x"',
        ),
        (
            ("validate", "small", "--machines", "151"),
            "--machines: analyses.wsmeter.machines.0: should be at most the 150 machines with the feature, got 151",
        ),
        (
            ("validate", "small", "--machines", "0"),
            "--machines: analyses.wsmeter.machines.0: should be at least 1, got 0",
        ),
        (
            ("validate", "small", "--machines", "abc"),
            '--machines: analyses.wsmeter.machines.0: should be a whole number, got "abc"',
        ),
        (
            ("validate", "small", "--machines", "25,25"),
            "--machines: analyses.wsmeter.machines.1: another test cluster has this size, got 25",
        ),
        (
            ("run", "small", "--set", "epoch_s=1e-9"),
            "--set: epoch_s: should be at least 0.864, 100000 epochs in horizon_s = 86400, got 1e-09",
        ),
        (("validate", "today"), "today: there is no truth to validate against, it has no feature"),
        (
            ("validate", "queue_small"),
            "queue_small: is a queue, of which no test clusters can be drawn; the laws stand beside the truth in what "
            "wsc run says",
        ),
        (
            ("validate", "cross_rubis", "--draws", "0"),
            "--draws: analyses.crossplatform.worlds: should be at least 1, got 0",
        ),
        (
            ("validate", "small", "--set", "recording.truth=false"),
            "small: there is no truth to validate against, recording.truth is false",
        ),
        (
            ("wsmeter", "plan", "x.csv", "--margin", "nan"),
            '--margin: should be a share between 0 and 1, such as 3% or 0.03, got "nan"',
        ),
        (
            ("wsmeter", "plan", "x.csv", "--margin", "3%", "--t", "inf"),
            '--t: should be a number greater than 0, got "inf"',
        ),
        (
            ("wsmeter", "plan", "x.csv", "--margin", "3%", "--min-instances", "4.0"),
            '--min-instances: should be a whole number of at least 1, got "4.0"',
        ),
    ],
)
def test_wrong_values_of_options_end_the_command_with_2_and_their_place(arguments, told):
    result = wsc(*arguments)
    assert (result.exit_code, result.stdout, result.stderr.strip()) == (2, "", told)


@pytest.mark.parametrize("text", ["3%", "0.03", " 3 % ", "3e-2"])
def test_shares_are_written_in_either_way(text):
    assert options.share("--margin", text) == pytest.approx(0.03)


@pytest.mark.parametrize("text", ["3", "300%", "0", "-1%", "nan", "inf", "%", "", "three"])
def test_what_is_no_share_is_refused(text):
    with pytest.raises(FaultsError, match="should be a share between 0 and 1"):
        options.share("--margin", text)


def test_run_prints_one_json_value_in_which_nan_is_null(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(execution, "run", lambda *given, **_: asked.append(given) or fleet())
    result = wsc(
        "run", "small", "--out", str(tmp_path), "--seed", "8", "--set", "fleet.machines=250", "--force", "--json"
    )
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"kind": "fleet", "truth": {"change": None}, "estimates": []}
    scenario, out, force, _, precision = asked[0]
    assert precision is None
    assert (scenario.seed, scenario.fleet.machines, out, force) == (8, 250, tmp_path, True)


def test_run_of_a_sweep_is_one_json_value_with_all_its_runs(monkeypatch):
    monkeypatch.setattr(execution, "run", lambda scenario, *_, **__: Said(kind="fleet", scenario=scenario.name))
    assert json.loads(wsc("run", "two_wscs", "--json").stdout) == {
        "kind": "sweep",
        "runs": [{"kind": "fleet", "scenario": f"two_wscs-seed-{seed}"} for seed in (1, 2)],
    }


def test_validate_takes_draws_and_sizes_from_the_command_line(monkeypatch):
    asked = []
    monkeypatch.setattr(execution, "validate", lambda *given: asked.append(given) or fleet())
    result = wsc("validate", "small", "--draws", "30", "--machines", "5,20", "--json")
    assert result.exit_code == 0
    assert (asked[0][0].analyses.wsmeter.draws, asked[0][0].analyses.wsmeter.machines) == (30, (5, 20))


def test_validate_of_a_cross_platform_scenario_draws_worlds(monkeypatch):
    asked = []
    monkeypatch.setattr(execution, "validate", lambda *given: asked.append(given) or Said(kind="cross_platform"))
    assert wsc("validate", "cross_rubis", "--draws", "7", "--seed", "3", "--json").exit_code == 0
    assert (asked[0][0].analyses.crossplatform.worlds, asked[0][0].seed) == (7, 3)


def test_ctrl_c_ends_with_130_and_one_line(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(execution, "run", interrupted)
    result = wsc("run", "small", "--json")
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "interrupted\n")


@pytest.mark.parametrize(
    "error", [FaultsError([Fault("a", 1, 2, "b", "c")]), NotEnoughDataError(4, 1), RunError("gone")]
)
def test_an_error_that_says_what_the_user_can_mend_is_one_line_and_2(monkeypatch, error):
    def refused(*_, **__):
        raise error

    monkeypatch.setattr(execution, "run", refused)
    result = wsc("run", "small")
    assert (result.exit_code, result.stderr) == (2, f"{error}\n")


def test_a_value_that_the_testbed_refuses_is_one_line_and_2(monkeypatch):
    monkeypatch.setattr(execution, "run", lambda *_, **__: run_directory(Path("runs"), ".hidden", "0" * 12))
    result = wsc("run", "small")
    assert result.exit_code == 2
    assert result.stderr == "scenario name '.hidden': must be usable as the name of a visible folder\n"


def test_a_missing_file_is_one_line_and_2(tmp_path):
    result = wsc("wsmeter", "estimate", "--current", str(tmp_path / "a.csv"), "--new", str(tmp_path / "b.csv"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert str(tmp_path / "a.csv") in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("command", ["run", "validate", "reproduce"])
def test_a_folder_that_cannot_be_made_is_told_with_its_option(command, tmp_path):
    (tmp_path / "file").write_text("")
    what = "wsmeter/table2" if command == "reproduce" else "small"
    for folder, reason in (("file", "File exists"), ("file/runs", "Not a directory")):
        result = wsc(command, what, "--out", str(tmp_path / folder))
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr == f"--out: cannot make a folder at {tmp_path / folder}: {reason}\n"


def test_a_folder_in_place_of_a_file_is_told(tmp_path):
    for command in ("check", "validate"):
        result = wsc(command, f"{tmp_path}/")
        assert (result.exit_code, result.stderr) == (2, f"{tmp_path}/: is a folder, not a scenario file\n")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MemoryError("Unable to allocate 44 PiB"), "there is not enough memory: Unable to allocate 44 PiB"),
        (MemoryError(), "there is not enough memory"),
    ],
)
def test_too_little_memory_is_one_line_and_2(monkeypatch, error, told):
    def too_large(*_, **__):
        raise error

    monkeypatch.setattr(execution, "run", too_large)
    result = wsc("run", "small")
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"{told}\n")


def test_an_error_of_our_own_making_keeps_its_traceback(monkeypatch):
    for broken in (lambda *_, **__: {}["key"], lambda *_, **__: int("x")):
        monkeypatch.setattr(execution, "run", broken)
        result = wsc("run", "small")
        assert result.exit_code == 70
        assert "Traceback" in result.stderr
        assert "this is a fault of wsc" in result.stderr


def test_an_unknown_option_is_2():
    assert wsc("run", "small", "--sed", "3").exit_code == 2


def test_progress_is_silent_when_nobody_watches(capsys):
    with terminal.progress() as tell:
        tell("simulating", 0.5)
    assert capsys.readouterr() == ("", "")


def test_progress_goes_to_a_terminal_on_stderr(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with terminal.progress() as tell:
        tell("simulating", 0.5)
        tell("simulating", 1.0)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "simulating" in shown.err
    with terminal.progress(quiet=True) as tell:
        tell("simulating", 0.5)
    assert capsys.readouterr() == ("", "")


def test_what_takes_long_says_so_and_what_is_quick_does_not(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with terminal.working("reading"):
        pass
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(terminal, "SOON_S", 0.001)
    with terminal.working("reading"):
        time.sleep(0.05)
    shown = capsys.readouterr()
    assert (shown.out, "reading" in shown.err, "compiling" in shown.err) == ("", True, False)
    with terminal.working("reading"), event.trigger_event("numba:compile"):
        time.sleep(0.05)
    assert "compiling, this once" in capsys.readouterr().err
    with terminal.working("reading", quiet=True):
        time.sleep(0.05)
    assert capsys.readouterr() == ("", "")


def test_every_command_that_may_take_long_says_that_it_works():
    silent = set()
    for file in (ROOT / "scenarios" / "commands").glob("*.py"):
        for function in ast.parse(file.read_text("utf-8")).body:
            if isinstance(function, ast.FunctionDef) and "guard" in map(ast.unparse, function.decorator_list):
                called = {ast.unparse(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}
                silent |= {function.name} if not called & {"progress", "working"} else set()
    assert silent == {"check", "platforms", "scenarios", "serve"}


def test_json_holds_plain_values_alone():
    import numpy as np

    value = {"a": np.float64("nan"), "b": (np.int64(3), np.bool_(True)), "c": np.array([1.0, np.inf]), 4: "é"}
    assert json.loads(terminal.dumps(value)) == {"a": None, "b": [3, True], "c": [1.0, None], "4": "é"}


def test_help_of_the_scorecard_names_every_design():
    from scenarios.effects.scorecard.designs import DESIGNS

    text = " ".join(re.sub(r"[│╭╰─]", " ", CliRunner().invoke(app, ["scorecard", "--help"]).stdout).split())
    assert f"Designs: {', '.join(DESIGNS)}; by default all." in text
