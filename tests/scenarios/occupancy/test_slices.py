"""Rows, stretches of time, classes and hosts of a log, and objectives, from the command to the answer."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import wsc
from models.queues.serve import serve
from scenarios.commands.app import app
from scenarios.files.faults import FaultsError


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Two classes on two machines of two servers each, first come first served."""
    rng = np.random.default_rng(4)
    parts = []
    for host, rate in (("a", 1.5), ("b", 0.5)):
        arrival = np.cumsum(rng.exponential(1 / rate, int(1_000 * rate)))
        kind = rng.random(len(arrival)) < 0.2
        demand = np.where(kind, 3.0, 0.5) * rng.uniform(0.5, 1.5, len(arrival))
        left = serve("fcfs", arrival, demand, 2).departure_s
        names = {"host": host, "path": np.where(kind, "/search", "/item"), "status": np.where(arrival < 9, 503, 200)}
        parts.append(pd.DataFrame({"arrival_s": arrival, "departure_s": left, **names, "demand": demand}))
    file = tmp_path_factory.mktemp("log") / "log.csv"
    pd.concat(parts).sort_values("arrival_s").to_csv(file, index=False)
    return file


def asked(log, *options, code=0):
    result = CliRunner().invoke(app, ["occupancy", str(log), "--servers", "2", *options, *["--json"] * (code == 0)])
    assert result.exit_code == code, result.output
    return json.loads(result.stdout) if code == 0 else result.output


def test_each_host_is_a_queue_of_its_own(log):
    rows = pd.read_csv(log)
    answer = asked(log, "--hosts", "host")
    assert list(answer["hosts"]) == ["a", "b"]
    assert answer["service_time_s"] == pytest.approx(rows["demand"].sum(), rel=1e-6)
    for name, each in answer["hosts"].items():
        assert each["service_time_s"] == pytest.approx(rows[rows["host"] == name]["demand"].sum(), rel=1e-6)
    merged = asked(log)
    assert abs(merged["service_time_s"] - rows["demand"].sum()) > 0.05 * rows["demand"].sum()


def test_classes_share_what_was_measured(log):
    rows = pd.read_csv(log)
    one = rows[rows["host"] == "a"]
    answer = asked(log, "--where", "host = 'a'", "--by", "path")
    classes = {row["name"]: row for row in answer["classes"]}
    for name, row in classes.items():
        mine = one[one["path"] == name]
        response = mine["departure_s"] - mine["arrival_s"]
        assert (row["requests"], row["response_time_s"]) == (len(mine), pytest.approx(response.sum()))
        assert row["p99_s"] == pytest.approx(np.quantile(response, 0.99, method="inverted_cdf"))
    assert sum(row["queueing_time_s"] for row in classes.values()) == pytest.approx(answer["queueing_time_s"])
    assert sum(row["share"] for row in classes.values()) == pytest.approx(1.0)
    assert any(note.startswith("--where: ") for note in answer["notes"])


@pytest.mark.parametrize("more", [(), ("--policy", "fcfs"), ("--policy", "random")])
def test_percentiles_of_a_class_have_bands_and_a_small_class_says_why_it_has_none(log, more, tmp_path):
    rows = (
        pd.read_csv(log)
        .query("host == 'a'")
        .assign(path=lambda rows: rows["path"].where(rows["arrival_s"] > 9, "/new"))
    )
    rows.to_csv(tmp_path / "log.csv", index=False)
    answer = asked(tmp_path / "log.csv", "--by", "path", *more)
    classes = {row["name"]: row for row in answer["classes"]}
    for name in ("/item", "/search"):
        row, at = classes[name], ("p50", "p99") if name == "/item" else ("p50",)
        assert all(0 < row[f"{level}_low_s"] < row[f"{level}_s"] < row[f"{level}_high_s"] for level in at)
    small = classes["/new"]["requests"]
    assert classes["/new"]["p50_low_s"] is None
    assert (
        f"/new: no bracket for p50 and p99: {small} requests are too few; 80 and 1,000 would give one"
        in answer["notes"]
    )


def test_the_bracket_of_a_class_has_the_spread_of_that_class(tmp_path):
    """With other requests' classes brackets lie around each class's own percentile, but are as wide as theirs."""
    rng = np.random.default_rng(3)
    steady = rng.random(600) < 0.6
    demand = np.where(steady, rng.uniform(0.99, 1.01, 600), rng.lognormal(0.0, 2.0, 600))
    arrival = rng.exponential(1.0, 600).cumsum()
    times = {"arrival_s": arrival, "departure_s": arrival + demand, "path": np.where(steady, "/steady", "/wild")}
    pd.DataFrame(times).to_csv(tmp_path / "log.csv", index=False)
    answer = asked(tmp_path / "log.csv", "--servers", "99", "--by", "path", "--policy", "fcfs")
    ends = {row["name"]: [row[f"p50_{end}"] for end in ("low_s", "s", "high_s")] for row in answer["classes"]}
    assert ends["/steady"] == pytest.approx([1.0] * 3, rel=0.01)
    low, middle, high = ends["/wild"]
    assert low < 0.8 * middle < 1.25 * middle < high


