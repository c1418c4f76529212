import json
import math
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis.effects.observations import read_observations
from analysis.wsmeter.measurements import read_jobs
from scenarios.commands.app import app
from scenarios.effects.convert import Conversion, convert
from scenarios.files.faults import FaultsError
from tests.helpers.cluster_traces import (
    alibaba2018,
    every_ten_seconds,
    expected,
    google2011,
    google2019_csv,
    google2019_json,
    google2019_parquet,
    rows,
    task_events,
    zipped,
)

ROWS = rows()
REQUESTS = {
    ("6001", 0): 0.5,
    ("6002", 1): 0.25,
    ("6001", 2): 0.7,
    ("6002", 3): 1.0,
    ("6001", 4): 0.1,
    ("6002", 5): 0.125,
}


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def converted(folder, form, *usage, out="made.parquet", **asked):
    payload = convert(Conversion(form, usage, folder / out, **asked)).payload()
    return payload, read_observations(folder / out).table


def told(folder, form, *usage, **asked):
    with pytest.raises(FaultsError) as caught:
        converted(folder, form, *usage, **asked)
    assert list(folder.glob(".*")) == []
    return str(caught.value).replace(f"{folder}/", "").splitlines()


def by_key(table):
    keys = zip(table["period"], table["job"], table["machine"], table["instance"], strict=True)
    return dict(zip(keys, table[["weight", "value", "present_s", "cpu_s"]].itertuples(index=False), strict=True))


def assert_as_expected(table, wanted):
    made = by_key(table)
    assert set(made) == set(wanted)
    for key, values in wanted.items():
        assert tuple(made[key]) == pytest.approx(values, rel=1e-6), key


@pytest.mark.parametrize(
    ("form", "name", "content"),
    [
        ("google2011", "part-00000-of-00500.csv", google2011(ROWS)),
        ("google2011", "part-00000-of-00500.csv.gz", zipped(google2011(ROWS))),
        ("google2011", "version1.csv", google2011(ROWS, fields=19)),
        ("google2019", "instance_usage-000000000000.json.gz", zipped(google2019_json(ROWS))),
        ("google2019", "exported.csv", google2019_csv(ROWS)),
    ],
    ids=lambda each: each[:30] if isinstance(each, str) and "," not in each else "",
)
def test_observations_are_those_of_exact_arithmetic(tmp_path, form, name, content):
    payload, table = converted(tmp_path, form, written(tmp_path / name, content))
    assert_as_expected(table, expected(ROWS))
    assert payload["rows"] == len(ROWS)
    assert payload["left_out"] == {"no CPI": sum(row.cpi is None for row in ROWS)}
    assert payload["observations"] == len(table)
    assert (payload["first_s"], payload["last_s"]) == (600, 600 + 3 * 3600)
    assert (table["treated"] == 0).all()
    assert (table["shard"] == table["instance"]).all()


@pytest.mark.parametrize("options", [{}, {"row_group_size": 7}])
def test_parquet_with_members_says_the_same(tmp_path, options):
    google2019_parquet(ROWS, tmp_path / "usage.parquet", **options)
    assert_as_expected(converted(tmp_path, "google2019", tmp_path / "usage.parquet")[1], expected(ROWS))


