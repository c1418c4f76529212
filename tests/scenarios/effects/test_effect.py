"""`wsc effect`: from two exports to a verdict, findings first, faults with their places, runs in place of files."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import wsc
from analysis.effects.estimators.adjusted import Adjusted
from analysis.effects.study import Effect, Study
from models.errors import InputError, WscError
from scenarios.commands.app import app
from scenarios.effects.effect import effect as effect_of
from scenarios.effects.effect import verdict
from scenarios.files.faults import FaultsError
from tests.helpers.outside_spill import Domains
from tests.helpers.outside_spill import fleet as fleet_of_domains
from tests.helpers.report_pages import made


def effect(*sources, **options):
    """What the command prints as JSON."""
    return effect_of(*sources, **options).payload()


JOBS = ("search", "mail", "ads")


def fleet(change=0.05, machines=60, seed=1, treated=0.5):
    """Return two weeks' means of a fleet of three jobs on every machine, and the jobs' table."""
    rng = np.random.default_rng(seed)
    machine, job = np.divmod(np.arange(3 * machines), 3)
    own = (1.0 + job) * (1.0 + 0.04 * rng.standard_normal(3 * machines))
    having = rng.permutation(machines)[: round(treated * machines)]
    rows = []
    for period in (0, 1):
        on = np.isin(machine, having) & (period == 1)
        value = own * (1.0 + 0.01 * rng.standard_normal(3 * machines)) * np.where(on, 1.0 + change, 1.0)
        name = [JOBS[each] for each in job]
        rows.append(
            pd.DataFrame({"period": period, "job": name, "machine": machine, "weight": 1.0 + job, "value": value})
            .assign(treated=on.astype(int))
            .astype({"machine": str})
        )
    return rows


@pytest.fixture
def files(tmp_path):
    made = []
    for name, table in zip(("before.csv", "after.csv"), fleet(), strict=True):
        table.to_csv(tmp_path / name, index=False)
        made.append(tmp_path / name)
    (tmp_path / "jobs.csv").write_text("job,quota,instances\nsearch,60,60\nmail,120,60\nads,180,60\n")
    return *made, tmp_path / "jobs.csv"


OWN = """
class Mine:
    def estimate(self, experiment):
        means = experiment.study.groupby(["job", "treated"])["value"].mean().unstack()
        quota = experiment.jobs.set_index("job")["quota"]
        change = (means[True] / means[False] - 1).mul(quota / quota.sum()).sum()
        return change, change - 0.02, change + 0.01 * experiment.confidence
