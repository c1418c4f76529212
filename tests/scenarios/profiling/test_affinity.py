import io
import json
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

from analysis.profiling.affinity.advice import Judgement
from scenarios.commands.app import app
from scenarios.files.faults import FaultsError
from scenarios.profiling import affinity_trial
from scenarios.profiling.affinity import affinity
from scenarios.views.terminal import show
from tests.helpers.affinities import TABLE_1, random_table, sampled
from tests.helpers.modelled_jobs import NAMES, modelled_rows


def written(folder, text, name="table.csv"):
    file = folder / name
    file.write_text(text)
    return file


def run(*arguments):
    return CliRunner().invoke(app, ["affinity", *map(str, arguments)])


@pytest.mark.parametrize("method", ["lp", "anneal"])
def test_table_1_of_the_paper_drops_from_500_to_400_cycles(tmp_path, method):
    payload = json.loads(run(written(tmp_path, TABLE_1), "--method", method, "--json").stdout)
    assert payload["total_cycles_before"] == 500
    assert payload["total_cycles_after"] == pytest.approx(400, rel=1e-3 if method == "anneal" else 0)
    loads = {(row["job"], row["platform"]): row["load"] for row in payload["assignment"]}
    assert loads["MemBench", "1"] == pytest.approx(200, rel=1e-2 if method == "anneal" else 0)
    assert loads["NumCrunch", "2"] == pytest.approx(200, rel=1e-2 if method == "anneal" else 0)
    if method == "lp":
        assert payload["optimal"] is True
        assert len(loads) == 2


def test_a_table_with_columns_of_its_own_is_answered_as_ours_is(tmp_path):
    ours = json.loads(run(written(tmp_path, TABLE_1), "--json").stdout)
    lines = TABLE_1.replace("cpi", "cycles_per_kilo").replace("job", "service").splitlines()
    rows = [line.split(",") for line in lines[1:]]
    own_rows = [f"{a},{b},{c},{1000 * float(d)},{e},us" for a, b, c, d, e in rows]
    text = "\n".join([lines[0] + ",owner", *own_rows, *(f"other,{b},{c},9,{e},them" for _, b, c, _, e in rows)])
    own = ("--column", "job=service", "--column", "cpi=cycles_per_kilo / 1000")
    answer = json.loads(run(written(tmp_path, text, "own.csv"), *own, "--where", "owner = 'us'", "--json").stdout)
    assert answer["assignment"] == ours["assignment"]
    assert json.loads(run(f"SELECT * FROM '{tmp_path / 'table.csv'}'", "--json").stdout) == ours
    refused = run(tmp_path / "own.csv", "--column", "cpy=cycles_per_kilo")
    assert (refused.exit_code, "cpy=cycles_per_kilo" in refused.stderr) == (2, True)
    refused = run(f"SELECT job, platform, load, capacity FROM '{tmp_path / 'table.csv'}'")
    assert (refused.exit_code, "cpi: column is missing" in refused.stderr) == (2, True)


def test_clocks_are_told(tmp_path):
    lines = TABLE_1.splitlines()
    rows = [line.split(",") for line in lines[1:]]
    text = "\n".join([lines[0] + ",clock_hz", *(",".join([*row, "2e9" if row[1] == "1" else "4e9"]) for row in rows)])
    assignment = affinity(written(tmp_path, text))
    payload = assignment.payload()
    assert payload["total_seconds_before"] == pytest.approx(200 / 2e9 + 300 / 4e9)
    assert payload["total_seconds_after"] <= payload["total_seconds_before"]
    assert any("clock" in note for note in payload["notes"])


def test_faults_name_the_file_and_end_with_status_2(tmp_path):
    file = written(tmp_path, TABLE_1 + "MemBench,2,1,1,299\n")
    ended = run(file)
    assert ended.exit_code == 2
    assert f"{file}:6:1: job, platform: should be there once" in ended.output
    assert f"{file}:6:5: capacity: should be the same" in ended.output
    missing = run(tmp_path / "none.csv")
    assert missing.exit_code == 2
    assert "none.csv: cannot be read" in missing.output


def test_capacities_that_are_too_small_say_by_how_much(tmp_path):
    ended = run(written(tmp_path, TABLE_1.replace("200\n", "80\n")))
    assert ended.exit_code == 2
    assert "table.csv: the capacities are too small by 70, 18.42% of them all" in ended.output


def test_only_a_run_can_be_judged_by_moving(tmp_path):
    with pytest.raises(FaultsError, match="--judge: needs the folder of a profiled run"):
        affinity(written(tmp_path, TABLE_1), judged=True)


