"""Ways to predict of somebody's own: used and judged beside ours, and their mistakes are their author's."""

import json

import pytest
from typer.testing import CliRunner

import wsc
from analysis.crossplatform.methods import METHODS
from analysis.crossplatform.own_methods import own_method
from models.code.parts import PartError
from scenarios.commands.app import app
from scenarios.commands.validate import _methods as asked_methods

LOG = "docs/examples/service.csv.gz"
MINE = '''
class Clocks:
    """CPU time scaled by clock cycles."""

    def __init__(self, evidence):
        log, self.origin = evidence.log, evidence.platform
        self.service_time_s = (log.utilisation * log.interval_s).sum() / log.counts.sum()

    def predict(self, platform, counts, interval_s):
        cycles = [server.vcpus * server.base_frequency_hz for server in (self.origin, platform)]
        time_s = self.service_time_s * cycles[0] / cycles[1]
        return {"service_time_s": time_s, "service_low_s": 0.8 * time_s, "service_high_s": 1.25 * time_s}


class testbed(Clocks):
    """Taken."""


class Other(testbed):
    """Of another name."""

    name = "other"
    counts_instructions = False


def raises(evidence):
    return {}["nothing"]


def predicts_late(evidence):
    return lambda platform, counts, interval_s: counts["all"]


def negative(evidence):
    return lambda platform, counts, interval_s: -1.0


def silent(evidence):
    return lambda platform, counts, interval_s: float("nan")


def number(evidence):
    return 1.0


def needs_more(evidence):
    import wsc

    raise wsc.NotEnoughData(5000, len(evidence.log.start_s), "intervals")


LEVEL = 3


class narrow(Clocks):
    def predict(self, platform):
        return 1.0
'''


@pytest.fixture
def mine(tmp_path):
    """The reference of an object of a file with ways to predict."""
    (tmp_path / "mine.py").write_text(MINE)
    return lambda name: f"{tmp_path / 'mine.py'}:{name}"


def told(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def predicted(method):
    return told("predict", LOG, "--from", "piii", "--to", "pres,pd4", "--method", method, "--json")


def test_a_prediction_of_ones_own_is_that_of_the_shipped_one_with_the_same_formula(mine):
    own, shipped = (json.loads(predicted(name).output) for name in (mine("Clocks"), "cycle_scalar"))
    assert (own["method"], shipped["method"]) == ("Clocks", "cycle_scalar")
    for one, other in zip(own["targets"], shipped["targets"], strict=True):
        assert one["service_time_s"] == pytest.approx(other["service_time_s"])
        assert one["response_time_s"] == pytest.approx(other["response_time_s"])
        assert one["service_low"] == pytest.approx(0.8 * one["service_time_s"])
        assert one["low"] < one["response_time_s"] < one["high"]
    assert wsc.service(LOG, "piii").predict(["pres", "pd4"], mine("Clocks")).payload()["targets"] == own["targets"]


def test_platforms_are_ranked_by_it(mine):
    asked = ("--from", "piii", "--to", "pres,pd4", "--bound", "150ms", "--method", mine("Clocks"), "--json")
    ranked = json.loads(told("select", LOG, *asked).output)
    assert [row["platform"] for row in ranked["platforms"]] == ["pd4", "pres"]
    assert all(row["low"] < row["throughput_per_s"] < row["high"] for row in ranked["platforms"])
    answer = wsc.service(LOG, "piii").select(0.15, ["pres", "pd4"], mine("Clocks"))
    assert answer.frame()["throughput_per_s"].tolist() == [row["throughput_per_s"] for row in ranked["platforms"]]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("raises", "mine.py:27: KeyError: 'nothing'"),
        ("predicts_late", "mine.py:31: IndexError: only integers"),
        ("negative", "mine.py: negative: service_time_s should be above 0 seconds, and finite, got -1"),
        (
            "number",
            "mine.py: number should return an object with predict(platform, counts, interval_s), got float",
        ),
        ("LEVEL", "--method: {file}: LEVEL should be a class or a function that takes the evidence, is of type int"),
        ("testbed", "--method: {file}: should have a name of its own, testbed is one of ours"),
        ("nothing", "--method: {file}: holds no nothing, but Clocks, LEVEL, Other,"),
        (
            "narrow",
            "mine.py:56: narrow.predict: should be a function of (self, platform, counts, interval_s), got (self, ",
        ),
        ("silent", "method silent has no answer (NaN) for the service on pres, pd4"),
        ("needs_more", "service.csv.gz: 5000 intervals are needed, 1200 given"),
    ],
)
def test_a_mistake_is_said_clearly_with_status_2(mine, name, problem):
    ended = predicted(mine(name))
    assert ended.exit_code == 2
    assert problem.format(file=mine(name).rpartition(":")[0]) in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_method_that_counts_no_instructions_may_be_asked_about_another_instruction_set(mine):
    asked = ("predict", LOG, "--from", "piii", "--to", "altra_q80_30", "--method")
    assert told(*asked, mine("Other")).exit_code == 0
    refused = told(*asked, mine("Clocks"))
    assert refused.exit_code == 2
    assert "instruction counts of a log on piii (x86) do not carry over to altra_q80_30 (arm64)" in refused.stderr
    assert (
        "--instruction-ratio: method other counts no instructions"
        in told(*asked, mine("Other"), "--instruction-ratio", "0.8,1.2").stderr
    )