"""


def test_an_estimator_of_ones_own_is_asked_on_the_tables(files, tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    answer = effect_of(files[:2], files[2], estimator=f"{tmp_path / 'mine.py'}:Mine", confidence=0.8)
    after = pd.read_csv(files[1])
    means = after.pivot_table("value", "job", "treated")
    change = (means[1] / means[0] - 1).to_dict()
    change = (60 * change["search"] + 120 * change["mail"] + 180 * change["ads"]) / 360
    assert (answer.change, answer.low, answer.high) == pytest.approx((change, change - 0.02, change + 0.008))
    ours = effect_of(files[:2], files[2]).effect
    counts = ("design", "machines", "controls", "jobs", "quota_coverage")
    assert [getattr(answer.effect, name) for name in counts] == [getattr(ours, name) for name in counts]
    payload = answer.payload()
    assert (payload["margin"], payload["cluster"]) == (pytest.approx(0.014), None)
    assert invoke("effect", *files[:2], "--estimator", f"{tmp_path / 'mine.py'}:Other").exit_code == 2
    with pytest.raises(InputError, match=r"^\S*test_effect.py:\d+: .*should answer with three numbers"):
        effect_of(files[:2], estimator=lambda _: 3)


@pytest.mark.parametrize(("times", "told"), [(100.0, True), (1.0, False), (10.0, False), (-100.0, False)])
def test_an_answer_in_percent_is_questioned(files, times, told):
    answer = effect_of(files[:2], files[2], estimator=lambda _: (times * 0.05, times * 0.05 - 1.0, times * 0.05 + 1.0))
    assert told is any("should it be a share, such as 0.05 for 5%?" in note for note in answer.notes)


def invoke(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments])


def test_two_exports_give_the_effect_and_what_wsmeter_would_say(files):
    payload = effect(files[:2], files[2])
    assert payload["low"] < 0.05 < payload["high"]
    assert payload["zero_ruled_out"]
    assert payload["verdict"].startswith("faster by")
    assert payload["design"] == "concurrent"
    assert abs(payload["published"]["change"] - 0.05) < 0.02
    assert {"findings", "checked"} <= payload.keys()


def test_json_has_every_field_of_the_effect(files):
    result = invoke("effect", *files[:2], "--jobs", files[2], "--json")
    assert result.exit_code == 0
    payload = json.loads(result.stdout)
    assert set(Effect.__dataclass_fields__) <= payload.keys()


def test_values_that_do_not_differ_give_no_interval_to_the_published_estimate_either(files):
    for file in files[:2]:
        table = pd.read_csv(file)
        table.assign(value=table["job"].map(len)).to_csv(file, index=False)
    text = invoke("effect", *files[:2], "--jobs", files[2]).output
    assert "WSMeter as published, against the periods before, gives +0.00% without an interval" in text


def test_findings_stand_above_the_verdict(files):
    before, after = (pd.read_csv(file) for file in files[:2])
    after.assign(treated=1).to_csv(files[1], index=False)
    before.to_csv(files[0], index=False)
    result = invoke("effect", *files[:2])
    assert result.exit_code == 2
    assert "2 machines without the feature while others have it are needed, 0 given" in result.output
    pd.concat([after, after.iloc[:3].assign(weight=lambda rows: rows["weight"] * 2)]).to_csv(files[1], index=False)
    text = invoke("effect", *files[:2]).output
    if "remedy" in text:
        assert text.index("remedy") < text.index("faster by")


def test_jobs_are_named_where_asked_for(files):
    payload = effect(files[:2], files[2], by_job=True)
    assert {row["job"]: row["verdict"] for row in payload["per_job"]} == dict.fromkeys(JOBS, "gained")
    assert "3 gained" in invoke("effect", *files[:2], "--per-job").output


def test_faults_of_all_files_are_told_together(files):
    files[0].write_text("period,job,machine,weight,value,treated\n0,a,m,1,2,7\n")
    files[2].write_text("job,quota,instances\nsearch,none,3\n")
    with pytest.raises(FaultsError) as caught:
        effect([*files[:2], files[0].with_name("gone.csv")], files[2])
    said = str(caught.value)
    assert "before.csv:2:6: treated: should be 0 or 1" in said
    assert "gone.csv: cannot be read" in said
    assert 'jobs.csv:2:2: quota: should be a number, got "none"' in said


def test_a_table_of_jobs_among_the_observations_is_to_be_named_by_its_option(files):
    result = invoke("effect", *files)
    assert result.exit_code == 2
    assert result.stderr.strip() == (
        f"--jobs: takes the table of jobs, which {files[2]} is: it has quota, and no period, machine, weight, value"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--estimator", "best"], "--estimator: should be one of published"),
        (["--confidence", "2"], "--confidence: should be a share"),
    ],
)
def test_options_that_make_no_sense_end_in_a_plain_line(files, options, said):
    result = invoke("effect", *files[:2], *options)
    assert result.exit_code == 2
    assert said in result.output
    assert "Traceback" not in result.output


def test_jobs_that_the_fleet_does_not_have_are_told_and_nothing_else(files):
    after = pd.read_csv(files[1])
    after.assign(job="日本" + after["job"], shard=1, instance=after.index).to_csv(files[1], index=False)
    before = pd.read_csv(files[0])
    before.assign(shard=1, instance=before.index).to_csv(files[0], index=False)
    result = invoke("effect", *files[:2], "--jobs", files[2])
    assert result.exit_code == 2
    assert result.output.strip().endswith("is not among the fleet's jobs")
    assert result.output.count("\n") == 1


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return made("small", tmp_path_factory.mktemp("runs"), "fleet.machines=80").path


def test_a_run_has_one_truth_whatever_command_is_asked(run):
    """`wsc run` said instructions per cycle and `wsc effect` instructions per CPU second, each without being told."""
    answers = [json.loads(invoke(command, run, "--json").stdout) for command in ("run", "effect", "audit", "monitor")]
    assert {answer["metric"] for answer in answers} == {"ips"}
    assert answers[0]["truth"]["change"] == answers[1]["truth"]["change"]
    other = [json.loads(invoke(command, run, "--metric", "ipc", "--json").stdout) for command in ("run", "effect")]
    assert {answer["metric"] for answer in other} == {"ipc"}
    assert other[0]["truth"]["change"] == other[1]["truth"]["change"] != answers[0]["truth"]["change"]
    for command in ("run", "effect", "audit", "monitor"):
        assert "measured: instructions per CPU second (ips)" in invoke(command, run).output


def test_racks_and_power_domains_of_a_run_can_be_domains(run):
    assert wsc.effect(run, domain="rack").effect.estimator == "exposure"
    for column, told in (
        ("power_domain", "the only value of power_domain has 50%"),
        ("hall", "got rack, power_domain, platform"),
    ):
        with pytest.raises(WscError, match=told):
            wsc.effect(run, domain=column)


def test_guards_know_what_a_run_is_measured_in_without_being_told(run):
    """Cycles compared across clocks went unseen where nobody had written the metric into a file."""
    for metric in ("ips", "ipc"):
        for command in ("effect", "audit"):
            payload = json.loads(invoke(command, run, "--metric", metric, "--json").stdout)
            assert "ipc_across_frequencies" in payload["checked"]


def test_runs_that_are_measured_in_different_metrics_need_one(run, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(run, other)
    manifest = json.loads((other / "manifest.json").read_text())
    manifest["resolved"]["analyses"]["wsmeter"]["metric"] = "ipc"
    (other / "manifest.json").write_text(json.dumps(manifest))
    ended = invoke("effect", run, other)
    assert ended.exit_code == 2
    assert "--metric: should say one metric for runs measured in several" in ended.output


def test_rows_of_a_run_are_taken_by_the_columns_of_its_observations(run):
    """The whole fleet's answer came back, whatever was asked for."""
    whole = wsc.read(run)
    rack = whole["rack"].iloc[0]
    some = wsc.read(run, where=f"rack <> {rack}")
    pd.testing.assert_frame_equal(some, whole[whole["rack"] != rack].reset_index(drop=True))
    answer = json.loads(invoke("effect", run, "--where", f"rack <> {rack}", "--json").stdout)
    assert answer["machines"] + answer["controls"] == some["machine"].nunique() < whole["machine"].nunique()
    assert answer["truth"]["change"] is None
    assert any(
        note.startswith("where: the true change of a run is that of the whole fleet") for note in answer["notes"]
    )


@pytest.mark.parametrize("command", ["effect", "audit", "monitor", "design"])
def test_what_a_run_cannot_answer_is_refused(run, command):
    """With `--column treated=…` the message itself ended in an error."""
    asked = partial(invoke, command, run, *(["--detect", "3%"] if command == "design" else []))
    for options, problems in (
        (["--where", "job = 'nobody'"], ["where: job = 'nobody' is true in no row; job "]),
        (["--where", "nosuch = 3"], ['where: takes the column "nosuch", which the table lacks']),
        (["--column", "treated=rack = 999"], ["columns: are for tables (--column"]),
        (["--period", "1d", "--from", "1970-01-02"], ["period: is for tables (--period, --from, --until)"]),
        (["--zone", "Europe/Berlin", "--skip-bad", "2%"], ["zone: is for tables", "skip_bad: is for tables"]),
    ):
        ended = asked(*options)
        assert ended.exit_code == 2, ended.output
        for problem in problems:
            assert f"{run}: {problem}" in ended.output


