import io
import json
import math

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

from analysis.audit.case import Audit
from analysis.wsmeter.estimators import Estimate
from scenarios.commands.app import app
from scenarios.files.faults import FaultsError
from scenarios.views.terminal import dumps, show
from scenarios.wsmeter import own_tables

TABLE2 = ["job,weight,mean,std,instances,cost", "compute,0.5,100,7.4,1500,1", "network,0.5,100,17.5,1500,1"]


def written(path, lines):
    path.write_text("\n".join(lines) + "\n")
    return path


def fleet(path, seed, machines, gain=1.0, jobs=3):
    """Write an instance table: every machine runs two instances of every job."""
    rng = np.random.default_rng(seed)
    job, machine = (side.ravel() for side in np.meshgrid(np.repeat(np.arange(jobs), 2), np.arange(machines)))
    value = gain * rng.normal(1 + 0.1 * job, 0.1)
    table = pd.DataFrame({"job": job, "machine": machine, "weight": 1 + job, "value": value})
    table.assign(instance=range(len(table))).to_csv(path, index=False)
    return path


def shown(conclusion):
    text = io.StringIO()
    show(conclusion.section(), Console(file=text, width=80))
    return text.getvalue()


def estimated(*tables, **options):
    return own_tables.estimate(*tables, **options).payload()


@pytest.fixture
def tables(tmp_path):
    return fleet(tmp_path / "current.csv", 1, 200), fleet(tmp_path / "new.csv", 2, 20, gain=1.1)


def test_a_plan_has_the_keys_of_the_contract_and_table_2s_optimum(tmp_path):
    payload = own_tables.plan(written(tmp_path / "table.csv", TABLE2), margin=0.03).payload()
    assert payload["cost"] == 69
    assert payload["optimal"] is True
    assert payload["continuous"] == pytest.approx({"compute": 20.47, "network": 48.42}, abs=0.005)
    assert payload["allocation"] in ({"compute": 20, "network": 49}, {"compute": 21, "network": 48})
    assert payload["margin"] <= 0.03
    assert json.loads(dumps(payload))["kind"] == "plan"


def test_a_plan_is_shown_largest_first(tmp_path):
    text = shown(own_tables.plan(written(tmp_path / "table.csv", TABLE2), margin=0.03))
    assert text.index("network") < text.index("compute")
    assert "69 instances cost 69 (the least possible) for a margin of ±3.00%" in text


def test_a_job_with_brackets_is_shown_as_it_is(tmp_path):
    lines = [line.replace("compute", "[/a]") for line in TABLE2]
    assert "[/a]" in shown(own_tables.plan(written(tmp_path / "table.csv", lines), margin=0.03))


def test_a_plan_of_many_jobs_shows_forty(tmp_path):
    lines = [TABLE2[0], *(f"job{at},1,100,10,500,1" for at in range(50))]
    text = shown(own_tables.plan(written(tmp_path / "table.csv", lines), margin=0.05))
    assert text.count("\njob") == 41
    assert "and 10 more jobs" in text


def test_a_plan_notes_jobs_below_the_minimum(tmp_path):
    payload = own_tables.plan(written(tmp_path / "table.csv", [*TABLE2, "tiny,0.01,100,1,2,1"]), margin=0.03).payload()
    assert payload["notes"] == ["jobs with fewer than 4 instances, observed whole: 1"]


def test_a_margin_out_of_reach_is_a_fault_of_the_table(tmp_path):
    path = written(tmp_path / "table.csv", TABLE2)
    with pytest.raises(FaultsError, match=r"table\.csv: margin 0\.01% is out of reach: observing all instances gives"):
        own_tables.plan(path, margin=0.0001)


def test_estimates_have_the_keys_of_the_contract(tables):
    payload = estimated(*tables)
    assert payload["kind"] == "estimate"
    assert [row["estimator"] for row in payload["estimates"]] == ["baseline", "wsmeter", "wsmeter-widened"]
    for row in payload["estimates"]:
        assert {"estimator", "machines", "change", "low", "high", "margin", "quota_coverage"} <= row.keys()
        assert row["low"] < 0.1 < row["high"]
        assert row["excludes_current"]
    assert json.loads(dumps(payload))["estimates"][0]["quota_coverage"] is None


def test_without_jobs_the_coverage_is_unknown_and_the_output_says_so(tables):
    conclusion = own_tables.estimate(*tables)
    payload = conclusion.payload()
    note = "no jobs table: jobs weigh as in the current table, and their share of the fleet is unknown"
    assert all(math.isnan(row["quota_coverage"]) for row in payload["estimates"])
    assert note in payload["notes"]
    text = shown(conclusion)
    assert note in text
    assert "unknown" in text