def test_what_is_predicted_and_shrunk_is_noted_and_shown(tmp_path):
    frame = sampled(random_table(1, 40), 1, samples=50_000)
    frame.loc[3, ["cpi", "cpi_se"]] = np.nan
    file = tmp_path / "sampled.csv"
    frame.to_csv(file, index=False)
    assignment = affinity(file)
    payload = assignment.payload()
    assert payload["predicted_pairs"] >= 1
    assert payload["shrunk_pairs"] > 100
    text = io.StringIO()
    show(assignment.section(), Console(file=text, width=160, highlight=False))
    for said in (
        "predicted from job and platform",
        "were shrunk",
        "stays free",
        "optimal, proven by duality",
        "more with",
    ):
        assert said in text.getvalue()


def test_a_folder_that_is_no_run_cannot_be_simulated(tmp_path):
    with pytest.raises(FaultsError, match="cannot be simulated"):
        affinity_trial.moved(tmp_path, None)


def test_what_pairs_are_predicted_by_is_told(tmp_path):
    rows = modelled_rows(1, 8)
    rows["capacity"] = (rows["cpi"] * rows["load"]).groupby(rows["platform"]).transform("sum")
    for names, by, said in ((NAMES, "model", "the cross-platform model"), ("abcd", "effects", "job and platform")):
        rows.drop(columns="truth").replace(dict(zip(NAMES, names, strict=True))).to_csv(
            tmp_path / "table.csv", index=False
        )
        payload = json.loads(run(tmp_path / "table.csv", "--json").stdout)
        assert payload["predicted_by"] == by
        assert [row["structure"] for row in payload["held_out"]] == ["effects", "model"][: 1 + (by == "model")]
        assert [row["used"] for row in payload["held_out"]][-1] is True
        assert any(f"predicted from {said}, median error" in note for note in payload["notes"])


def test_where_no_pair_can_be_left_out_nothing_is_told_of_errors(tmp_path):
    text = "job,platform,load,cpi,capacity\na,1,5,1,9\na,2,0,,9\n"
    payload = json.loads(run(written(tmp_path, text), "--json").stdout)
    assert payload["held_out"] == []


def test_counters_that_are_not_used_are_told_with_why(tmp_path):
    text = "job,platform,load,cpi,capacity,l1_misses\na,1,5,1,9,0.01\n"
    (note,) = (note for note in affinity(written(tmp_path, text)).notes if "not used" in note)
    assert note.startswith("not used: l1_misses")
    assert note.endswith("missing: l2_misses, llc_misses, mispredictions")


@pytest.mark.parametrize(("excess", "warned"), [(0.0123, True), (0.0, False)])
def test_capacities_exceeded_at_the_true_cpi_are_warned_of(tmp_path, monkeypatch, excess, warned):
    judged = Judgement(0.1, 0.2, excess)
    frame = pd.read_csv(io.StringIO(TABLE_1))
    monkeypatch.setattr("analysis.profiling.database.Database", lambda _: nullcontext())
    monkeypatch.setattr("analysis.profiling.affinity.sampled.table_of", lambda _: frame)
    monkeypatch.setattr(affinity_trial, "truth", lambda *_: judged)
    assignment = affinity(tmp_path)
    payload = assignment.payload()
    warning = "warning: at the true CPI the assignment exceeds capacities by 1.23%"
    assert (warning in payload["notes"]) == warned
    out = io.StringIO()
    show(assignment.section(), Console(file=out, width=120))
    assert (warning in out.getvalue()) == warned


def test_spec_sheets_of_your_own_predict_what_was_not_observed(tmp_path):
    head = "job,platform,load,cpi,capacity,l1_misses,l2_misses,llc_misses,mispredictions\n"
    counted = [
        f"{job},{platform},5,{cpi},200,{0.03 * cpi},{0.01 * cpi},{0.003 * cpi},0.004\n"
        for job, cpi in (("a", 1.0), ("b", 1.5), ("c", 2.0), ("d", 0.8))
        for platform in ("haswell_2698v3", "skylake_6148")
    ]
    text = head + "".join(counted) + "e,haswell_2698v3,5,1.2,200,0.04,0.02,0.003,0.004\ne,skylake_6148,0,,200,,,,\n"
    ours = affinity(written(tmp_path, text)).payload()
    sheet = written(tmp_path, "mine: {extends: skylake_6148}\n", "mine.yaml")
    table = written(tmp_path, text.replace("skylake_6148", "mine"))
    theirs = json.loads(run(table, "--platforms", sheet, "--json").stdout)
    assert (ours["predicted_by"], affinity(table).payload()["predicted_by"]) == ("model", "effects")
    assert theirs["total_cycles_after"] == ours["total_cycles_after"]
