"""Tables with columns of their own, as a company exports them, put to the commands that read observations."""

import json
import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from scenarios.commands.app import app
from tests.helpers.company_export import COLUMNS, company_export, in_our_columns, written

MAPPED = [part for name, text in COLUMNS.items() for part in ("--column", f"{name}={text}")]
DAILY = [*MAPPED, "--period", "1d"]


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


@pytest.fixture(scope="module")
def export():
    return company_export(rows=14_000)


@pytest.fixture(scope="module")
def theirs(export, tmp_path_factory):
    return written(export, tmp_path_factory.mktemp("theirs") / "fleet.csv")


@pytest.fixture(scope="module")
def ours(export, tmp_path_factory):
    """The change that pandas' own reading of the same export gives."""
    file = tmp_path_factory.mktemp("ours") / "ours.csv"
    in_our_columns(export).to_csv(file, index=False)
    return json.loads(invoke("effect", file, "--json").output)


def changed(ended):
    assert ended.exit_code in {0, 1}, ended.output
    said = json.loads(ended.output)
    return {name: said[name] for name in ("change", "low", "high", "machines", "jobs")}


def test_an_export_gives_what_the_same_rows_give_in_our_columns(theirs, ours):
    assert changed(invoke("effect", theirs, *DAILY, "--skip-bad", "3%", "--json")) == pytest.approx(
        {name: ours[name] for name in ("change", "low", "high", "machines", "jobs")}, rel=1e-9
    )


def test_the_same_stands_in_a_file_beside_the_table(theirs, ours, tmp_path):
    table = tmp_path / "fleet.csv.gz"
    table.write_bytes(theirs.read_bytes())
    columns = "\n".join(f"  {name}: {json.dumps(text)}" for name, text in COLUMNS.items())
    (tmp_path / "fleet.columns.yaml").write_text(f"columns:\n{columns}\nperiod: 1d\nskip_bad: 3%\n")
    assert changed(invoke("effect", table, "--json"))["change"] == pytest.approx(ours["change"], rel=1e-9)


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_a_query_stands_in_place_of_a_table(export, theirs, ours, tmp_path, kind):
    names = "timestamp, hostname, service, task, cpu_limit, cpu_time_ms, instructions, kernel"
    table = "export" if kind == "sqlite" else f"read_csv('{theirs}', all_varchar = true)"  # else 6.6.30 is a date
    query = f"SELECT {names} FROM {table}"
    more = []
    if kind == "sqlite":
        with closing(sqlite3.connect(tmp_path / "fleet.db")) as connection:
            export.to_sql("export", connection, index=False)
        more = ["--database", tmp_path / "fleet.db"]
    ended = invoke("effect", query, *more, *DAILY, "--skip-bad", "3%", "--json")
    assert changed(ended)["change"] == pytest.approx(ours["change"], rel=1e-9)


def test_rows_that_are_left_out_are_counted_by_reason(theirs):
    notes = json.loads(invoke("effect", theirs, *DAILY, "--skip-bad", "3%", "--json").output)["notes"]
    (left_out,) = (note for note in notes if "left out" in note)
    assert "cpu_time_ms should be a number" in left_out
    assert "period 1 begins 2026-03-06T00:00:00" in notes


def proportions():
    """Twelve machines of which six fail three times as often from the second day on, each with 200 requests a day."""
    rng = np.random.default_rng(5)
    rows = pd.DataFrame({"period": np.repeat([1, 2], 2400), "machine": np.tile(np.repeat(np.arange(12), 200), 2)})
    treated = (rows["machine"] % 2 == 0) & (rows["period"] == 2)
    value = (rng.random(len(rows)) > np.where(treated, 0.15, 0.05)).astype(int)
    return rows.assign(instance=np.arange(len(rows)), job="a", weight=1.0, value=value, treated=treated.astype(int))


@pytest.mark.parametrize("kind", ["mean", "proportion"])
def test_rows_of_zero_are_not_left_out_as_bad_where_zero_is_a_value(tmp_path, kind):
    file = tmp_path / "requests.csv"
    proportions().to_csv(file, index=False)
    plain, skipping = (
        changed(invoke("effect", file, "--metric-kind", kind, "--json", *more)) for more in ([], ["--skip-bad", "20%"])
    )
    assert skipping == plain
    assert plain["high"] < 0


def test_jobs_of_other_metrics_than_rates_rise_or_fall(tmp_path):
    file = tmp_path / "requests.csv"
    proportions().to_csv(file, index=False)
    ended = invoke("effect", file, "--metric-kind", "proportion", "--per-job")
    assert " fell " in ended.output
    assert "lost" not in ended.output


def test_cells_that_are_no_numbers_are_told_with_their_place(tmp_path):
    rows = proportions().assign(value=lambda table: (table["value"] + 1.5).astype(str))
    rows.loc[7, "value"] = "fast"
    rows.to_csv(tmp_path / "few.csv", index=False)
    assert 'value: 1 cell is no number, first in line 9: "fast"' in invoke("effect", tmp_path / "few.csv").output
    rows.assign(value=rows["value"].str.replace(".", ",")).to_csv(tmp_path / "all.csv", index=False, sep=";")
    ended = invoke("effect", tmp_path / "all.csv")
    assert ended.exit_code == 2
    assert "all.csv:2:6: value: should be a number (of decimal commas" in ended.output