def test_a_jobs_table_gives_weights_and_coverage(tables, tmp_path):
    jobs = written(tmp_path / "jobs.csv", ["job,quota,instances", "0,10,400", "1,20,400", "2,30,400", "elsewhere,40,9"])
    wsmeter = estimated(*tables, jobs)["estimates"][1]
    current, new = (pd.read_csv(table).groupby("job")["value"].mean() for table in tables)
    weight = np.array([1, 2, 3])
    assert wsmeter["quota_coverage"] == pytest.approx(0.6)
    assert wsmeter["change"] == pytest.approx(weight @ new / (weight @ current) - 1)


def test_jobs_that_the_jobs_table_lacks_are_noted(tables, tmp_path):
    jobs = written(tmp_path / "jobs.csv", ["job,quota,instances", "0,10,400"])
    payload = estimated(*tables, jobs)
    assert payload["estimates"][1]["jobs"] == 1
    assert payload["notes"] == [f"{jobs}: lacks 2 of the current table's jobs, which are left out"]


def test_a_sampled_current_widens_the_interval(tables):
    exact, sampled = (estimated(*tables, current_is=kind)["estimates"] for kind in ("population", "sample"))
    for known, drawn in zip(exact, sampled, strict=True):
        assert drawn["change"] == known["change"]
        assert drawn["margin"] > known["margin"]


def test_one_value_per_machine_needs_no_other_column(tmp_path):
    rng = np.random.default_rng(3)
    lines = [f"{value},{at}" for at, value in enumerate(rng.normal(9, 1, 90))]
    paths = [
        written(tmp_path / f"{name}.csv", ["value,VM_id", *part])
        for name, part in (("old", lines[30:]), ("new", lines[:30]))
    ]
    payload = estimated(*paths)
    assert [row["machines"] for row in payload["estimates"]] == [30, 30, 30]
    assert f"{paths[1]}: no column machine: every row is a machine of its own" in payload["notes"]
    assert payload["estimates"][0]["margin"] == pytest.approx(payload["estimates"][1]["margin"])


@pytest.mark.parametrize(("slow", "warned"), [(0.4, True), (1.0, False)])
def test_too_few_machines_for_their_tails_are_told(tmp_path, slow, warned):
    values = np.random.default_rng(4).normal(9, 0.1, 1030)
    values[100:130] *= slow
    paths = [
        written(tmp_path / f"{name}.csv", ["value", *map(str, part)])
        for name, part in (("old", values[30:]), ("new", values[:30]))
    ]
    notes = estimated(*paths)["notes"]
    assert any(note.startswith(f"{paths[1]}: too few machines for such tails") for note in notes) == warned


def test_no_change_is_said_where_none_is_found(tmp_path):
    conclusion = own_tables.estimate(fleet(tmp_path / "a.csv", 1, 100), fleet(tmp_path / "b.csv", 3, 20))
    assert shown(conclusion).count("not found") == 3
    assert conclusion.frame()["excludes_current"].tolist() == [False] * 3


def test_another_unit_leaves_no_verdict_however_few_machines_report_in_it(tables, tmp_path):
    new = pd.read_csv(tables[1])
    for rows in (new, new.iloc[:8]):
        path = tmp_path / "scaled.csv"
        rows.assign(value=rows["value"] * 1000).to_csv(path, index=False)
        ended = CliRunner().invoke(app, ["wsmeter", "estimate", "--current", str(tables[0]), "--new", str(path)])
        assert ended.exit_code == 1, ended.output
        assert "error unit_change: value:" in ended.output
        assert " yes" not in ended.output
        assert "no verdict: fix unit_change" in ended.output


def test_the_current_fleet_is_not_taken_for_the_new_one(tables, tmp_path):
    copied = tmp_path / "copy.csv"
    copied.write_text(tables[0].read_text())
    for new in (tables[0], copied):
        with pytest.raises(FaultsError, match=r"should hold other measurements than .*, got the same"):
            estimated(tables[0], new)


def current_and_new(tables, case):
    """Tables that have rows in common, or as many values, in ways that no measurement has."""
    current, new = (pd.read_csv(table) for table in tables)
    moved = new.assign(machine=new["machine"] + 1000)
    return {
        "the current fleet shuffled": (current, current.sample(frac=1, random_state=1)),
        "one row less": (current, current.sample(frac=1, random_state=1).iloc[1:]),
        "the new rows within the current ones": (pd.concat([current, moved]), moved),
        "some of the current rows among the new ones": (current, pd.concat([current.iloc[-60:], new])),
        "values alone, shuffled": (current[["job", "value"]], current[["job", "value"]].sample(frac=1, random_state=1)),
    }[case]