@pytest.mark.parametrize(("metric", "below"), [("ips", "cpu_s"), ("ipc", "cycles")])
def test_a_run_has_its_metric_and_the_true_change(run, metric, below):
    jobs = pd.read_parquet(run / "jobs.parquet").set_index("job")
    instances = pd.read_parquet(run / "instances.parquet").set_index("residence")
    means = []
    for arm in ("nowhere", "everywhere"):
        seen = pd.read_parquet(run / f"truth_{arm}_counters.parquet")
        seen = seen[(seen["wall_s"] >= 0.1 * seen["wall_s"].max()) & (seen[below] > 0)]
        value = seen["instructions"] / seen[below]
        means.append(value.groupby(instances["job"].loc[seen["residence"]].to_numpy()).mean())
    old, new = (float((mean * jobs["quota_vcpu"]).sum()) for mean in means)
    done = invoke("effect", run, "--metric", metric, "--json")
    payload = json.loads(done.stdout)
    assert payload["metric"] == metric
    assert payload["truth"]["change"] == pytest.approx(new / old - 1, rel=1e-9)
    said = " ".join(invoke("effect", run, "--metric", metric).output.split())
    assert f"({metric}); the true change of the whole fleet is {new / old - 1:+.2%}" in said


def test_files_name_no_metric_and_have_no_truth(files):
    payload = json.loads(invoke("effect", *files[:2], "--json").stdout)
    assert payload["metric"] is None
    assert payload["truth"] == {"change": None}
    assert "measured" not in invoke("effect", *files[:2]).output


def test_nothing_treated_is_refused(files):
    result = invoke("effect", files[0])
    assert result.exit_code == 2
    assert "nothing has the feature" in result.output
    files[1].write_text(files[0].read_text().replace("\n0,", "\n2,"))
    assert invoke("effect", *files[:2]).stderr.startswith(f"{files[0]}, {files[1]}: nothing has the feature")


def test_a_verdict_says_whether_zero_is_ruled_out_and_cannot_be_read_as_its_opposite():
    assert verdict(-0.008, -0.011, -0.005) == "slower by 0.80% (0.50% to 1.10%); zero is ruled out"
    assert verdict(0.001, -0.002, 0.004).startswith("zero is not ruled out: +0.10% (-0.20% to +0.40%); a gain above")


def racks(change=0.0, count=20, size=10, treated=4, seed=1):
    """Two periods of a fleet in which whole racks get the feature, and a rack's machines change together."""
    rng = np.random.default_rng(seed)
    machine, job = np.divmod(np.arange(count * size * 3), 3)
    rack = machine // size
    having = rng.permutation(count)[:treated]
    rows = []
    for period in (0, 1):
        on = np.isin(rack, having) & (period == 1)
        value = (1.0 + job) * np.exp(0.05 * rng.standard_normal(count)[rack] + 0.02 * rng.standard_normal(len(job)))
        names = {"period": period, "job": [JOBS[each] for each in job], "machine": machine.astype(str), "rack": rack}
        table = pd.DataFrame(names).assign(weight=1.0, value=value * (1 + change * on), treated=on.astype(int))
        rows.append(table)
    return pd.concat(rows, ignore_index=True)


@pytest.mark.statistical
def test_whole_racks_said_to_be_the_clusters_are_the_clusters():
    """50 draws: a true coverage of 95% is below 86% with a chance of 0.3%; errors by machine cover about half."""
    fleets = [Study.of(racks(seed=seed)) for seed in range(50)]
    by_rack = [Adjusted(cluster="rack").estimate(study) for study in fleets]
    by_machine = [Adjusted(cluster="machine").estimate(study) for study in fleets[:40]]
    assert np.mean([found.low <= 0.0 <= found.high for found in by_rack]) >= 0.86
    assert np.mean([found.low <= 0.0 <= found.high for found in by_machine]) < 0.80


def test_clusters_of_racks_make_the_interval_that_of_racks_or_leave_the_guards_error(tmp_path):
    file, about = tmp_path / "seen.csv", tmp_path / "about.yaml"
    about.write_text("clusters: rack\n")
    racks(0.02).to_csv(file, index=False)
    silent, said = effect([file]), effect([file], about=about)
    assert [one["code"] for one in silent["findings"] if one["severity"] == "error"] == ["whole_racks"]
    assert "wsc effect … --cluster rack" in silent["findings"][0]["remedy"]
    assert said["trusted"]
    assert (silent["cluster"], said["cluster"]) == ("machine", "rack")
    assert said["margin"] == Adjusted(cluster="rack").estimate(Study.of(racks(0.02))).margin > 1.5 * silent["margin"]
    assert "racks are the clusters" in invoke("effect", file, "--about", about).output
    other = effect([file], about=about, estimator="cuped")
    assert [one["code"] for one in other["findings"] if one["severity"] == "error"] == ["whole_racks"]
    assert "clusters: rack is not taken by this estimator: its error is that of machines" in other["notes"]
    assert "effects on single jobs are not estimated by rack" in effect([file], about=about, by_job=True)["notes"]


def test_the_values_of_any_column_are_clusters_as_those_of_racks_are(tmp_path):
    """The remedy of the guard of whole racks is this option."""
    file, halls = tmp_path / "seen.csv", tmp_path / "halls.csv"
    racks(0.02).to_csv(file, index=False)
    racks(0.02).rename(columns={"rack": "hall no."}).to_csv(halls, index=False)
    of_rack, of_hall = effect([file], cluster="rack"), effect([halls], cluster="hall no.")
    assert of_rack["trusted"]
    assert of_rack["margin"] == of_hall["margin"] == Adjusted(cluster="rack").estimate(Study.of(racks(0.02))).margin
    assert (of_rack["cluster"], of_hall["cluster"]) == ("rack", "hall no.")
    assert "; hall no.s are the clusters" not in (shown := invoke("effect", halls, "--cluster", "hall no.").output)
    assert "clusters by hall no." in shown
    few = racks(0.02, count=5, treated=2).rename(columns={"rack": "hall no."})
    (finding,) = (each for each in wsc.effect(few, cluster="hall no.").audit.findings if each.code == "few_clusters")
    assert "clusters by hall no. in effect" in finding.what