@pytest.mark.parametrize(("kind", "told"), [("rate", True), ("mean", False), ("p90", False)])
def test_a_latency_as_a_rate_is_told_to_count_as_faster(tmp_path, kind, told):
    file = tmp_path / "latency.csv"
    proportions().assign(latency_ms=lambda table: table.pop("value") + 10.0).to_csv(file, index=False)
    ended = invoke("effect", file, "--column", "value=latency_ms", "--metric-kind", kind)
    assert ("more counts as faster" in ended.output) is told


def test_a_machine_with_and_without_the_feature_is_told_of_a_quantile_too(tmp_path):
    rows = proportions()
    rows.loc[rows.index[-1:], ["machine", "treated"]] = [0, 0]
    rows.to_csv(tmp_path / "mixed.csv", index=False)
    ended = invoke("effect", tmp_path / "mixed.csv", "--metric-kind", "p90")
    assert "machine 0 is with and without the feature in period 2" in ended.output


def test_filters_and_times_take_fewer_rows(theirs):
    whole = changed(invoke("effect", theirs, *DAILY, "--json"))
    some = changed(invoke("effect", theirs, *DAILY, "--where", "service < 'svc-030'", "--json"))
    assert some["jobs"] == 30 < whole["jobs"]
    late = invoke("effect", theirs, *DAILY, "--from", "2026-03-11", "--until", "2026-03-16", "--json")
    assert json.loads(late.output)["periods_before"] == 2


def weeks(tmp_path, treated="kernel = 'new'"):
    """Two weeks from a Monday in two files; half of the machines have the feature in the second."""
    days = pd.date_range("2026-03-02", periods=14).strftime("%Y-%m-%dT06:00:00").tolist()
    rng = np.random.default_rng(3)
    rows = pd.MultiIndex.from_product([days, ["a", "b", "c"], [f"m{number:02}" for number in range(24)]])
    table = rows.to_frame(index=False, name=["period", "job", "machine"]).assign(weight=1.0)
    new = (table["period"] >= "2026-03-09") & (table["machine"] < "m12")
    table = table.assign(value=rng.normal(100, 1, len(table)), kernel=np.where(new, "new", "old"))
    files = [tmp_path / "first.csv", tmp_path / "second.csv"]
    for file, part in zip(files, (table["period"] < "2026-03-09", table["period"] >= "2026-03-09"), strict=True):
        table[part].to_csv(file, index=False)
    return [*files, "--column", f"treated={treated}"]


def test_weeks_begin_at_the_first_day_of_all_files_or_at_from(tmp_path):
    tables = weeks(tmp_path)
    whole = json.loads(invoke("effect", *tables, "--period", "7d", "--json").output)
    assert whole["periods_before"] == 1
    assert "period 0 begins 2026-03-02T00:00:00" in whole["notes"]
    late = json.loads(invoke("effect", *tables, "--period", "2d", "--from", "2026-03-03", "--json").output)
    assert late["periods_before"] == 3
    assert "period 0 begins 2026-03-03T00:00:00" in late["notes"]
    mixed = invoke("effect", *tables, "--period", "7d", "--from", "2026-03-03")
    assert "m00 is with and without the feature in period 0 (2026-03-03)" in mixed.output
    assert "; leave such rows out (--where), or let days begin where they switch" in mixed.output


def test_a_feature_that_all_have_first_and_some_lose_may_be_the_wrong_way_round(tmp_path):
    ended = invoke("effect", *weeks(tmp_path, "kernel = 'old'"), "--period", "1d")
    assert ended.exit_code == 2
    after = "12 are without it later: is `treated` the wrong way round?"
    assert f"every machine has the feature in period 1 (2026-03-02), and {after}" in ended.output


@pytest.mark.parametrize(
    ("command", "where", "expression", "problem"),
    [
        ("effect", "service < 'z'", "kernel = '6.6.31'", "true in no row, so nothing has the feature; kernel is 6.1"),
        ("audit", "cpu_limit > 0", "kernel = '6.6.31'", "true in no row, so nothing has the feature; kernel is 6.1"),
        ("monitor", "kernel = '6.6.30'", "kernel = '6.6.30'", "true in every row, so nothing is without the feature;"),
        ("design", "service < 'z'", "hostname > 'a'", "true in every row, so nothing is without the feature; hostname"),
    ],
)
def test_a_feature_in_one_arm_alone_shows_what_its_columns_hold(theirs, command, where, expression, problem):
    more = ["--detect", "5%"] if command == "design" else []
    options = ["--skip-bad", "3%", "--column", f"treated={expression}", "--where", where, *more]
    ended = invoke(command, theirs, *DAILY[:-4], *DAILY[-2:], *options)
    assert ended.exit_code == 2, ended.output
    assert f"treated: {expression} is {problem}" in ended.output