def test_a_file_that_is_not_there_is_said():
    ended = predicted("nowhere.py:Mine")
    assert (ended.exit_code, ended.stderr.count("\n")) == (2, 1)
    assert ended.stderr.startswith("--method: nowhere.py:Mine: ")


def test_its_name_is_its_own_attribute_if_it_has_one(mine):
    assert own_method(mine("Other")).name == "other"
    assert own_method(mine("Other")).what == "Of another name."
    with pytest.raises(PartError, match="should have a name of its own, testbed is one of ours"):
        own_method(mine("testbed"))


SHORT = """
kind: cross_platform
extends: cross_rubis
horizon_s: 7200
application:
  types: 4
platforms: [piii, pres, pd4]
analyses:
  crossplatform:
    methods: [cycle_scalar, mine.py:Clocks]
    choices: 2
    worlds: 1
"""


@pytest.fixture
def scenario(mine, tmp_path):
    """A short scenario beside the file with ways to predict, which it names."""
    (tmp_path / "short.yaml").write_text(SHORT)
    return tmp_path / "short.yaml"


def errors(*arguments):
    """The median errors of service time of every method, worlds' medians, by its name."""
    ended = told(*arguments, "--json")
    assert ended.exit_code == 0, ended.output
    rows = json.loads(ended.output)["methods"]
    return {row["method"]: row["service_error"] for row in rows}


def test_a_scenario_names_it_and_it_is_judged_beside_ours_and_anew_when_its_file_changes(scenario, tmp_path):
    out = ("--out", tmp_path / "runs")
    ours, own = errors("validate", scenario, *out).values()
    assert own == pytest.approx(ours)
    alone = errors("validate", scenario, "--methods", f"{tmp_path / 'mine.py'}:Clocks", *out)
    assert alone == {"Clocks": own}
    (tmp_path / "mine.py").write_text(
        MINE.replace('return {"service_time_s": time_s', 'return {"service_time_s": 1.2 * time_s')
    )
    assert errors("validate", scenario, *out)["cycle_scalar"] == ours
    assert errors("validate", scenario, *out)["Clocks"] != pytest.approx(own)


def test_a_conclusion_that_is_kept_is_not_told_again_when_its_file_changed(scenario, tmp_path, monkeypatch):
    out = ("--out", tmp_path / "runs")
    before = errors("run", scenario, *out)
    (tmp_path / "mine.py").write_text(MINE.replace("cycles[0] / cycles[1]", "cycles[0] / cycles[1] * 1.1"))
    after = errors("run", scenario, *out)
    assert after["cycle_scalar"] == before["cycle_scalar"]
    assert after["Clocks"] != before["Clocks"]
    (run,) = (tmp_path / "runs").iterdir()
    monkeypatch.chdir(tmp_path)
    assert errors("run", run) == after
    (tmp_path / "mine.py").unlink()
    ended = told("run", run)
    assert (ended.exit_code, ended.stderr.count("\n")) == (2, 1)
    assert "mine.py cannot be read: No such file" in ended.stderr


def test_what_it_raises_while_it_is_judged_ends_the_command(scenario, mine):
    for name, problem in (("raises", "KeyError: 'nothing'"), ("negative", "should be above 0 seconds")):
        ended = told("validate", scenario, "--methods", f"cycle_mix,{mine(name)}", "--out", scenario.parent / "runs")
        assert (ended.exit_code, ended.stderr.count("\n")) == (2, 1)
        assert problem in ended.stderr


def test_too_little_evidence_is_a_note_beside_what_others_say(scenario, mine):
    asked = ("--methods", f"cycle_mix,{mine('needs_more')}", "--out", scenario.parent / "runs", "--json")
    answer = json.loads(told("validate", scenario, *asked).output)
    assert [row["method"] for row in answer["methods"]] == ["cycle_mix"]
    assert answer["notes"] == ["needs_more: 5000 intervals are needed, 120 given"]


def test_check_finds_what_is_wrong_with_methods_at_their_place(scenario):
    names = "[cycle_mix, mine.py:LEVEL, nowhere.py:Mine, mine.py:testbed, mine.py:Clocks, mine.py:Clocks]"
    scenario.write_text(SHORT.replace("[cycle_scalar, mine.py:Clocks]", names))
    ended = told("check", scenario)
    assert ended.exit_code == 2
    wrong = [line.split("methods.")[1].split(": ", 1) for line in ended.stderr.splitlines()]
    assert [place for place, _ in wrong] == ["1", "2", "3", "5"]
    assert "nowhere.py cannot be read" in wrong[1][1]
    scenario.write_text(SHORT.replace("[cycle_scalar, mine.py:Clocks]", "[magic]"))
    assert "methods.0: should be 'cycle_scalar', " in (said := told("check", scenario).stderr)
    assert said.endswith('or file.py:name of your own, got "magic"\n')


def test_ours_are_all_that_are_shipped():
    (override,) = asked_methods("ours, mine.py:Other")
    assert json.loads(override.value) == [*(method.name for method in METHODS), "mine.py:Other"]