@pytest.mark.parametrize(
    ("column", "told"),
    [("hall", "hall"), ("rack", "no column rack"), ("job", "a machine should have one value of job throughout")],
)
def test_a_column_that_cannot_be_the_clusters_is_refused(files, column, told):
    result = invoke("effect", *files[:2], "--cluster", column)
    assert result.exit_code == 2
    assert told in result.output


def test_a_target_is_named_and_told(files):
    table = pd.concat(fleet(), ignore_index=True)
    table.assign(exposure=1.0 + table["machine"].astype(int) % 3).to_csv(files[0], index=False)
    answers = {target: effect(files[:1], files[2], target=target) for target in ("instances", "quota", "sums")}
    assert {name: answer["target"] for name, answer in answers.items()} == {name: name for name in answers}
    assert answers["sums"]["change"] != answers["instances"]["change"]
    assert answers["sums"]["published"] is None
    assert "a ratio of sums" in invoke("effect", files[0], "--target", "sums").output
    assert "needs the column exposure" in invoke("effect", *files[:2], "--target", "sums").output


def test_clusters_of_racks_need_racks(files):
    about = files[2].with_name("about.yaml")
    about.write_text("clusters: rack\n")
    for command in (["effect", *files[:2], "--about", about], ["audit", *files[:2], about]):
        result = invoke(*command)
        assert result.exit_code == 2
        assert f"{about}: clusters: rack needs the column rack in the observations" in result.output


def test_one_rack_an_arm_is_too_few(tmp_path):
    file, about = tmp_path / "seen.csv", tmp_path / "about.yaml"
    about.write_text("clusters: rack\n")
    racks(count=2, treated=1).to_csv(file, index=False)
    for command in (["effect", file, "--about", about], ["audit", file, about]):
        result = invoke(*command)
        assert result.exit_code == 2
        assert "rack needs 2 racks with and without the feature, got 1 with it and 1 without it" in result.output


def test_a_staged_roll_out_has_its_own_estimator_and_no_effects_on_single_jobs(files):
    """Half of the machines get the feature in period 1, half of the others in period 2."""
    rows = pd.concat(fleet(), ignore_index=True)
    last = rows[rows["period"] == 1].assign(period=2)
    late = (last["treated"] == 0) & (last["machine"].astype(int) % 2 == 0)
    last.loc[late, "value"] *= 1.05
    pd.concat([rows, last.assign(treated=last["treated"].where(~late, 1))]).to_csv(files[0], index=False)
    payload = effect(files[:1], files[2], by_job=True)
    assert (payload["estimator"], payload["design"], payload["published"]) == ("staged", "staged", None)
    assert payload["low"] < 0.05 < payload["high"]
    assert "per_job" not in payload
    assert "effects on single jobs are not estimated of a staged roll-out" in payload["notes"]
    assert "no answer to a staged study" in invoke("effect", files[0]).output
    own = effect(files[:1], files[2], estimator=lambda _: (0.05, 0.04, 0.06))
    assert own["notes"][-1] == "<lambda> gets the rows of a staged study as they are; no scorecard judges it there"


def test_what_no_one_has_with_and_without_the_feature_together_is_no_crossover(files):
    """All machines swap: those with the feature in period 1 are without it in period 2, in which no other has it."""
    rows = pd.concat(fleet(), ignore_index=True)
    last = rows[rows["period"] == 1].assign(period=2, treated=0)
    rows = rows[(rows["period"] == 0) | (rows["treated"] == 1)]
    pd.concat([rows, last]).to_csv(files[0], index=False)
    result = invoke("effect", files[0])
    assert result.exit_code == 2
    assert "no jobs seen both with and without the feature in one period of a crossover: at least 1" in result.output


def test_guards_hear_what_is_known_of_the_experiment(files, tmp_path):
    about = tmp_path / "about.yaml"
    about.write_text("looks: 14\ninterval: fixed\n")
    told = effect(files[:2], files[2], about=about)
    assert [one["code"] for one in told["findings"]] == ["peeking"]
    assert "peeking" not in effect(files[:2], files[2])["checked"]
    about.write_text("looks: 0\nclusters: job\n")
    result = invoke("effect", *files[:2], "--about", about)
    assert result.exit_code == 2
    assert {"looks", "clusters"} == {line.split(": ")[1] for line in result.output.splitlines()}


def test_intervals_of_single_jobs_are_of_the_confidence_asked_for(files):
    wide, narrow = (effect(files[:2], by_job=True, confidence=one)["per_job"] for one in (0.99, 0.8))
    assert [row["change"] for row in wide] == [row["change"] for row in narrow]
    assert all(row["low"] < other["low"] for row, other in zip(wide, narrow, strict=True))


def test_names_with_brackets_are_printed_as_they_are(files):
    for file in files:
        file.write_text(file.read_text().replace("search", "[/a]").replace("mail", "[red]b"))
    result = invoke("effect", *files[:2], "--per-job")
    assert result.exit_code == 0, result.output
    assert "[/a]" in result.output
    assert "[red]b" in result.output