def test_a_table_with_quotas_and_machines_of_another_name_is_no_table_of_jobs(tmp_path):
    row = {"day": [1, 1], "job": "a", "host": ["x", "y"], "quota": 1.0, "value": [1.0, 2.0], "treated": 0}
    pd.DataFrame(row).to_csv(tmp_path / "own.csv", index=False)
    names = ["--column", "machine=host", "--column", "weight=quota", "--column", "period=day"]
    ended = invoke("audit", tmp_path / "own.csv", *names)
    assert "nothing has the feature: no row has treated 1" in ended.output


@pytest.mark.parametrize("command", ["effect", "audit", "monitor"])
def test_every_command_reads_the_same_rows(theirs, command):
    ended = invoke(command, theirs, *DAILY, "--skip-bad", "3%")
    assert ended.exit_code in {0, 1}, ended.output
    refused = invoke(command, theirs, *DAILY, "--skip-bad", "1%")
    assert refused.exit_code == 2
    assert (
        "rows: at most 1.00% may have a cell that cannot be used (--skip-bad), got 1.66%: 233 of 14,000"
        in refused.output
    )


def test_a_design_takes_the_weeks_before(tmp_path):
    fewer = written(company_export(rows=4_000), tmp_path / "fleet.csv")
    ended = invoke("design", fewer, *DAILY, "--skip-bad", "3%", "--detect", "10%", "--days", "1", "--draws", "100")
    assert ended.exit_code == 0, ended.output
    assert "only the periods before 8 (2026-03-13) are used" in ended.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--column", "job"], '--column: should be NAME=EXPRESSION, such as job=service, got "job"'),
        (["--column", "job=a", "--column", "job=b"], '--column: job should be given once, got "job=b"'),
        (
            ["--column", "waeght=cpu_limit"],
            '--column: is none of our columns (did you mean weight?), got "waeght=cpu_limit"',
        ),
        (["--column", "value="], '--column: should have an expression after value=, got "value="'),
        (["--where", "svc ="], "where: should be a whole expression, ends too early, got svc ="),
        (["--period", "1day"], '--period: should be a time above 0, such as 1d, 12h, 5min, 60s or 200ms, got "1day"'),
        ([], "weight: column is missing (--column weight=EXPRESSION makes it of yours), got columns timestamp"),
        (["--column", "job=svc"], ':1:0: job: takes the column "svc", which the table lacks, got columns timestamp'),
        (["--column", "job=(SELECT 1)"], "should compute with columns of its row, has a SELECT of its own"),
        (["--where", "sum(cpu_time_ms) > 1"], "should use DuckDB's functions of one row, has sum"),
        (["--zone", "Mars"], '--zone: should be a time zone\'s name, such as UTC or Europe/Berlin, got "Mars"'),
        (["--from", "2026-03-11"], "--from: needs a period"),
        (["--period", "0s"], "--period: should be a time above 0"),
        (["--database", "fleet.db"], "--database: is what a SELECT in place of a table is about; there is none"),
        (["--columns", "nowhere.yaml"], "nowhere.yaml: cannot be read"),
    ],
)
def test_what_is_wrong_with_an_option_is_told_of_it(theirs, options, message):
    ended = invoke("effect", theirs, *options)
    assert ended.exit_code == 2
    assert message in ended.output


def test_all_faults_of_a_file_of_columns_come_at_once(theirs, tmp_path):
    file = tmp_path / "columns.yaml"
    file.write_text(
        "columns: {job: [1], value: null, waeght: cpu}\nperiod: soon\nzone: Mars\ncolour: red\nskip_bad: 200%\n"
    )
    ended = invoke("effect", theirs, "--columns", file)
    assert ended.exit_code == 2
    assert [line.removeprefix(f"{file}:") for line in ended.output.splitlines()] == [
        "1:16: columns.job: should be an expression, got [1]",
        "1:28: columns.value: should be an expression, got null",
        "1:34: columns.waeght: is none of our columns (did you mean weight?)",
        '2:9: period: should be a time above 0, such as 1d, 12h, 5min, 60s or 200ms, got "soon"',
        '3:7: zone: should be a time zone\'s name, such as UTC or Europe/Berlin, got "Mars"',
        "4:1: colour: is not known; known are columns, where, period, from, until, zone, skip_bad",
        '5:11: skip_bad: should be a share between 0 and 1, such as 3% or 0.03, got "200%"',
    ]


def test_rows_left_out_of_one_arm_alone_are_a_finding(export, tmp_path):
    broken = export.copy()
    new = broken.index[broken["kernel"] == "6.6.30"]
    broken.loc[new[::12], "instructions"] = "overflow"
    ended = invoke("audit", written(broken, tmp_path / "fleet.csv"), *DAILY, "--skip-bad", "9%", "--json")
    (finding,) = (each for each in json.loads(ended.output)["findings"] if each["code"] == "unusable_values")
    assert finding["severity"] == "warning"
    assert finding["what"].startswith("shares of rows left out differ between the arms: 9.")


def test_rows_left_out_alike_are_none(theirs):
    ended = invoke("audit", theirs, *DAILY, "--skip-bad", "9%", "--json")
    assert "unusable_values" not in {finding["code"] for finding in json.loads(ended.output)["findings"]}