def test_rows_in_another_order_and_in_several_files_give_the_same_bytes(tmp_path):
    whole = written(tmp_path / "whole.csv", google2011(ROWS))
    halves = [written(tmp_path / f"{at}.csv", google2011(ROWS[::-1][at::2])) for at in (0, 1)]
    converted(tmp_path, "google2011", whole, out="a.csv")
    converted(tmp_path, "google2011", *halves, out="b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_small_blocks_give_the_same_bytes_and_the_same_lines(tmp_path, monkeypatch):
    usage = written(tmp_path / "usage.csv", google2011(ROWS))
    converted(tmp_path, "google2011", usage, out="a.csv")
    lines = google2011(ROWS).splitlines()
    lines[100] = lines[100].replace(",4", ",4,9", 1)
    lines.insert(50, "")
    lines[150] = "x" + lines[150]
    broken = written(tmp_path / "broken.csv", "\n".join(lines) + "\n")
    monkeypatch.setattr("analysis.traces.files._BLOCK_BYTES", 700)
    converted(tmp_path, "google2011", usage, out="b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    first, second = told(tmp_path, "google2011", broken)
    assert first == "broken.csv:102:1: row: should have 20 fields, got 21"
    assert second.startswith('broken.csv:151:1: start time: should be a number, got "x')


def test_weights_are_the_requests_where_they_are_known(tmp_path):
    usage = written(tmp_path / "usage.csv", google2011(ROWS))
    events = written(
        tmp_path / "events.csv", task_events({("6001", 0): 0.1} | REQUESTS) + task_events({("9", 9): None})
    )
    _, table = converted(tmp_path, "google2011", usage, requests=(events,), jobs_out=tmp_path / "jobs.csv")
    assert_as_expected(table, expected(ROWS, request=REQUESTS))
    jobs = read_jobs(tmp_path / "jobs.csv").table.set_index("job")
    assert jobs["quota"].to_dict() == pytest.approx({"6001": 1.3, "6002": 1.375})
    assert jobs["instances"].to_dict() == {"6001": 3, "6002": 3}


def test_instances_that_asked_for_nothing_are_set_aside_and_told(tmp_path):
    usage = written(tmp_path / "usage.csv", google2011(ROWS))
    events = written(tmp_path / "events.csv", task_events({key: REQUESTS[key] for key in list(REQUESTS)[1:]}))
    payload, table = converted(tmp_path, "google2011", usage, requests=(events,))
    assert "6001/0" not in set(table["instance"])
    assert payload["set_aside"] == {"of instances that asked for no CPU": 4}


def test_a_container_uses_a_share_of_what_it_asked_for(tmp_path):
    cores = {index: 2.0 + index for index in range(6)}
    samples = every_ten_seconds(ROWS)
    usage, meta = (
        written(tmp_path / name, text)
        for name, text in zip(("container_usage.csv", "container_meta.csv"), alibaba2018(samples, cores), strict=True)
    )
    _, table = converted(tmp_path, "alibaba2018", usage, requests=(meta,))
    in_cores = [replace(row, cpus=row.cpus / 100 * cores[row.index]) for row in samples]
    wanted = expected(in_cores, request={(row.job, row.index): cores[row.index] for row in samples})
    renamed = {
        (period, f"app_{job}", f"m_{machine}", f"c_{instance.rpartition('/')[2]}"): values
        for (period, job, machine, instance), values in wanted.items()
    }
    assert_as_expected(table, renamed)
    assert "shard" not in table


def test_alibaba_needs_its_table_of_containers(tmp_path):
    usage = written(tmp_path / "usage.csv", "c_1,m_1,10,30,30,1.5,,,,,\n")
    problem = "is needed: alibaba2018 says only in container_meta what an instance's job and request are"
    assert told(tmp_path, "alibaba2018", usage) == [f"requests: {problem}"]


def test_what_says_nothing_of_performance_is_counted_by_why(tmp_path):
    good = ROWS[0]
    others = [
        replace(good, cpi=0.0),
        replace(good, cpi=0.05),
        replace(good, cpi=1000.0),
        replace(good, cpus=0.0),
        replace(good, cpus=None),
        replace(good, machine="0"),
        replace(good, machine="-1"),
        replace(good, cpi=math.nan),
    ]
    others = [replace(row, start_s=good.start_s + at, end_s=good.end_s + at) for at, row in enumerate(others, start=1)]
    text = google2019_json([good, *others]) + google2019_json([good], collection_type=1)
    payload, table = converted(tmp_path, "google2019", written(tmp_path / "usage.json", text))
    assert payload["left_out"] == {
        "CPI not within 0.1 and 100": 2,
        "alloc set, whose tasks have rows of their own": 1,
        "no CPI": 2,
        "no CPU time": 2,
        "no machine": 2,
    }
    assert (len(table), payload["rows"]) == (1, 10)
    assert table["value"].item() == pytest.approx(1 / good.cpi, rel=1e-6)
    assert table["present_s"].item() == 300 * 7


def test_invalid_use_and_time_zero_are_not_taken_for_numbers(tmp_path):
    text = "".join(f"c_1,m_1,{time},{use},30,1.5,,,,,\n" for time, use in ((10, 20), (20, -1), (30, 101), (0, 20)))
    usage = written(tmp_path / "usage.csv", text)
    meta = written(tmp_path / "meta.csv", "c_1,m_1,0,app_1,started,400,800,3\n")
    payload, table = converted(tmp_path, "alibaba2018", usage, requests=(meta,))
    assert payload["left_out"] == {"no CPU time": 2, "time 0, which is outside of the trace": 1}
    assert table["cpu_s"].item() == pytest.approx(0.2 * 4 * 10)


MACHINES = "machine,treated,since_s,until_s,clock_hz,platform\n41,1,3600,,2e9,new\n42,1,5000,,3e9,new\n43,0,,,1e9,old\n"


def test_what_is_known_of_machines_goes_into_the_observations(tmp_path):
    usage, known = written(tmp_path / "u.csv", google2011(ROWS)), written(tmp_path / "machines.csv", MACHINES)
    payload, table = converted(tmp_path, "google2011", usage, machines=known)
    assert set(table["machine"]) == {"41", "42", "43"}
    has = table.groupby(["machine", "period"])["treated"].first().to_dict()
    assert {period: has["41", period] for period in (0, 3600, 7200)} == {0: 0, 3600: 1, 7200: 1}
    assert ("42", 3600) not in has
    assert (has["42", 7200], has["43", 3600]) == (1, 0)
    wanted = expected(ROWS)
    clocks = {"41": 2e9, "42": 3e9, "43": 1e9}
    for key, values in by_key(table).items():
        assert values.value == pytest.approx(wanted[key][1] * clocks[key[2]], rel=1e-6)
    assert table.set_index("machine")["mean_frequency_hz"].to_dict() == clocks
    assert dict(zip(table["machine"], table["platform"], strict=True)) == {"41": "new", "42": "new", "43": "old"}
    assert payload["machines_treated"] == 2
    assert payload["set_aside"]["on machines that got or lost the feature within the period"] == 1
    assert payload["set_aside"]["on machines without a clock"] == 15


def test_machines_that_nobody_listed_are_of_an_unknown_platform(tmp_path):
    usage = written(tmp_path / "u.csv", google2011(ROWS))
    known = written(tmp_path / "machines.csv", "machine,platform\n41,new\n99,old\n")
    payload, table = converted(tmp_path, "google2011", usage, machines=known)
    assert set(table["platform"]) == {"new", "unknown"}
    assert payload["doubts"] == {"machines listed that are in no measurement": 1}


def test_measurements_that_overlap_are_doubtful(tmp_path):
    late = [replace(row, start_s=row.start_s + 1, end_s=row.end_s + 1) for row in ROWS]
    again = [written(tmp_path / f"{name}.csv", google2011(of)) for name, of in (("a", ROWS), ("b", late))]
    payload, _ = converted(tmp_path, "google2011", *again)
    assert payload["doubts"]["stays measured for longer than their period"] > 5


def test_rows_that_are_there_twice_count_once_and_are_told(tmp_path):
    usage, again = (written(tmp_path / f"{name}.csv", google2011(ROWS)) for name in "ab")
    whole, _ = converted(tmp_path, "google2011", usage, out="whole.csv")
    twice, _ = converted(tmp_path, "google2011", usage, again, out="twice.csv")
    assert (tmp_path / "twice.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    told_of = "copies of rows of the same instance, machine and time"
    assert (twice["left_out"][told_of], twice["doubts"]) == (len(ROWS), whole["doubts"])
    assert told_of not in whole["left_out"]


def test_rows_of_the_same_time_that_differ_are_summed_and_told(tmp_path):
    other = written(tmp_path / "b.csv", google2011([replace(ROWS[0], cpus=ROWS[0].cpus / 2), ROWS[1]]))
    payload, _ = converted(tmp_path, "google2011", written(tmp_path / "a.csv", google2011(ROWS)), other)
    assert payload["left_out"]["copies of rows of the same instance, machine and time"] == 1
    assert [count for what, count in payload["doubts"].items() if what.startswith("rows that differ from another")] == [
        2
    ]


def test_all_faults_of_all_files_are_told_at_once_with_their_places(tmp_path):
    lines = google2011(ROWS[:9]).splitlines()
    cells = [line.split(",") for line in lines]
    cells[1][0], cells[2][5], cells[3][2] = "soon", "-0.1", ""
    cells[4][0], cells[5][15], cells[6][1] = "1.5", "inf", "7"
    cells[7] = cells[7][:4]
    usage = written(tmp_path / "usage.csv", "\n".join(map(",".join, cells)) + "\n")
    events = written(tmp_path / "events.csv", "0,,6001,0,,0,u,2,9,many,0.1,0.001,0\n")
    known = written(tmp_path / "machines.csv", "machine,treated\n41,yes\n")
    assert told(tmp_path, "google2011", usage, requests=(events,), machines=known) == [
        'events.csv:1:10: CPU request: should be a number, got "many"',
        'machines.csv:2:2: treated: should be 0 or 1, true or false, got "yes"',
        'usage.csv:2:1: start time: should be a number, got "soon"',
        'usage.csv:3:6: CPU rate: should be at least 0, got "-0.1"',
        'usage.csv:4:3: job ID: should not be empty, got ""',
        'usage.csv:5:1: start time: should be a whole number, got "1.5"',
        'usage.csv:6:16: cycles per instruction: should be a finite number, got "inf"',
        "usage.csv:7:2: end time: should be at least the start, got 7",
        "usage.csv:8:1: row: should have 20 fields, got 4",
    ]


def test_many_faults_are_counted(tmp_path):
    text = google2011([replace(row, cpus=-1.0) for row in ROWS])
    *printed, last = told(tmp_path, "google2011", written(tmp_path / "usage.csv", text))
    assert len(printed) == 20
    assert last == f"usage.csv:21:6: and {len(ROWS) - 20} more faults from here on"


@pytest.mark.parametrize(
    ("form", "content", "line"),
    [
        ("google2011", "", "usage:1:1: file: should hold the table task_usage, got an empty file"),
        ("google2011", "1,2,3\n", "usage:1:1: row: should have 19 or 20 fields, as task_usage has, got 3"),
        ("google2019", "1,2,3\n", "usage:1:1: file: should begin with a line of column names, got 1, 2, 3"),
        (
            "google2019",
            "start_time,end_time,collection_id,instance_index,average_usage.cpus,cycles_per_instruction\n",
            "usage:1:1: machine_id: column is missing, got columns start_time, end_time, collection_id, instance_index,"
            " average_usage.cpus, cycles_per_instruction",
        ),
        ("google2019", '{"start_time": 1\n', 'usage:1:1: row: should be one JSON object, got "{\\"start_time\\": 1"'),
        ("google2019", b"PAR1 and no more", "usage:1:1: file: should be a whole Parquet file, got "),
        ("google2011", zipped(google2011(rows(hours=60)))[:-900], "usage:1:1: file: cannot be read from here on, got "),
    ],
)
def test_files_of_another_kind_are_told(tmp_path, form, content, line):
    (only,) = told(tmp_path, form, written(tmp_path / "usage", content))
    assert only.startswith(line)


def test_a_line_of_names_is_taken_where_it_is_there(tmp_path):
    names = [f"unused {at}" for at in range(20)]
    names[:6] = ["start time", "end time", "job ID", "task index", "machine ID", "CPU rate"]
    names[15] = "cycles per instruction"
    text = google2011(ROWS, names=names)
    assert_as_expected(converted(tmp_path, "google2011", written(tmp_path / "u.csv", text))[1], expected(ROWS))


def test_nothing_of_use_is_said_with_the_reasons(tmp_path):
    usage = written(tmp_path / "u.csv", google2011([replace(row, cpi=None) for row in ROWS]))
    assert told(tmp_path, "google2011", usage) == ["u.csv: holds no observation: 216 rows, of them 216 no CPI"]


def test_what_is_asked_is_checked_before_anything_is_read(tmp_path):
    usage = written(tmp_path / "u.csv", google2011(ROWS))
    lines = told(
        tmp_path, "google2011", usage, usage, tmp_path / "no", out="made.txt", jobs_out=tmp_path / "no/jobs.csv"
    )
    assert lines == [
        "jobs_out: no folder no",
        'out: should end in .parquet or .csv, got "made.txt"',
        "no: is not there",
        "u.csv: is given twice",
    ]


def test_an_older_table_stays_until_the_new_one_is_whole(tmp_path):
    usage, broken = written(tmp_path / "u.csv", google2011(ROWS)), written(tmp_path / "b.csv", "1,2\n")
    converted(tmp_path, "google2011", usage)
    before = (tmp_path / "made.parquet").read_bytes()
    told(tmp_path, "google2011", broken)
    assert (tmp_path / "made.parquet").read_bytes() == before


def test_the_command_says_what_was_made_and_the_guards_take_it(tmp_path):
    usage = written(tmp_path / "u.csv", google2011(rows(hours=6, machines=24, jobs=2)))
    known = written(
        tmp_path / "m.csv", "machine,treated,since_s\n" + "".join(f"{at},1,10800\n" for at in range(45, 57))
    )
    out, jobs = tmp_path / "o.csv", tmp_path / "j.csv"
    words = ["convert", "google2011", usage, "--machines", known, "--out", out, "--jobs-out", jobs]
    runner = CliRunner()
    shown = runner.invoke(app, [str(word) for word in words])
    assert shown.exit_code == 0, shown.output
    assert "24 machines, 12 with the feature" in shown.output
    said = json.loads(runner.invoke(app, [*map(str, words), "--json"]).output)
    assert (said["kind"], said["observations"], said["machines_treated"]) == ("convert", len(pd.read_csv(out)), 12)
    judged = runner.invoke(app, ["effect", str(out), "--jobs", str(jobs), "--json"])
    assert judged.exit_code == 0, judged.output
    assert json.loads(judged.output)["machines"] == 12


def test_a_wrong_period_is_refused(tmp_path):
    refused = CliRunner().invoke(app, ["convert", "google2011", str(Path("u.csv")), "--period", "0.5s"])
    assert refused.exit_code == 2
    assert "--period: should be whole seconds, at most 366 days" in refused.output


def test_nothing_that_is_read_is_overwritten_nor_one_table_by_the_other(tmp_path):
    usage, machines = (
        written(tmp_path / "usage.csv", google2011(ROWS)),
        written(tmp_path / "machines.csv", "machine\n1\n"),
    )
    wrong = told(tmp_path, "google2011", usage, out="machines.csv", machines=machines, jobs_out=usage)
    assert wrong == [
        "jobs_out: would overwrite a file that is read, got usage.csv",
        "out: would overwrite a file that is read, got machines.csv",
    ]
    assert machines.read_text() == "machine\n1\n"
    (again,) = told(tmp_path, "google2011", usage, out="same.csv", jobs_out=tmp_path / "same.csv")
    assert again == "jobs_out: would overwrite the observations: should be another file than --out, got same.csv"


def test_a_former_table_is_replaced_and_no_other_file(tmp_path):
    usage, mine = written(tmp_path / "u.csv", google2011(ROWS)), written(tmp_path / "mine.csv", "job,quota\na,1\n")
    wrong = told(tmp_path, "google2011", usage, out="mine.csv", jobs_out=mine.with_name("jobs.csv"))
    assert wrong == [
        "out: is there and holds no former table (period, job, machine, weight, value, treated, instance); "
        "give another file, got mine.csv"
    ]
    (wrong,) = told(tmp_path, "google2011", usage, out="made.csv", jobs_out=mine)
    assert wrong.startswith("jobs_out: is there and holds no former table (job, quota, instances)")
    assert mine.read_text() == "job,quota\na,1\n"
    mine.write_text("")
    for out in ("made.csv", "made.parquet", "made.parquet"):
        converted(tmp_path, "google2011", usage, out=out, jobs_out=mine)
        assert len(pd.read_csv(mine)) > 1


def machines_of(tmp_path, text):
    known = written(tmp_path / "machines.csv", text)
    usage = written(tmp_path / "u.csv", google2011(ROWS))
    return converted(tmp_path, "google2011", usage, machines=known)[0]["notes"]


def test_notes_are_of_what_was_done_with_clocks(tmp_path):
    done = "value is instructions per CPU second, which takes different clocks into account"
    assert done in machines_of(tmp_path, "machine,clock_hz\n41,2e9\n")
    (note,) = [note for note in machines_of(tmp_path, "machine\n41\n") if note.startswith("value is")]
    assert note.endswith("give clock_hz of machines if clocks differ")


def test_machines_that_have_the_feature_only_outside_of_the_trace_are_told(tmp_path):
    late = machines_of(tmp_path, "machine,treated,since_s\n41,1,86400000000\n42,0,86400000000\n43,1,600\n")
    assert [note for note in late if "feature only" in note] == [
        "1 machine listed with the feature only after the trace ends: since_s should be in seconds of the trace, "
        "which ends at 11,400 s"
    ]
    early = machines_of(
        tmp_path, "machine,treated,until_s,colour\n41,1,6\n42,1,600,red\n".replace("1,6\n", "1,6,red\n")
    )
    assert [note for note in early if "begins" in note or "not used" in note] == [
        f"{tmp_path}/machines.csv: columns not used: colour",
        "2 machines listed with the feature only before the trace begins: until_s should be in seconds of the trace, "
        "which begins at 600 s",
    ]


def test_clocks_that_no_machine_has_and_misspelt_columns_are_faults(tmp_path):
    usage = written(tmp_path / "u.csv", google2011(ROWS))
    known = written(tmp_path / "machines.csv", "machine,clock_hz\n41,2e9\n42,2.0\n43,2.0\n")
    (fault,) = told(tmp_path, "google2011", usage, machines=known)
    assert fault == "machines.csv:3:2: clock_hz: should be in Hz, from 1e08 to 1e11, got 2 and 1 more"
    known.write_text("machine,clock_mhz\n41,2000\n")
    (fault,) = told(tmp_path, "google2011", usage, machines=known)
    assert fault == "machines.csv:1:2: clock_mhz: unknown column (did you mean clock_hz?)"


def test_an_array_of_json_is_told_as_one(tmp_path):
    rows_of = ",\n".join(google2019_json(ROWS[:3]).splitlines())
    (fault,) = told(tmp_path, "google2019", written(tmp_path / "usage.json", f"[{rows_of}]"))
    assert fault.startswith("usage.json:1:1: file: should be JSON lines, one object in each, got an array")


def test_what_stands_in_place_of_an_object_is_told(tmp_path):
    first, *others = google2019_json(ROWS).splitlines(keepends=True)
    row = json.loads(first)
    for wrong in ("abc", 5):
        row["average_usage"] = wrong
        usage = written(tmp_path / f"{wrong}.json", json.dumps(row) + "\n" + "".join(others))
        (fault,) = told(tmp_path, "google2019", usage)
        assert fault.startswith(f"{wrong}.json:1:")
        assert "in place of an object" in fault


@pytest.mark.parametrize(
    ("name", "content", "there"),
    [
        ("usage.csv", "begin,stop,collection\n1,2,3\n", "columns begin, stop, collection"),
        ("usage.json", '{"begin": 1, "stop": 2}\n{"begin": 2}\n', "members begin, stop"),
    ],
)
def test_columns_of_other_names_are_told_with_those_that_are_missing(tmp_path, name, content, there):
    missing = "average_usage.cpus collection_id cycles_per_instruction end_time instance_index machine_id start_time"
    kind = there.split("s ")[0]
    assert told(tmp_path, "google2019", written(tmp_path / name, content)) == [
        f"{name}:1:1: {each}: {kind} is missing, got {there}" for each in missing.split()
    ]


def test_members_that_may_be_empty_may_be_left_out(tmp_path):
    rows = '{"start_time": 0, "end_time": 300000000, "collection_id": 7, "instance_index": 0}\n'
    with pytest.raises(FaultsError, match="holds no observation: 1 rows, of them 1 no machine"):
        convert(Conversion("google2019", (written(tmp_path / "usage.json", rows),), tmp_path / "made.csv"))


def test_a_fault_of_one_column_hides_none_of_another(tmp_path):
    known = written(tmp_path / "machines.csv", "machine,treated,since_s\n41,2,x\n42,1,-3\n43,3,nan\n")
    assert told(tmp_path, "google2011", written(tmp_path / "usage.csv", google2011(ROWS)), machines=known) == [
        'machines.csv:2:2: treated: should be 0 or 1, true or false, got "2"',
        'machines.csv:2:3: since_s: should be a number, got "x"',
        'machines.csv:3:3: since_s: should be at least 0, got "-3"',
        'machines.csv:4:2: treated: should be 0 or 1, true or false, got "3"',
        'machines.csv:4:3: since_s: should be a finite number, got "nan"',
    ]