@pytest.mark.parametrize("design", ["before and after", "staged", "crossover"])
@pytest.mark.parametrize("change", [0.0, 0.1])
def test_equal_machines_are_no_change_but_for_the_features(tmp_path, design, change):
    """Within each job all values are equal, and sums of 0.1, 0.7 and 1.3 are not what they are on paper."""
    rows = pd.DataFrame(
        [(p, j, m) for p in range(4) for j in JOBS for m in range(21)], columns=["period", "job", "machine"]
    )
    on = {
        "before and after": (rows["period"] > 1) & (rows["machine"] % 2 == 1),
        "staged": (rows["period"] > rows["machine"] % 4) & (rows["machine"] % 4 != 3),
        "crossover": (rows["period"] + rows["machine"]) % 2 == 1,
    }[design]
    value = rows["job"].map(dict(zip(JOBS, (0.1, 0.7, 1.3), strict=True))) * (1 + change * on)
    rows.assign(weight=1.0, value=value, treated=on.astype(int)).to_csv(tmp_path / "seen.csv", index=False)
    seen = pd.read_csv(tmp_path / "seen.csv")
    payload = effect([seen], by_job=design != "staged")
    if design == "crossover":
        kept = seen.assign(treated=seen["treated"].where(seen["machine"] != 1, 1))
        assert any("; 1 that keep the feature are not in it" in note for note in effect([kept])["notes"])
    assert (payload["margin"], payload["zero_ruled_out"], payload["trusted"]) == (0.0, False, False)
    assert payload["change"] == pytest.approx(change, abs=1e-12)
    assert payload["verdict"].startswith(f"undecided: {change:+.2%} without an interval, as values do not differ")
    assert "-0.00%" not in payload["verdict"]
    assert any("machines do not differ at all within jobs" in note for note in payload["notes"])
    assert "imbalance_before" not in {one["code"] for one in payload["findings"]}
    assert {row["verdict"] for row in payload.get("per_job", [])} <= {"undecidable"}


def test_names_in_files_do_nothing_to_a_terminal(files):
    rows = files[1].read_text().splitlines()
    files[1].write_text("\n".join([*rows, "1,\x1b[31mq,m,1,1,0"]))
    ended = invoke("effect", *files[:2], "--jobs", files[2])
    assert ended.exit_code == 2
    assert ended.stderr == f"{files[0]}, {files[1]}: job \\x1b[31mq is not among the fleet's jobs\n"


@pytest.fixture
def in_another_unit(files):
    """The values of machines with the feature are a thousand times what they were."""
    rows = pd.read_csv(files[1])
    rows.loc[rows["treated"] == 1, "value"] *= 1000
    rows.to_csv(files[1], index=False)
    return files


def test_after_an_error_among_the_findings_there_is_no_verdict(in_another_unit):
    ended = invoke("effect", *in_another_unit[:2], "--jobs", in_another_unit[2], "--per-job")
    assert ended.exit_code == 1, ended.output
    assert "error unit_change" in ended.output
    assert "no verdict: fix unit_change first; the tables as they are give +" in ended.output
    assert not any(word in ended.output for word in ("faster by", "ruled out", "gained"))


def test_json_keeps_its_numbers_after_an_error_and_says_that_they_are_not_to_be_trusted(in_another_unit):
    ended = invoke("effect", *in_another_unit[:2], "--per-job", "--json")
    payload = json.loads(ended.stdout)
    assert (ended.exit_code, payload["trusted"]) == (1, False)
    assert payload["change"] > 500
    assert {"low", "high", "per_job", "published"} <= payload.keys()
    assert payload["verdict"].startswith("no verdict")


def test_without_an_error_there_is_a_verdict(files):
    ended = invoke("effect", *files[:2], "--json")
    assert (ended.exit_code, json.loads(ended.stdout)["trusted"]) == (0, True)


@pytest.mark.parametrize(
    ("name", "told"), [("instances", "residence"), ("counters", "residence, window"), ("jobs", "job")]
)
def test_rows_that_a_run_has_twice_are_told_in_one_line(run, tmp_path, name, told):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    rows = pd.read_parquet(run / f"{name}.parquet")
    pd.concat([rows, rows.iloc[:5]]).to_parquet(copy / f"{name}.parquet", index=False)
    ended = invoke("effect", copy)
    assert ended.exit_code == 2
    assert ended.output.startswith(f"{copy / name}.parquet:{len(rows) + 2}:1: {told}: should be there once, got ")
    assert ended.output.endswith(" again and 4 more\n")
    assert ended.output.count("\n") == 1


@pytest.mark.parametrize("separator", [";", "\t"])
@pytest.mark.parametrize("command", ["effect", "audit"])
def test_cells_may_stand_between_other_marks_than_commas(files, separator, command):
    before = invoke(command, *files[:2], "--json")
    files[0].write_text(files[0].read_text().replace(",", separator))
    after = invoke(command, *files[:2], "--json")
    assert (after.exit_code, after.output) == (before.exit_code, before.output)


def test_machines_drawn_by_platform_are_compared_within_platforms(files):
    """New machines are twice as fast, and most of them get the feature: only within platforms is that no gain."""
    for file in files[:2]:
        rows = pd.read_csv(file)
        new = rows["machine"] % 3 == 0
        late = (rows["period"] == 1) & ((rows["machine"] % 3 == 0) | (rows["machine"] % 5 == 0))
        rows["treated"] = (late & (rows["machine"] % 10 != 0)).astype(int)
        rows["value"] = rows["job"].map({"search": 1.0, "mail": 2.0, "ads": 3.0}) * (1 + 0.001 * (rows["machine"] % 7))
        rows["value"] *= np.where(rows["treated"] == 1, 1.05, 1.0) * np.where(new, 2.0, 1.0)
        rows.assign(platform=np.where(new, "new", "old")).to_csv(file, index=False)
    found = effect(files[1:2], files[2], estimator="stratified")
    assert found["estimator"] == "stratified"
    assert found["change"] == pytest.approx(0.05, abs=0.003)
    assert effect(files[1:2], files[2])["change"] > 0.3


def test_without_platforms_nothing_can_be_compared_within_them(files):
    ended = invoke("effect", *files[:2], "--estimator", "stratified")
    assert ended.exit_code == 2
    assert ended.output.endswith("the estimator stratified needs the column platform\n")
    assert invoke("monitor", *files[:2], "--estimator", "stratified").exit_code == 2