def test_small_classes_of_one_reason_are_one_note(log, tmp_path):
    rows = pd.read_csv(log).query("host == 'a'").head(300)
    names = ["/a", "/b", "/c", "/d", "/e", "/f"]
    rows.assign(path=[names[min(at // 10, 5)] for at in range(300)]).to_csv(tmp_path / "log.csv", index=False)
    notes = [note for note in asked(tmp_path / "log.csv", "--by", "path")["notes"] if "no bracket" in note]
    assert sorted(note.partition(": ")[2] for note in notes) == [
        "no bracket for p50 and p99: the requests of each are too few; 80 and 1,000 would give one",
        "no bracket for p99: fewer than 10 of 250 requests beyond; 1,000 would give one",
    ]
    assert any(" and 2 more: no bracket for p50 and p99" in note for note in notes)


def test_the_servers_of_a_whole_station_did_nothing_for_others(log, tmp_path):
    rows = pd.read_csv(log).rename(columns={"host": "station"})
    rows.to_csv(tmp_path / "log.csv", index=False)
    wheres = ("station = 'a'", "station = 'a' and path = '/item'", "station = 'a' or station = 'b'", "path = '/item'")
    notes = [asked(tmp_path / "log.csv", "--where", where)["notes"][0] for where in wheres]
    assert "1,500 of 2,000 requests; they are all of station a, whose servers" in notes[0]
    assert ["busier than this" in note for note in notes] == [False, True, True, True]


def test_conditions_compare_numbers_and_texts(log):
    rows = pd.read_csv(log)
    assert asked(log, "--where", "status = 503")["requests"] == (rows["status"] == 503).sum()
    assert (
        asked(log, "--where", "status = '503' OR path = '/search'")["requests"]
        == ((rows["status"] == 503) | (rows["path"] == "/search")).sum()
    )
    slow = (rows["departure_s"] - rows["arrival_s"] > 2).sum()
    assert asked(log, "--where", "response_s > 2")["requests"] == slow


def test_a_stretch_of_time_has_the_law_of_that_stretch(log):
    whole = asked(log, "--interval", "100s")
    part = asked(log, "--interval", "100s", "--from", "200", "--until", "500")
    start = whole["start_s"]
    inside = [row for row in whole["intervals"] if 200 <= row["start_s"] - start < 500 - 1e-6]
    assert (part["start_s"], part["end_s"]) == (200.0, 500.0)
    assert part["service_time_s"] == pytest.approx(sum(row["service_time_s"] for row in inside), rel=0.02)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (("--where", "colour = 1"), "--where: should name columns of the log"),
        (("--where", "host ="), "--where: should be a condition such as"),
        (("--where", "host = 'z'"), "--where: is true of no request"),
        (("--by", "colour"), "--by: should be a column of the log"),
        (("--hosts", "host", "--by", "path"), "--by: is about one queue and should not be given beside --hosts"),
        (("--hosts", "host", "--scalability"), "--scalability: is about one queue"),
        (("--from", "2024-01-01"), "--from: should be a number of seconds, as the log has"),
        (("--from", "9e9"), "--from: leaves no request: the log is from "),
        (("--slo", "p99"), "--slo: should be a percentile and a time, such as p99=300ms"),
        (("--hourly",), "--hourly: is about an objective: say --slo, too"),
        (("--load", "1.3"), "--load: is about an objective: say --slo, too"),
    ],
)
def test_what_cannot_be_chosen_is_a_fault(log, options, fault):
    assert fault in asked(log, *options, code=2)


def test_questions_about_one_queue_are_not_left_out_beside_hosts(log, tmp_path):
    """They were: totals of all hosts stood beside no other servers, and no picture was drawn."""
    questions = ("--to", "4", "--speed", "2", "--policy", "fcfs", "--slo", "p99=1s", "--out", str(tmp_path / "out"))
    told = asked(log, "--hosts", "host", *questions, code=2)
    assert [line.split(":")[0] for line in told.splitlines()] == ["--out", "--policy", "--slo", "--speed", "--to"]
    assert not (tmp_path / "out").exists()


def test_the_library_refuses_what_the_command_does(log):
    with pytest.raises(FaultsError, match="to: is about one queue") as told:
        wsc.requests(log, servers=2, hosts="host", to=4, slo="p99=1s")
    assert {fault.field for fault in told.value.faults} == {"to", "slo"}
    with pytest.raises(FaultsError, match="hourly: is about an objective"):
        wsc.requests(log, servers=2, hourly=True)


def test_intervals_are_said_to_be_of_the_host_that_they_are_of(log):
    answer = asked(log, "--hosts", "host")
    busiest = max(answer["hosts"].items(), key=lambda item: item[1]["requests"])[0]
    assert answer["notes"][-1].endswith(f"intervals and rates are those of {busiest}")


def test_an_objective_names_servers_and_load_under_each_policy_that_fits(log):
    options = ("--where", "host = 'a'", "--slo", "p99=6s", "--load", "1.3")
    known = asked(log, *options, "--policy", "fcfs")["slo"]
    (row,) = known["needs"]
    assert row["policy"] == "fcfs"
    assert row["fewest_servers"] >= 2
    assert row["fewest_servers_surely"] >= row["fewest_servers"]
    assert row["largest_load_surely"] < row["largest_load"]
    fits = asked(log, *options)["slo"]
    assert {"fcfs", "ps"} <= {row["policy"] for row in fits["needs"]}
    assert fits["note"].startswith("no policy known: these fit the log: ")
    assert fits["now"] == known["now"]


def test_an_objective_is_answered_by_hour_and_drawn(log, tmp_path):
    options = ("--where", "host = 'a'", "--slo", "p90=6s", "--policy", "fcfs", "--hourly")
    answer = asked(log, *options, "--out", str(tmp_path))["slo"]
    assert answer["clock"] == ""
    (row,) = answer["hours"]
    (whole,) = answer["needs"]
    assert (row["hour"], row["times"], row["requests"]) == ("00", 1, 1_500)
    assert (row["fewest"], row["largest_load"]) == (whole["fewest_servers"], whole["largest_load"])
    assert (tmp_path / "hours.svg").stat().st_size > 1_000
    result = CliRunner().invoke(app, ["occupancy", str(log), "--servers", "2", *options])
    assert "what the objective needs by hour, from the log's own 0" in result.output
    assert "seen once: 1 hour; how days or weeks differ in it is not in the log" in result.output


def test_hours_are_by_the_offset_that_the_stamps_say(tmp_path):
    file = tmp_path / "access.log"
    stamps = pd.date_range("2026-11-27 10:00:05", "2026-11-27 10:20", freq="15s").strftime("%d/%b/%Y:%H:%M:%S")
    lines = (f'::1 - - [{stamp} +0200] "GET / HTTP/1.1" 200 5 "-" "curl" 0.500' for stamp in stamps)
    file.write_text("\n".join(lines))
    options = ["occupancy", str(file), "--servers", "1", "--policy", "fcfs", "--slo", "p50=2s", "--hourly"]
    answer = json.loads(CliRunner().invoke(app, [*options, "--json"]).output)
    assert (answer["slo"]["clock"], [row["hour"] for row in answer["slo"]["hours"]]) == ("UTC+02:00", ["10"])
    assert "times are by the offset that the stamps say, UTC+02:00; --zone says another" in answer["notes"]


def test_all_times_of_an_answer_are_by_one_clock(tmp_path):
    """That of the stamps, or of --zone: in the table of intervals, by hour, and in --from."""
    file = tmp_path / "log.csv"
    stamps = pd.date_range("2026-01-05 09:00:05", "2026-01-05 09:20", freq="15s").strftime("%Y-%m-%dT%H:%M:%S")
    file.write_text("start;latency_ms\n" + "".join(f"{stamp},250+05:00;500\n" for stamp in stamps))
    options = ["--slo", "p50=2s", "--hourly", "--policy", "fcfs", "--from", "2026-01-05T09:10"]

    def told(*more):
        return CliRunner().invoke(app, ["occupancy", str(file), "--servers", "1", *options, *more]).output

    answer, berlin = told(), told("--zone", "Europe/Berlin", "--from", "2026-01-05T05:10")
    for text, name, hour in ((answer, r"UTC\+05:00", "09"), (berlin, "Europe/Berlin", "05")):
        assert "40 requests" in text
        assert re.search(rf"by hour, in {name}\nhour .*\n.*\n{hour} ", text)
        assert re.search(rf"worst intervals, {name} .*\n.*\n2026-01-05 {hour}:10:05 ", text)
    late = told("--from", "2026-01-05T10:00")
    assert "leaves no request: the log is from 2026-01-05 09:00:05 to 2026-01-05 09:19:50 (UTC+05:00)" in late
    assert "zone: should be a time zone such as Europe/Berlin, got Atlantis" in told("--zone", "Atlantis")


def test_percentiles_stand_in_the_answer(log):
    answer = asked(log, "--where", "host = 'a'", "--policy", "fcfs")
    rows = pd.read_csv(log).query("host == 'a'")
    response, waiting = (
        rows["departure_s"] - rows["arrival_s"],
        rows["departure_s"] - rows["arrival_s"] - rows["demand"],
    )
    for name, times in (("response", response), ("waiting", waiting)):
        got = {row["level"]: row["value_s"] for row in answer["percentiles"][name]}
        for level, value in got.items():
            assert value == pytest.approx(np.quantile(times, level, method="inverted_cdf"), abs=1e-6)


def test_a_log_of_which_nothing_else_is_asked_goes_through_twenty_files_at_most(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text("arrival_s,departure_s\n" + "".join(f"{i},{i + 3.5 - i % 3}\n" for i in range(40)))
    command = [sys.executable, "docs/map.py", "--", "occupancy", str(file), "--servers", "2", "--to", "4"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3])
    assert "(status 0)" in answer.stdout
    assert int(re.search(r"files entered: (\d+)", answer.stdout)[1]) <= 20