@pytest.mark.parametrize(
    "case",
    [
        "the current fleet shuffled",
        "one row less",
        "the new rows within the current ones",
        "some of the current rows among the new ones",
        "values alone, shuffled",
    ],
)
def test_rows_of_the_current_fleet_among_the_new_ones_leave_no_verdict(tables, tmp_path, case):
    files = [tmp_path / "one.csv", tmp_path / "other.csv"]
    for table, file in zip(current_and_new(tables, case), files, strict=True):
        table.to_csv(file, index=False)
    payload = estimated(*files)
    assert not payload["trusted"]
    assert [one["severity"] for one in payload["findings"] if one["code"] == "duplicated_rows"] == ["error"]


def swapped(*arguments, **options):
    """The severity and the text of the finding that the two tables were swapped; none if there is none."""
    findings = estimated(*arguments, **options)["findings"]
    return [(one["severity"], one["what"]) for one in findings if one["code"] == "arms_swapped"]


def test_a_new_table_that_is_larger_than_the_whole_fleet_is_a_finding(tables):
    (found,) = swapped(tables[1], tables[0])
    assert found[0] == "warning"
    assert "has 200 machines, more than the 20 of" in found[1]
    assert swapped(*tables) == []
    (found,) = swapped(tables[1], tables[0], current_is="sample")
    assert "names read as if they were swapped" in found[1]


@pytest.mark.parametrize(
    ("columns", "severity"),
    [
        (({"treated": 1}, {"treated": 0}), "error"),
        (({"treated": False}, {}), ""),
        (({}, {"treated": "False"}), "error"),
        (({"treated": 0}, {"treated": 1}), ""),
        (({"treated": "v2"}, {"treated": "v1"}), ""),
        (({"period": 3}, {"period": 2}), "warning"),
        (({"period": "2026-03-06"}, {"period": "2026-03-05"}), "warning"),
        (({"period": 2}, {"period": 2}), ""),
        (({"period": "old"}, {"period": "new"}), ""),
    ],
)
def test_tables_in_each_others_place_are_known_by_their_columns(tables, tmp_path, columns, severity):
    files = [tmp_path / "one.csv", tmp_path / "other.csv"]
    for table, file, more in zip(tables, files, columns, strict=True):
        pd.read_csv(table).assign(**more).to_csv(file, index=False)
    assert [found[0] for found in swapped(*files)] == ([severity] if severity else [])


def test_files_called_after_and_before_are_a_finding(tmp_path):
    after, before = fleet(tmp_path / "week_after.csv", 1, 30), fleet(tmp_path / "week_before.csv", 2, 30)
    (found,) = swapped(after, before)
    assert found == (
        "warning",
        f"the files' names read as if they were swapped: {after} is --current, {before} is --new",
    )
    assert swapped(before, after) == []


def changes(payload):
    """Every estimate's change and both ends of its interval."""
    return [row[name] for row in payload["estimates"] for name in ("change", "low", "high")]


OWN = ["--column", "job=svc", "--column", "machine=host", "--column", "value=work / seconds", "--where", "zone = 'a'"]


def own_columns(table, path):
    """The same measurements as a company has them, with rows of another zone, and one bad cell in fifty."""
    rows = pd.read_csv(table).rename(columns={"job": "svc", "machine": "host"})
    rows = rows.assign(work=rows.pop("value") * 10, seconds=10.0, zone="a")
    pd.concat([rows, rows.assign(zone="b", work=5.0, instance=-1)]).to_csv(path, index=False)
    return path


def test_own_columns_give_the_same_estimate(tables, tmp_path):
    files = [own_columns(table, tmp_path / f"own_{at}.csv") for at, table in enumerate(tables)]
    arguments = ["wsmeter", "estimate", "--current", str(files[0]), "--new", str(files[1]), *OWN, "--json"]
    ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == 0, ended.output
    assert changes(json.loads(ended.stdout)) == pytest.approx(changes(estimated(*tables)))


def test_a_select_names_both_tables_of_one_database(tables, tmp_path):
    select = "SELECT job, machine, instance, weight, value FROM '{}'"
    arguments = ["--current", select.format(tables[0]), "--new", select.format(tables[1])]
    ended = CliRunner().invoke(app, ["wsmeter", "estimate", *arguments, "--json"])
    assert changes(json.loads(ended.stdout)) == pytest.approx(changes(estimated(*tables)))


def test_bad_rows_are_left_out_up_to_a_share_and_counted(tables, tmp_path):
    rows = pd.read_csv(tables[1]).astype({"value": object})
    rows.loc[:1, "value"] = "N/A"
    rows.to_csv(tmp_path / "bad.csv", index=False)
    arguments = ["wsmeter", "estimate", "--current", str(tables[0]), "--new", str(tmp_path / "bad.csv")]
    assert CliRunner().invoke(app, arguments).exit_code == 2
    ended = CliRunner().invoke(app, [*arguments, "--skip-bad", "5%"])
    assert "bad.csv: 2 rows (1.67%) are left out: value should be a number (2)" in ended.output
    assert ended.exit_code == 0