def signed():
    """Numbers below, at and above zero, with a rise of 4 where the feature is."""
    machine, period = np.divmod(np.arange(160), 4)
    rng, treated = np.random.default_rng(9), (machine < 20) & (period > 1)
    value = np.round(rng.normal(0.0, 3.0, 160) + 4.0 * treated, 2)
    value[::9] = 0.0
    table = pd.DataFrame({"period": period, "job": "a", "machine": machine, "weight": 1.0, "treated": treated})
    return table.assign(treated=lambda rows: rows["treated"].astype(int), value=value, exposure=1 + np.arange(160) % 3)


def test_the_kind_of_metric_says_which_values_can_be_used(tmp_path):
    file = tmp_path / "seen.csv"
    signed().to_csv(file, index=False)
    answer = effect([file], metric_kind="mean")
    assert answer["low"] < 4.0 < answer["high"]
    assert (answer["metric_kind"], answer["change_kind"], answer["target"]) == ("mean", "absolute", "instances")
    assert answer["published"] is None
    assert "rows are left out" not in " ".join(answer["notes"])
    assert any("guards that cannot look at a mean: unit_change" in note for note in answer["notes"])
    assert "unusable_values" in [finding["code"] for finding in effect([file])["findings"]]
    shown = invoke("effect", file, "--metric-kind", "mean").output
    assert "higher by 3." in shown
    assert "the absolute change of a mean" in shown
    signed().assign(value=lambda rows: (rows["value"] > 0).astype(int)).to_csv(file, index=False)
    shares, ratio = (effect([file], metric_kind=kind) for kind in ("proportion", "ratio"))
    assert not shares["findings"] or all(finding["severity"] != "error" for finding in shares["findings"])
    assert 0.2 < shares["change"] < 0.7
    assert (ratio["change_kind"], ratio["target"]) == ("relative", "sums")
    assert " points (" in invoke("effect", file, "--metric-kind", "proportion").output


@pytest.mark.parametrize(("kind", "target"), [("mean", "instances"), ("proportion", "instances"), ("ratio", "sums")])
def test_jobs_have_their_own_absolute_changes(kind, target):
    """Without a past that of a job is the difference of its arms' means, or of ratios of sums."""
    table = pd.concat([signed().assign(job=job, instance=range(160)) for job in ("a", "b", "c")], ignore_index=True)
    rng = np.random.default_rng(5)
    gain = table["job"].map({"a": 0.0, "b": 0.4, "c": -3.0}) * table["treated"]
    below = table["exposure"] if kind == "ratio" else 1.0
    value = {"mean": rng.normal(-0.2, 1.0, 480) + gain, "proportion": rng.random(480) < 0.5 + gain / 8}.get(kind)
    table["value"] = below * (rng.normal(2.0, 0.5, 480) + gain) if value is None else value * 1.0
    study = table[table["period"] >= table.loc[table["treated"] == 1, "period"].min()]
    answer = wsc.effect(study, metric_kind=kind, change="absolute")
    jobs = answer.jobs().set_index("job")
    for job, rows in study.assign(below=below).groupby("job"):
        off, on = (arm["value"].sum() / arm["below"].sum() for _, arm in rows.groupby("treated"))
        assert jobs.loc[job, "change"] == pytest.approx(on - off, rel=1e-2, abs=1e-3)
        assert jobs.loc[job, "low"] < on - off < jobs.loc[job, "high"]
    assert (answer.estimand.target, jobs.loc["c", "verdict"], jobs.loc["a", "verdict"]) == (target, "fell", "undecided")
    assert len(answer.figure().axes) == 2
    relative = wsc.effect(study.assign(value=study["value"].abs()), metric_kind=kind, change="relative")
    assert f"not estimated as the relative change of a {kind}; --change absolute has them" in " ".join(relative.notes)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (
            ["--metric-kind", "median"],
            "--metric-kind: should be rate, mean, proportion, ratio or a quantile",
        ),
        (["--metric-kind", "ratio", "--target", "quota"], "--target: of a ratio is sums"),
        (["--metric-kind", "mean", "--estimator", "published"], "--estimator: published estimates the relative change"),
        (
            ["--metric-kind", "mean", "--change", "relative"],
            "; give --change absolute",
        ),
        (["--metric-kind", "ratio", "--change", "relative", "--per-job"], "--per-job: effects on single jobs are not"),
        (["--metric-kind", "p99", "--per-job"], "; --where takes the rows of one job"),
        (["--metric-kind", "ratio", "--where", "exposure < 9"], "seen.csv: exposure: is missing"),
        (["--metric-kind", "p99.9"], "machines in each arm are needed for p99.9, 20 given"),
    ],
)
def test_a_metric_that_cannot_be_estimated_is_refused(tmp_path, asked, told):
    file, table = tmp_path / "seen.csv", signed()
    table = table.drop(columns="exposure") if "--where" in asked else table
    table.to_csv(file, index=False)
    result = invoke("effect", file, *(asked if "--where" not in asked else asked[:2]))
    assert result.exit_code == 2
    assert told in result.output


@pytest.mark.parametrize(
    ("zero", "told"),
    [
        (lambda rows: rows["period"] >= 0, "seen.csv:2:7: exposure: should be above 0 in some row, got 0 in all 160"),
        (
            lambda rows: rows["treated"] == 1,
            "seen.csv:4:7: exposure: should be above 0 in some row with the feature, got 0 in all 40",
        ),
    ],
)
def test_denominators_that_are_all_zero_are_refused_where_they_begin(tmp_path, zero, told):
    rows = signed()
    rows.assign(exposure=rows["exposure"].where(~zero(rows), 0)).to_csv(tmp_path / "seen.csv", index=False)
    ended = invoke("effect", tmp_path / "seen.csv", "--metric-kind", "ratio")
    assert (ended.exit_code, ended.stderr.strip().removeprefix(f"{tmp_path}/")) == (2, told)


