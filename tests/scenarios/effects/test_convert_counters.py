"""Counters of containers on logical CPUs, as Alibaba's AMTrace has them, become observations."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis.effects.observations import read_observations
from analysis.wsmeter.dependence import colocation_dependence
from analysis.wsmeter.measurements import read_jobs
from scenarios.commands.app import app
from scenarios.effects.convert import Conversion, convert
from scenarios.files.faults import FaultsError
from tests.helpers.cluster_traces import BESIDE, amtrace, counted, counts, zipped

ROWS = counts()
KEYS = ["period", "job", "machine", "instance"]
VALUES = ["value", "cpu_s", "cycles", "misses_per_instruction"]


@pytest.fixture
def trace(tmp_path):
    return written(tmp_path, *amtrace(ROWS))


def written(folder, *contents):
    names = ("core_pmu.csv", "container_meta.csv", "host_meta.csv")
    for name, content in zip(names, contents, strict=False):
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def converted(folder, *, clocked=False, usage=("core_pmu.csv",), out="made.csv", **more):
    hosts = folder / "host_meta.csv" if clocked else None
    files = tuple(folder / name for name in usage)
    made = convert(Conversion("amtrace", files, folder / out, (folder / "container_meta.csv",), hosts=hosts, **more))
    return made, pd.read_csv(folder / out)


def told(folder, **asked):
    with pytest.raises(FaultsError) as caught:
        converted(folder, **asked)
    return str(caught.value).replace(f"{folder}/", "").splitlines()


@pytest.mark.parametrize("clocked", [False, True])
def test_counts_of_all_cpus_are_summed_as_in_exact_arithmetic(trace, clocked):
    made, table = converted(trace, clocked=clocked)
    wanted = counted(ROWS, clocked=clocked)
    columns = [*VALUES, *(["mean_frequency_hz"] if clocked else [])]
    by_key = dict(zip(table[KEYS].itertuples(index=False, name=None), table[columns].to_numpy(), strict=True))
    assert set(by_key) == set(wanted)
    for key, values in wanted.items():
        assert by_key[key] == pytest.approx(values[: len(columns)], rel=1e-12), key
    assert table["weight"].to_numpy() == pytest.approx(table["cpu_s"].to_numpy() / 3600)
    assert (made.rows, made.set_aside) == (len(ROWS), {"of instances without a job": 16})
    assert (made.first_s, made.last_s) == (0, 6000)
    assert ("platform" in table) == clocked
    assert "present_s" not in table


def test_rows_in_another_order_in_several_files_with_names_give_the_same_bytes(trace):
    converted(trace, out="a.csv")
    lines = amtrace(ROWS)[0].splitlines(keepends=True)
    names = "ts,node_id,container_id,cpu,core_id,socket_id,instructions,cycles,ref_cycles,llc_misses\n"
    (trace / "1.csv").write_text("".join([names, *lines[1::2]]))
    (trace / "2.csv.gz").write_bytes(zipped("".join(lines[::2][::-1])))
    converted(trace, usage=("1.csv", "2.csv.gz"), out="b.csv")
    assert (trace / "a.csv").read_bytes() == (trace / "b.csv").read_bytes()


def test_rows_of_two_cpus_are_no_copies_and_those_of_one_are(trace):
    core = (trace / "core_pmu.csv").read_text()
    same = [",".join([*line.split(",")[:6], "300", "400", "500", "6"]) for line in core.splitlines()]
    written(trace, "\n".join(same) + "\n", *amtrace(ROWS)[1:])
    (trace / "again.csv").write_text("\n".join(same[:7]) + "\n")
    made, _ = converted(trace, usage=("core_pmu.csv", "again.csv"))
    assert (made.left_out, made.doubts) == ({"copies of rows of the same instance, machine and time": 7}, {})


def test_small_blocks_give_the_same_bytes(trace, monkeypatch):
    converted(trace, out="a.csv", clocked=True)
    monkeypatch.setattr("analysis.traces.files._BLOCK_BYTES", 700)
    converted(trace, out="b.csv", clocked=True)
    assert (trace / "a.csv").read_bytes() == (trace / "b.csv").read_bytes()


def test_jobs_weigh_by_the_cpu_time_that_they_use_over_all_periods(trace):
    _, table = converted(trace, clocked=True, jobs_out=trace / "jobs.csv")
    jobs = read_jobs(trace / "jobs.csv").table.set_index("job")
    assert jobs["quota"].to_dict() == pytest.approx((table.groupby("job")["cpu_s"].sum() / 7200).to_dict())
    assert jobs["instances"].to_dict() == {"Batch/Batch-Share": 4, "shop/biz": 8, "shop/other": 8}


def test_what_runs_beside_a_container_shows_in_its_cycles_per_instruction(trace):
    """The lens that looks at neighbours reads the table: cycles per instruction beside a batch job and without."""
    converted(trace, clocked=True)
    table = read_observations(trace / "made.csv").table
    first = table[table["period"] == 0]
    cpi = (first["mean_frequency_hz"] / first["value"]).groupby([first["job"], first["machine"]]).first()["shop/biz"]
    batch = set(first.loc[first["job"].str.startswith("Batch"), "machine"])
    beside = cpi.index.isin(batch)
    assert cpi[beside].mean() / cpi[~beside].mean() == pytest.approx(BESIDE, rel=0.02)
    measurements = first.assign(value=first["value"] / first["mean_frequency_hz"])
    (row,) = colocation_dependence(measurements, pd.DataFrame({"job": ["shop/biz"]})).to_dict("records")
    assert row["instances"] == 8
    assert abs(row["pearson"]) > 0.9


def test_rows_that_say_nothing_of_instructions_are_counted_by_their_reason(tmp_path):
    rows = [replace(row, instructions=0) if at == 0 else row for at, row in enumerate(ROWS)]
    rows[1] = replace(rows[1], cycles=rows[1].instructions * 200)
    rows[2] = replace(rows[2], reference=0)
    core, meta, hosts = amtrace(rows)
    lines = core.splitlines()
    lines[3] = lines[3].rpartition(",")[0] + ","
    made, table = converted(written(tmp_path, "\n".join(lines) + "\n", meta, hosts))
    assert made.left_out == {"CPI not within 0.1 and 100": 1, "count missing": 1, "no CPI": 1, "no CPU time": 1}
    assert np.isfinite(table[VALUES].to_numpy()).all()


def test_all_faults_of_all_files_come_at_once_with_their_places(tmp_path):
    core, meta, hosts = (text.splitlines() for text in amtrace(ROWS))
    cells = [line.split(",") for line in core]
    cells[0][0], cells[1][2], cells[2][6], cells[3][7], cells[4][8] = "", "", "-5", "many", "1.5"
    cells[5] = cells[5][:8]
    cells[6][9] = "1e20"
    meta[2] = meta[2].replace(meta[2].split(",")[1], "")
    hosts += [hosts[0], hosts[1].replace("2.5", "2.9")]
    hosts[4] = hosts[4].replace("2.6", "fast")
    folder = written(tmp_path, *("\n".join(text) + "\n" for text in (map(",".join, cells), meta, hosts)))
    assert told(folder, clocked=True) == [
        'container_meta.csv:3:2: container_id: should not be empty, got ""',
        'core_pmu.csv:1:1: ts: should not be empty, got ""',
        'core_pmu.csv:2:3: container_id: should not be empty, got ""',
        'core_pmu.csv:3:7: instructions: should be at least 0, got "-5"',
        'core_pmu.csv:4:8: cycles: should be a number, got "many"',
        'core_pmu.csv:5:9: ref_cycles: should be a whole number, got "1.5"',
        "core_pmu.csv:6:1: row: should have 10 fields, got 8",
        'core_pmu.csv:7:10: llc_misses: should be at most 9007199254740991, got "1e20"',
        'host_meta.csv:5:5: ref_freq_Ghz: should be a number, got "fast"',
        "host_meta.csv:10:1: node_id: is there before with another platform or clock, got n1",
    ]


def test_machines_without_a_clock_are_left_out_where_others_have_one(trace):
    (trace / "host_meta.csv").write_text("n1,96,machine-1,skylake,2.5,2\nn2,96,machine-1,,,2\n")
    made, table = converted(trace, clocked=True)
    assert set(table["machine"]) == {"n1"}
    assert made.set_aside == {
        "of instances without a job": 2,
        "on machines without a clock": len(counted(ROWS)) - len(table) + 16 - 2,
    }


def test_clocks_in_another_unit_than_ghz_are_faults(trace):
    (trace / "host_meta.csv").write_text("n1,96,machine-1,skylake,2500,2\nn2,96,machine-1,,0,2\nn3,96,m,sky,0.05,2\n")
    assert told(trace, clocked=True) == [
        "host_meta.csv:1:5: ref_freq_Ghz: should be in GHz, from 0.1 to 100, got 2500",
        "host_meta.csv:3:5: ref_freq_Ghz: should be in GHz, from 0.1 to 100, got 0.05",
    ]


def test_what_the_owner_says_of_machines_comes_before_the_trace(trace):
    (trace / "machines.csv").write_text("machine,treated,platform\nn1,1,mine\nn2,0,skylake\n")
    made, table = converted(trace, clocked=True, machines=trace / "machines.csv")
    platforms = table.groupby("machine")["platform"].first().to_dict()
    assert (platforms["n1"], platforms["n3"], platforms["n5"]) == ("mine", "skylake", "cascadelake")
    assert made.machines_treated == 1


def test_jobs_are_named_in_a_table_of_their_own_and_only_this_trace_has_clocks(trace):
    with pytest.raises(
        FaultsError, match="requests: is needed: amtrace says only in container_meta what an instance's"
    ):
        convert(Conversion("amtrace", (trace / "core_pmu.csv",), trace / "made.csv"))
    with pytest.raises(FaultsError, match="hosts: is of no use: google2011 has no table of its machines' clocks"):
        convert(Conversion("google2011", (trace / "core_pmu.csv",), trace / "a.csv", hosts=trace / "host_meta.csv"))


def test_the_command_ends_with_2_for_files_that_it_cannot_use(trace):
    words = ["convert", "amtrace", f"{trace}/core_pmu.csv", "--requests", f"{trace}/container_meta.csv"]
    words += ["--hosts", f"{trace}/host_meta.csv", "--out", f"{trace}/o.parquet"]
    runner = CliRunner()
    shown = runner.invoke(app, words)
    assert shown.exit_code == 0, shown.output
    assert "note: value is instructions per CPU second" in shown.output
    (trace / "core_pmu.csv").write_text("1,2,3\n")
    refused = runner.invoke(app, words)
    assert refused.exit_code == 2
    assert "core_pmu.csv:1:1: row: should have 10 fields, as core_pmu has, got 3" in refused.output