def test_a_plan_takes_own_columns(tmp_path):
    lines = ["svc,share_pct,mean,std,count,cost", "compute,50,100,7.4,1500,1", "network,50,100,17.5,1500,1"]
    table = written(tmp_path / "own.csv", lines)
    columns = ["--column", "job=svc", "--column", "weight=share_pct / 100", "--column", "instances=count"]
    ended = CliRunner().invoke(app, ["wsmeter", "plan", str(table), "--margin", "3%", *columns, "--json"])
    assert json.loads(ended.stdout)["cost"] == 69


def test_fewer_instances_than_a_spread_needs_are_refused_by_the_options_name(tables):
    arguments = ["wsmeter", "estimate", "--current", str(tables[0]), "--new", str(tables[1]), "--min-instances", "1"]
    ended = CliRunner().invoke(app, arguments)
    assert (ended.exit_code, ended.stderr) == (
        2,
        '--min-instances: should be at least 2: a spread needs two instances, got "1"\n',
    )


@pytest.mark.parametrize("digits", [1, 2, 9])
@pytest.mark.parametrize("columns", [["job", "value"], ["job", "machine", "instance", "value"]])
def test_two_measurements_of_the_same_machines_are_no_copies_however_they_are_rounded(tmp_path, digits, columns):
    files = []
    for name in ("before", "after"):
        rng = np.random.default_rng(len(name))
        rows = pd.DataFrame({"job": np.arange(400) % 4, "machine": np.arange(400) // 4, "instance": np.arange(400)})
        rows = rows.assign(value=(1 + rng.normal(0, 0.05, 400)).round(digits))
        rows[columns].to_csv(tmp_path / f"{name}.csv", index=False)
        files.append(tmp_path / f"{name}.csv")
    assert "duplicated_rows" not in {one["code"] for one in estimated(*files)["findings"]}


def test_new_rows_without_a_usable_value_are_no_comparison(tables, tmp_path):
    rows = pd.read_csv(tables[1]).assign(value=0.0)
    rows.to_csv(tmp_path / "zero.csv", index=False)
    assert not estimated(tables[0], tmp_path / "zero.csv")["trusted"]


def test_estimates_of_a_large_fleet_fit_eighty_columns_unbroken():
    wide = Estimate("wsmeter-widened", 123456, -0.1234, -0.23456, 0.98765, 0.6, math.nan, 1.0, 0.9, 12345)
    lines = shown(own_tables.EstimatedChange("population", (wide,), Audit((), ()), ())).splitlines()
    cells = ["wsmeter-widened", "123,456", "12,345", "-12.34%", "-23.46%", "to", "+98.77%", "unknown", "not", "found"]
    assert cells in [line.split() for line in lines]
    assert max(map(len, lines)) <= 80


def test_a_single_machine_gives_no_baseline_and_says_why(tmp_path):
    one, other = (
        written(tmp_path / name, ["job,machine,instance,value", *(f"web,{name},{at},{1 + at / 10}" for at in range(5))])
        for name in ("one.csv", "other.csv")
    )
    payload = estimated(one, other)
    assert [row["estimator"] for row in payload["estimates"]] == ["wsmeter", "wsmeter-widened"]
    assert payload["notes"][-1] == "no baseline: 2 machines are needed, 1 given"


def test_too_little_data_says_what_would_do(tables, tmp_path):
    few = written(tmp_path / "few.csv", ["job,machine,instance,value", "0,1,1,2", "0,2,2,3", "0,3,3,3"])
    with pytest.raises(FaultsError) as caught:
        estimated(tables[0], few)
    assert str(caught.value) == f"{few}: 4 instances of one job of the current table in the new one are needed, 3 given"


def test_the_faults_of_all_files_come_at_once(tmp_path):
    current = written(tmp_path / "a.csv", ["job,value", "web,x"])
    new = tmp_path / "missing.csv"
    jobs = written(tmp_path / "c.csv", ["job,quota,instances", "web,-1,2"])
    with pytest.raises(FaultsError) as caught:
        estimated(current, new, jobs)
    assert str(caught.value).splitlines() == [
        f'{current}:2:2: value: should be a number, got "x"',
        f'{jobs}:2:2: quota: should be above 0, got "-1"',
        f"{new}: cannot be read, got No such file or directory",
    ]


def test_many_faults_of_one_kind_are_counted_in_one_line(tmp_path):
    path = written(tmp_path / "a.csv", ["value", *["x"] * 25])
    with pytest.raises(FaultsError) as caught:
        estimated(path, path)
    assert str(caught.value) == (
        f'{path}:2:1: value: should be a number, got "x" and 24 more of 25 rows, next in lines 3, 4, 5'
    )