def test_a_small_change_of_a_proportion_is_printed_with_the_digits_of_its_margin():
    rng = np.random.default_rng(3)
    answer = wsc.effect(signed().assign(value=rng.random(160) * 1e-4), metric_kind="proportion")
    numbers = [float(number) for number in re.findall(r"([+-]?[\d.]+) points", answer.verdict)]
    assert 0.0 not in numbers
    assert abs(numbers[0]) == pytest.approx(100 * abs(answer.change), abs=100 * answer.effect.margin / 4)
    assert answer.figure().axes[0].get_xlabel() == "change of the fleet, points"


@pytest.mark.parametrize(("kind", "value"), [("proportion", 0.0), ("mean", 3.0), ("rate", 3.0)])
def test_values_that_do_not_differ_have_no_verdict(kind, value):
    answer = wsc.effect(signed().assign(value=value, instance=range(160)), metric_kind=kind)
    assert (answer.trusted, answer.zero_ruled_out) == (False, False)
    assert answer.verdict.startswith("undecided: +0")


def test_what_is_no_change_is_refused_by_name():
    with pytest.raises(ValueError, match=r'^change: should be one of relative, absolute, or None, got "foo"$'):
        wsc.effect(signed(), metric_kind="mean", change="foo")
    with pytest.raises(ValueError, match=r"^change: relative needs a mean .*; give change absolute$"):
        wsc.effect(signed(), metric_kind="mean", change="relative")


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("rate", "values are 0 or negative (first: line 2, 0): if that is right, give --metric-kind mean"),
        ("proportion", "values are above 1 (first: line "),
    ],
)
def test_values_of_another_kind_of_metric_are_counted_and_the_kind_is_named(tmp_path, kind, told):
    signed().assign(weight=1.0).to_csv(tmp_path / "seen.csv", index=False)
    (remedy,) = (
        finding["remedy"]
        for finding in effect([tmp_path / "seen.csv"], metric_kind=kind)["findings"]
        if finding["code"] == "unusable_values"
    )
    assert told in remedy


def test_it_notes_that_controls_jump_when_the_feature_begins():
    """Three periods before and after; all machines gain 30% in the study, or none does."""
    rng = np.random.default_rng(1)
    period, machine = (part.ravel() for part in np.indices((6, 40)))
    row = {"period": period, "job": machine % 2, "machine": machine, "weight": 1.0}
    table = pd.DataFrame(row).assign(treated=((machine < 20) & (period >= 3)).astype(int))
    value = rng.normal(1.0, 0.02, 40)[machine] * rng.normal(1.0, 0.01, 240)
    for gain in (0.3, 0.0):
        answer = effect_of([table.assign(value=value * (1.0 + gain * (period >= 3)))])
        notes = [note for note in answer.notes if "in period 3, in which it begins" in note]
        assert len(notes) == (gain > 0)
        assert ("points above the estimate" in answer._repr_html_()) == (gain > 0)


def disturbed(saturations=(0.0, 1.0), domains=12, **columns):
    """Rows of a fleet of another making: power of a domain that the feature takes from neighbours; and its truth."""
    rng = np.random.default_rng([9, 1])
    kind = Domains(domains, 5, 6, 6.0, gain=0.04, draw=0.12, saturations=saturations, machine_sd=0.005, daily_sd=0.005)
    drawn = fleet_of_domains(replace(kind, noise_sd=0.01, shard_sd=0.03), rng)
    return drawn.table(drawn.assigned(rng)).assign(**columns), drawn.truth()


def test_the_total_effect_is_that_of_everybody_on_against_nobody_on(tmp_path):
    """The feature speeds machines up by 4% and harms the fleet, as its power is taken from neighbours."""
    file = tmp_path / "seen.csv"
    table, truth = disturbed((0.0, 0.5, 1.0), domains=18)
    table.rename(columns={"domain": "power budget"}).to_csv(file, index=False)
    by_domain = effect([file], domain="power budget")
    assert by_domain["low"] < truth < by_domain["high"] < 0
    assert by_domain["trusted"]
    assert (by_domain["cluster"], by_domain["published"]) == ("power budget", None)
    told = by_domain["spill_over"]
    assert {name: told[name] for name in ("everybody", "nobody", "mixed", "between")} == {
        **dict.fromkeys(("everybody", "nobody", "mixed"), 6),
        "between": True,
    }
    assert told["total"]["change"] == pytest.approx(told["direct"]["change"] + told["spill"]["change"])
    assert told["spill"]["high"] < 0 < told["direct"]["low"]
    assert effect([file])["change"] > by_domain["change"]
    output = " ".join(invoke("effect", file, "--domain", "power budget").output.split())
    assert "between 6 domains with everybody on and 6 with nobody on; 6 domains with both are left out" in output
    assert "by the share of neighbours: total -" in output
    gone = table[table["period"] == 0].groupby("domain").head(1).assign(machine=lambda rows: 1000 + rows["domain"])
    answer = wsc.effect(pd.concat([table, gone.assign(instance=lambda rows: 9000 + rows["domain"])]), domain="domain")
    assert answer.spill_over.mixed == 6  # a machine that was there before is none of the study
    assert answer.change == pytest.approx(by_domain["change"], abs=0.002)


def test_without_whole_domains_the_total_effect_is_a_line_drawn_out(tmp_path):
    table, truth = disturbed((0.2, 0.8), domains=20)
    answer = wsc.effect(table, domain="domain")
    assert answer.effect.estimator == "exposure"
    assert answer.low < truth < answer.high < 0
    table.to_csv(tmp_path / "seen.csv", index=False)
    output = " ".join(invoke("effect", tmp_path / "seen.csv", "--domain", "domain").output.split())
    assert "a straight line through domains in which 20% to 80% of the machines have it" in output


def test_machines_alone_in_a_domain_are_left_out_and_told():
    """They are no domains with everybody on, nor do they make shares unlike."""
    table, _ = disturbed((0.0, 1.0), domains=12)
    whole = wsc.effect(table, domain="domain")
    lone = table["machine"].isin(table.loc[table["treated"] == 1, "machine"].unique()[:2])
    alone = table[lone].assign(
        machine=lambda rows: 5000 + rows["machine"], instance=lambda rows: 9000 + rows["instance"]
    )
    answer = wsc.effect(pd.concat([table, alone.assign(domain=alone["machine"])]), domain="domain")
    assert any("2 machines alone in a value of domain are left out" in note for note in answer.notes)
    assert (answer.change, answer.spill_over.everybody) == pytest.approx((whole.change, whole.spill_over.everybody))
    table, _ = disturbed((0.4,), domains=12)
    alone = table[table["machine"] == table.loc[table["treated"] == 1, "machine"].iloc[0]]
    with pytest.raises(WscError, match="have 40% of their machines with the feature"):
        wsc.effect(pd.concat([table, alone.assign(machine=5000, instance=9000, domain=999)]), domain="domain")


def test_absolute_changes_of_means_are_told_by_that_line_too():
    """In a unit a hundred times as large and 10 above it: the same line, so 100 times the change of the level."""
    table, truth = disturbed((0.2, 0.8), domains=20)
    level = wsc.effect(table, domain="domain")
    answer = wsc.effect(table.assign(value=10.0 + 100.0 * table["value"]), domain="domain", metric_kind="mean")
    assert (answer.effect.estimator, answer.spill_over.between) == ("exposure", False)
    assert answer.low < answer.change < answer.high < 0
    unit = answer.change / level.change
    assert answer.low < truth * unit < answer.high
    assert answer.high - answer.low == pytest.approx((level.high - level.low) * unit, rel=0.2)


@pytest.mark.parametrize(("switching", "instead"), [([1, 0, 1], 'columns={"domain"'), ([0, 0, 1], "design domain=")])
def test_other_designs_are_told_what_to_do_in_place_of_domains(switching, instead):
    table, _ = disturbed()
    study = table[table["period"] == table["period"].max()]
    on = np.stack([study["treated"].to_numpy() * value for value in switching])
    if switching[2]:
        on[1] = (study["machine"] % 5 == 0).to_numpy()  # the first wave
        on[2] |= on[1]
    periods = [study.assign(period=number, treated=having) for number, having in enumerate(on)]
    with pytest.raises(WscError, match=instead):
        wsc.effect(pd.concat(periods, ignore_index=True), domain="domain")


def test_what_the_guard_of_spill_over_finds_its_remedy_answers():
    table, truth = disturbed((0.0, 0.2, 0.4, 0.6, 0.8), domains=30)
    (finding,) = (found for found in wsc.effect(table).audit.findings if found.code == "spill_over")
    assert finding.remedy.startswith("wsc effect --domain domain tells everybody on against nobody on")
    answer = wsc.effect(table, domain="domain")
    assert answer.trusted
    assert answer.low < truth < answer.high < 0


@pytest.mark.parametrize(
    ("saturations", "columns", "options", "fault"),
    [
        ((0.0, 1.0), {}, {"domain": "hall"}, "hall"),
        ((0.0, 1.0), {}, {"domain": "rack"}, "no column rack, got domain"),
        (
            (0.0, 1.0),
            {"rack": lambda rows: rows["machine"] % 2},
            {"cluster": "platform"},
            "no column platform, got rack",
        ),
        (
            (0.4,),
            {},
            {"domain": "domain"},
            "all 12 values of domain have 40% of their machines with the feature, so what",
        ),
        ((0.0, 1.0), {"domain": lambda rows: rows["machine"]}, {"domain": "domain"}, "every domain has one machine"),
        ((0.0, 1.0), {}, {"domain": "job"}, "a machine should have one value of job throughout"),
        (
            (0.0, 1.0),
            {"domain": lambda rows: rows["domain"] % 3},
            {"domain": "domain"},
            "needs 4 values of domain with",
        ),
        ((0.2, 0.8), {}, {"domain": "domain", "metric_kind": "p50"}, "needs 2 with everybody on and 2 with nobody on"),
        ((0.0, 1.0), {}, {"domain": "domain", "estimator": "cuped"}, "tells no total effect; adjusted does"),
        ((0.0, 1.0), {}, {"domain": "domain", "cluster": "domain"}, "cluster: is left out beside domain="),
    ],
)
def test_what_tells_no_total_effect_is_refused(saturations, columns, options, fault):
    table, _ = disturbed(saturations, **columns)
    with pytest.raises(WscError, match=fault):
        wsc.effect(table, **options)


def test_a_column_that_is_asked_for_is_read_though_a_recipe_has_another_as_domain(tmp_path):
    """The recipe's column was answered for without a word."""
    table, _ = disturbed()
    table = table.assign(pdu=table["domain"], cooling=table["machine"] % 6).drop(columns="domain")
    answers = [
        wsc.effect(table, columns=mapped, domain=column)
        for mapped, column in (({"domain": "pdu"}, "cooling"), ({}, "cooling"), ({}, "pdu"))
    ]
    assert answers[0].change == answers[1].change != answers[2].change


def test_a_machine_without_a_domain_is_told_with_its_line(tmp_path):
    file = tmp_path / "seen.csv"
    table, _ = disturbed()
    table.astype({"domain": object}).assign(domain=lambda rows: rows["domain"].where(rows.index != 4)).to_csv(
        file, index=False
    )
    result = invoke("effect", file, "--domain", "domain")
    assert result.exit_code == 2
    assert f"{file}:6:6: domain: should not be empty" in result.output


def test_a_total_effect_leaves_nothing_on_standard_error():
    """A class with methods in compiled code kept the database's library alive, which tells of it at the end.

    That was so where the machine code was read from the disk, as by a process after this one.
    """
    table = Path(__file__).parents[3] / "docs" / "examples" / "power_domains.csv.gz"
    assert invoke("effect", table, "--domain", "domain").exit_code == 0
    words = [sys.executable, "-m", "wsc", "effect", str(table), "--domain", "domain"]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stderr == ""
