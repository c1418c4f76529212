"""`wsc occupancy`: its payload and its text, for good logs and for bad ones."""

import gzip
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis.figures.occupancy.occupancy import draw_occupancy
from analysis.occupancy.curve import curve
from analysis.occupancy.identification import Identified
from analysis.occupancy.law import intervals
from analysis.occupancy.logs.rates import ServersTest
from models.queues.serve import serve
from scenarios.commands.app import app
from scenarios.files import options
from scenarios.files.faults import FaultsError
from scenarios.occupancy.discipline import Discipline
from scenarios.occupancy.occupancy import doubts

CONTRACT = {
    "kind", "requests", "unfinished", "repaired", "servers", "service_time_s", "queueing_time_s", "response_time_s",
    "utilisation", "peak", "identified", "intervals", "capacity",
}  # fmt: skip
ROW = {"servers", "queueing_s_low", "queueing_s_high", "change_s_paper_bound", "replay_s", "replay_low", "replay_high"}
ROW |= {"bounds_say_nothing", "change_says_nothing"}


def wsc(*arguments):
    return CliRunner().invoke(app, ["occupancy", *map(str, arguments)])


def payload(*arguments):
    done = wsc(*arguments, "--json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def trace():
    """Arrivals, demands and departures under processor sharing on two servers."""
    rng = np.random.default_rng(5)
    arrival, demand = rng.exponential(0.9, 1_500).cumsum(), rng.uniform(1.0, 2.0, 1_500)
    return arrival, demand, serve("ps", arrival, demand, 2).departure_s


@pytest.fixture(scope="module")
def log(tmp_path_factory, trace):
    file = tmp_path_factory.mktemp("log") / "requests.csv"
    arrival, _, departure = trace
    pd.DataFrame({"arrival_s": arrival, "departure_s": departure}).to_csv(file, index=False)
    return file


def test_the_payload_has_the_keys_of_the_contract_and_the_sums_of_the_demands(log, trace):
    arrival, demand, departure = trace
    said = payload(log, "--servers", 2, "--to", "1,4", "--policy", "ps")
    assert set(said) >= CONTRACT
    assert all(set(row) >= ROW for row in said["capacity"])
    assert (said["kind"], said["requests"], said["unfinished"], said["repaired"]) == ("occupancy", 1_500, 0, 0)
    assert said["service_time_s"] == pytest.approx(demand.sum())
    assert said["response_time_s"] == pytest.approx((departure - arrival).sum())
    assert said["utilisation"] == pytest.approx(demand.sum() / 2 / (departure.max() - arrival[0]))
    assert sum(row["queueing_time_s"] for row in said["intervals"]) == pytest.approx(said["queueing_time_s"])


def test_the_replay_is_what_other_servers_would_have_done_and_lies_within_the_bounds(log, trace):
    arrival, demand, _ = trace
    for row in payload(log, "--servers", 2, "--to", "1,3", "--policy", "ps")["capacity"]:
        other = serve("ps", arrival, demand, row["servers"]).departure_s
        assert row["replay_s"] == pytest.approx((other - arrival - demand).sum(), rel=1e-6, abs=1e-6)
        assert row["queueing_s_low"] - 1e-6 <= row["replay_s"] <= row["queueing_s_high"] + 1e-6
        assert row["replay_low"] <= row["replay_s"] <= row["replay_high"]


def test_other_servers_have_the_percentiles_that_they_would_have_had(log, trace):
    arrival, demand, _ = trace
    for row in payload(log, "--servers", 2, "--to", "1,3", "--policy", "ps")["capacity"]:
        response_s = np.sort(serve("ps", arrival, demand, row["servers"]).departure_s - arrival)
        by_level = {at["level"]: at["value_s"] for at in row["response_percentiles"]}
        assert by_level[0.99] == pytest.approx(response_s[int(np.ceil(0.99 * 1_500)) - 1], rel=1e-6)
    assert payload(log, "--servers", 2, "--to", "3")["capacity"][0]["response_percentiles"] == []
    words = ["occupancy", str(log), "--servers", "2", "--to", "3", "--policy", "ps"]
    shown = CliRunner().invoke(app, words, env={"COLUMNS": "200"}).stdout
    assert "p99 as ps" in shown
    assert re.search(r"\n3 .* \d+\.?\d* s \(\d", shown)


def test_without_the_network_the_answer_is_that_of_the_servers_own_log(log, trace, tmp_path):
    arrival, _, departure = trace
    client = tmp_path / "client.csv"
    pd.DataFrame({"arrival_s": arrival - 0.25, "departure_s": departure}).to_csv(client, index=False)
    options = ("--servers", 2, "--to", "3", "--policy", "auto", "--slo", "p99=9s", "--load", "1.2")
    own, theirs = payload(log, *options), payload(client, *options, "--network-delay", "250ms")
    assert theirs["notes"] == [
        "times and objectives are those at the servers: the log's response times are 0.25 s longer",
        *own["notes"],
    ]
    for key in ("service_time_s", "queueing_time_s", "response_time_s"):
        assert theirs[key] == pytest.approx(own[key], rel=1e-9)
    assert theirs["policy"] == own["policy"] == "ps"
    for at in (lambda said: said["capacity"][0]["response_percentiles"], lambda said: said["slo"]["needs"]):
        assert [list(row) for row in at(theirs)] == [list(row) for row in at(own)]
    assert theirs["capacity"][0]["replay_s"] == pytest.approx(own["capacity"][0]["replay_s"], rel=1e-6)
    assert theirs["slo"]["needs"][0]["at_load"]["value_s"] == pytest.approx(
        own["slo"]["needs"][0]["at_load"]["value_s"], rel=1e-6
    )


def test_without_a_policy_there_are_bounds_and_no_replay(log):
    said = payload(log, "--servers", 2, "--to", "3")
    assert (said["identified"], said["policy"]) == (None, None)
    assert said["capacity"][0]["replay_s"] is None
    assert said["capacity"][0]["change_s_paper_bound"] < 0


def test_the_policy_is_found_out_on_request(log):
    said = payload(log, "--servers", 2, "--to", "3", "--policy", "auto")
    assert (said["identified"]["policy"], said["identified"]["servers"], said["policy"]) == ("ps", 2, "ps")
    assert said["capacity"][0]["replay_s"] is not None


def test_servers_that_a_policy_was_identified_on_are_not_told_to_be_untested():
    test, tables = ServersTest("not tested", "few requests"), ((), (), pd.DataFrame())
    by_policy = Identified("fcfs", 4, 9.0, "", *tables)
    assert list(doubts(test, Discipline(4, identified=by_policy))) == [
        "nothing but the identified policy, fcfs, speaks for 4 servers: few requests"
    ]
    for other in (None, Identified("fcfs", 3, 9.0, "", *tables), Identified(None, None, 0.0, "none fits", *tables)):
        assert list(doubts(test, Discipline(4, identified=other))) == [
            "the number of servers was not tested: few requests"
        ]


def test_a_policy_that_was_said_is_what_tests_the_servers_of_a_short_log(tmp_path):
    times = pd.DataFrame({"arrival_s": [0.0, 0.5, 1.0], "departure_s": [1.0, 2.0, 3.0]})
    times.to_csv(tmp_path / "log.csv", index=False)
    ended = "too few requests, or only short ones, ended while at most 1 request was present"
    stated, unknown = (wsc(tmp_path / "log.csv", "--servers", 1, *said).stdout for said in (("--policy", "fcfs"), ()))
    on = (
        "note: 0.0% of the departures while a request waited contradict fcfs on 1 server; nothing else tests the number"
    )
    assert f"{on} of servers: {ended}: " in stated
    assert "was not tested" not in stated
    assert f"note: the number of servers was not tested: {ended}: demands are not known without a policy\n" in unknown


def test_a_policy_is_not_tested_by_a_log_in_which_nobody_waits(tmp_path):
    """It was: "0.0% of the departures while a request waited contradict fcfs"; and waiting was "-0 s"."""
    lines = "".join(f"{at}.1,{at + 3}.3\n" for at in range(120)) + "120.1,\n"
    (tmp_path / "log.csv").write_text("arrival_s,departure_s\n" + lines)
    text = wsc(tmp_path / "log.csv", "--servers", 40, "--policy", "fcfs").stdout
    assert "note: no request ever waited, so nothing tests fcfs on 40 servers: " in text
    assert "\nno bracket for waiting at p50 and p90: no request waited, so this log" in text
    assert "contradict" not in text
    assert "-0 s" not in text
    assert "the replay serves 1 request that had not left only what it had got by then" in text


def test_where_the_log_speaks_for_other_servers_there_is_no_replay(log):
    said = payload(log, "--servers", 3, "--to", "4", "--policy", "auto")
    assert any("the log speaks for 2 servers under ps, not 3" in note for note in said["notes"])
    assert said["capacity"][0]["replay_s"] is None


def test_a_refusal_to_name_a_policy_is_a_note(tmp_path):
    (tmp_path / "few.csv").write_text("arrival_s,departure_s\n0,2\n1,3\n")
    said = payload(tmp_path / "few.csv", "--servers", 1, "--policy", "auto")
    assert said["identified"] is None
    assert any(note.startswith("no policy identified: ") for note in said["notes"])


def test_separate_arrivals_and_departures_give_the_same_law_and_no_replay(log, trace, tmp_path):
    arrival, _, departure = trace
    lists = pd.concat([pd.DataFrame({"arrival_s": arrival}), pd.DataFrame({"departure_s": departure})])
    lists.to_csv(tmp_path / "lists.csv", index=False)
    one, other = payload(log, "--servers", 2), payload(tmp_path / "lists.csv", "--servers", 2, "--policy", "ps")
    assert other["queueing_time_s"] == pytest.approx(one["queueing_time_s"])
    assert any(note.startswith("departures belong to no arrivals") for note in other["notes"])


def test_intervals_are_as_long_as_asked_and_alerts_are_those_above_the_ratio(log):
    said = payload(log, "--servers", 2, "--interval", "1min", "--alert", "1.5")
    assert said["interval_s"] == 60.0
    above = [row for row in said["intervals"] if row["ratio"] is not None and row["ratio"] > 1.5]
    assert sum(row["intervals"] for row in said["alerts"]) == len(above) > 0


def test_other_speeds_are_rows_beside_other_numbers(log, trace):
    arrival, demand, _ = trace
    row = payload(log, "--servers", 2, "--speed", "2", "--policy", "ps")["speeds"][0]
    faster = serve("ps", arrival, demand / 2.0, 2).departure_s
    known = {"speed", "queueing_s_low", "queueing_s_high", "bounds_say_nothing", "note"}
    assert set(row) == known | {"replay_s", "replay_low", "replay_high", "response_percentiles"}
    assert row["replay_s"] == pytest.approx((faster - arrival - demand / 2.0).sum(), rel=1e-6)
    assert "speed" in wsc(log, "--servers", 2, "--speed", "0.5,2").stdout


def test_completions_that_show_other_servers_are_a_note(tmp_path):
    rng = np.random.default_rng(4)
    arrival = rng.exponential(0.75, 6_000).cumsum()
    departure = serve("ps", arrival, rng.uniform(0.5, 1.5, 6_000), 2).departure_s
    pd.DataFrame({"arrival_s": arrival, "departure_s": departure}).to_csv(tmp_path / "log.csv", index=False)
    right, wrong = (payload(tmp_path / "log.csv", "--servers", servers) for servers in (2, 3))
    told = "completions show 2 servers, not 3: both the work done and the rates do"
    assert (told in wrong["notes"], right["notes"]) == (True, [])
    assert right["rates"] == wrong["rates"]
    assert right["servers_by_work"]["servers"] == right["servers_by_rates"]["servers"] == 2


def test_an_untested_number_of_servers_and_bounds_that_say_nothing_are_said_in_words(tmp_path):
    rng = np.random.default_rng(3)
    arrival = rng.exponential(0.25, 4_000).cumsum()
    times = pd.DataFrame({"arrival_s": arrival, "departure_s": arrival + rng.uniform(0.5, 1.0, 4_000)})
    times.to_csv(tmp_path / "log.csv", index=False)
    peak = payload(tmp_path / "log.csv", "--servers", 40)["peak"]
    said = payload(tmp_path / "log.csv", "--servers", 40, "--to", f"{peak},80")
    why = f"at most {peak} requests were present, and every number from {peak} on makes the same of the log"
    assert said["servers_test"] == {"verdict": "not tested", "reason": why}
    shown = wsc(tmp_path / "log.csv", "--servers", 40, "--to", f"{peak},80").stdout
    assert f"note: the number of servers was not tested: {why}\n" in shown
    assert [line.split() for line in shown.splitlines() if line.startswith((f"{peak} ", "80 "))] == [
        [str(peak), "says", "nothing", "says", "nothing"],
        ["80", "0.0", "to", "0.0", "0.0"],
    ]


@pytest.fixture(scope="module")
def urgent(tmp_path_factory):
    """A log under preemptive priority on two servers, its classes in column `urgency`; and its demands."""
    rng = np.random.default_rng(8)
    arrival, demand, urgency = rng.exponential(0.9, 2_000).cumsum(), rng.uniform(1, 2, 2_000), rng.integers(0, 2, 2_000)
    departure = serve("priority", arrival, demand, 2, priority=urgency).departure_s
    file = tmp_path_factory.mktemp("urgent") / "log.csv"
    pd.DataFrame({"arrival_s": arrival, "departure_s": departure, "urgency": urgency}).to_csv(file, index=False)
    return file, arrival, demand, urgency


@pytest.mark.parametrize("policy", ["priority", "auto"])
def test_priorities_are_replayed_and_found_out(urgent, policy):
    file, arrival, demand, urgency = urgent
    said = payload(file, "--servers", 2, "--to", "3", "--policy", policy, "--priority", "urgency")
    other = serve("priority", arrival, demand, 3, priority=urgency).departure_s
    assert said["policy"] == "priority"
    assert said["capacity"][0]["replay_s"] == pytest.approx((other - arrival - demand).sum(), rel=1e-6)


def test_priorities_have_to_be_named(urgent):
    done = wsc(urgent[0], "--servers", 2, "--policy", "priority")
    told = "--policy: priority needs the class of each request: --priority COLUMN"
    assert (done.exit_code, done.stderr) == (2, f'{told}, got "priority"\n')


def test_holding_events_back_is_about_standard_input(log):
    assert wsc(log, "--servers", 2, "--reorder", "5").stderr.startswith("--reorder: is about events on standard")


def test_contention_and_coherence_are_in_text_json_and_a_picture_of_their_own(log, tmp_path):
    law = payload(log, "--servers", 2, "--scalability")["scalability"]
    assert law["verdict"] in {"the servers", "either"}
    assert law["law"]["contention"]["low"] <= law["law"]["contention"]["value"] <= law["law"]["contention"]["high"]
    assert {"present", "rate_per_s", "law_per_s", "queue_per_s"} <= set(law["rates"][0])
    shown = wsc(log, "--servers", 2, "--scalability", "--out", tmp_path)
    assert "off a queue of 2 servers" in shown.stdout
    assert (tmp_path / "scalability.png").exists()
    assert wsc("-", "--servers", 2, "--scalability").stderr.startswith("--scalability: is about logs")


def test_a_policy_that_contradicts_the_log_is_not_replayed_and_the_note_says_why(log):
    said = payload(log, "--servers", 2, "--to", "3", "--speed", "2", "--policy", "fcfs")
    assert said["replay_misfits"] > 0.02
    assert said["policy"] is None
    assert [row["replay_s"] for row in (*said["capacity"], *said["speeds"])] == [None, None]
    assert said["capacity"][0]["b3"] is None
    assert said["notes"][0].startswith(f"no replay under fcfs: {said['replay_misfits']:.1%} of the departures")
    assert payload(log, "--servers", 2, "--to", "3", "--policy", "ps")["replay_misfits"] == 0.0


def test_bounds_that_are_no_theorem_have_a_note(log):
    told = {
        policy: payload(log, "--servers", 2, "--to", "3", *(("--policy", policy) if policy else ()))["notes"]
        for policy in (None, "ps")
    }
    assert told == {None: ["no policy known: the bounds assume that more servers never delay completions"], "ps": []}


def test_a_known_policy_for_which_bounds_do_not_hold_has_a_note_with_them(tmp_path):
    """The catalogue's example, which breaks the interval: two servers wait 6 s."""
    (tmp_path / "sjf.csv").write_text("arrival_s,departure_s\n0,1\n0,2\n0,7\n0,11\n1,3\n")
    said = payload(tmp_path / "sjf.csv", "--servers", 1, "--to", "2", "--policy", "sjf")
    assert said["capacity"][0]["replay_s"] > said["capacity"][0]["queueing_s_high"]
    assert any(note.startswith("under sjf the bounds, the change as well as the interval") for note in said["notes"])


def test_busy_servers_and_requests_waiting_have_their_shares_of_time(log, trace):
    arrival, _, departure = trace
    said = payload(log, "--servers", 2)
    at = np.linspace(arrival[0], departure.max(), 40_001)[:-1]
    present = np.searchsorted(arrival, at, "right") - np.searchsorted(np.sort(departure), at, "right")
    for name, values in (("busy", np.minimum(present, 2)), ("waiting", np.maximum(present - 2, 0))):
        assert sum(said[name]) == pytest.approx(1)
        np.testing.assert_allclose(said[name], np.bincount(values, minlength=len(said[name])) / len(at), atol=2e-3)
        p50, p95 = (int(value) for value in np.quantile(values, [0.5, 0.95], method="inverted_cdf"))
        assert said[f"{name}_quantiles"] == {"p50": p50, "p95": p95}
    quantiles = said["waiting_quantiles"]
    text = f"waiting: median {quantiles['p50']}, 95% of the time at most {quantiles['p95']}\n"
    assert text in wsc(log, "--servers", 2).stdout


def test_stamps_that_a_reader_put_between_whole_seconds_are_still_coarse(tmp_path):
    line = '1.2.3.4 - - [14/Nov/2023:22:13:{:02d} +0000] "GET / HTTP/1.1" 200 1 "-" "-" 0.300\n'
    (tmp_path / "access.log").write_text("".join(line.format(20 + i // 8) for i in range(200)))
    assert "coarse stamps" in [found["name"] for found in payload(tmp_path / "access.log", "--servers", 4)["findings"]]


def test_a_number_said_again_is_one_row(log):
    said = payload(log, "--servers", 2, "--to", "3,1,3", "--speed", "2,2.0")
    assert [row["servers"] for row in said["capacity"]] == [3, 1]
    assert [row["speed"] for row in said["speeds"]] == [2.0]


def test_a_log_of_one_instant_has_no_picture_and_no_utilisation(tmp_path):
    (tmp_path / "one.csv").write_text("arrival_s,departure_s\n1,1\n")
    done = wsc(tmp_path / "one.csv", "--servers", 1, "--to", "2", "--policy", "ps", "--out", tmp_path / "figures")
    assert done.exit_code == 0
    assert "utilisation unknown" in done.stdout
    assert "note: the log is one instant: no picture" in done.stdout
    assert list((tmp_path / "figures").iterdir()) == []


def test_a_query_is_a_log(log, tmp_path):
    wanted = json.loads(wsc(log, "--servers", 2, "--to", 3, "--json").stdout)
    query = f"SELECT * FROM '{log}'"
    for more in ((), ("--on-disk",)):
        other = () if more else ("--to", 3)
        answer = json.loads(wsc(query, "--servers", 2, *other, *more, "--json").stdout)
        assert (answer["requests"], answer["queueing_time_s"]) == (wanted["requests"], wanted["queueing_time_s"])
        assert answer["log"].startswith("SELECT * FROM")
    with closing(sqlite3.connect(tmp_path / "requests.db")) as database:
        pd.read_csv(log).to_sql("requests", database, index=False)
    answer = wsc("SELECT * FROM requests", "--database", tmp_path / "requests.db", "--servers", 2, "--json")
    assert json.loads(answer.stdout)["requests"] == wanted["requests"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("SELECT 1 AS size",), "SELECT 1 AS size:1:1: columns: two of --arrival, --departure and --duration"),
        (("SELECT * FROM 'nowhere.csv'",), "SELECT * FROM 'nowhere.csv': query: cannot be run"),
        (("SELECT 1 AS size", "more.csv"), "is one where it is a SELECT"),
        (("SELECT 1 AS arrival_s", "--service", "web"), "--service: is about the folder of a fleet's run"),
        (("SELECT 1 AS arrival_s", "--database", "nowhere.db"), "query: cannot be run, got nowhere.db: No such file"),
        (("more.csv", "--database", "my.db"), "--database: is what a SELECT in place of a log is about"),
    ],
)
def test_what_is_wrong_with_a_query_is_told_of_it(given, told):
    refused = wsc(*given, "--servers", 2)
    assert (refused.exit_code, told in refused.output) == (2, True), refused.output


def test_a_signal_while_a_query_is_copied_leaves_no_copy(tmp_path):
    query = "SELECT range * 1.0 AS arrival_s, range * 1.0 + 1 AS departure_s FROM range(2000000000)"
    code = "from scenarios.commands.entry import main; main()"
    command = [sys.executable, "-c", code, "occupancy", query, "--servers", "2"]
    with subprocess.Popen(
        command, env=os.environ | {"TMPDIR": str(tmp_path)}, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            while process.poll() is None and not any(tmp_path.glob("wsc-*/*")):
                time.sleep(0.02)
            process.terminate()
            _, told = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, told) == (128 + signal.SIGTERM, "interrupted\n")
    assert not any(tmp_path.glob("wsc-*"))


def test_intervals_of_a_query_are_seconds():
    answer = wsc("SELECT INTERVAL 1 HOUR AS arrival_s, INTERVAL 2 HOUR AS departure_s", "--servers", 1, "--json")
    assert json.loads(answer.stdout)["response_time_s"] == 3600.0


def test_a_copy_that_cannot_be_written_is_told_of_the_folder_for_copies(monkeypatch):
    def full(*_rows):
        raise OSError("Error writing bytes to file. Detail: [errno 28] No space left on device")

    monkeypatch.setattr("scenarios.files.copies.store", full)
    refused = wsc("SELECT 1 AS arrival_s", "--servers", 1)
    assert (refused.exit_code, "$TMPDIR: its copy cannot be written: Error writing" in refused.stderr) == (2, True)


def test_a_folder_without_a_run_lacks_its_table(tmp_path):
    done = wsc(tmp_path, "--servers", 1)
    told = "is no run with requests: neither requests.parquet of a queue's run nor stay_requests of a fleet's is there"
    assert (done.exit_code, done.stderr) == (2, f"{tmp_path}: {told}\n")


def test_the_folder_of_a_run_is_a_log(trace, tmp_path):
    arrival, _, departure = trace
    pd.DataFrame({"arrival_s": arrival, "departure_s": departure}).to_parquet(tmp_path / "requests.parquet")
    assert payload(tmp_path, "--servers", 2)["requests"] == 1_500


def test_the_text_says_totals_capacity_intervals_findings_and_files(log, tmp_path):
    lost = log.read_text().splitlines()
    lost[50] = lost[50].partition(",")[0] + ","
    (tmp_path / "lost.csv").write_text("\n".join(lost))
    options = ("--to", "1,4", "--policy", "ps", "--alert", "99", "--out", tmp_path / "figures")
    done = wsc(tmp_path / "lost.csv", "--servers", 2, *options)
    assert done.exit_code == 0
    for said in (
        "1,500 requests on 2 servers",
        "as ps, s",
        "worst intervals",
        "found: lost departures (1 request)",
        "no interval",
    ):
        assert said in done.stdout
    assert sorted(file.name for file in (tmp_path / "figures").iterdir()) == [
        "occupancy.pdf",
        "occupancy.png",
        "occupancy.svg",
    ]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "log: is empty"),
        ("arrival_s,departure_s\n", "should hold at least one row"),
        ("arrival_s,departure_s\n1,nan\n", "departure_s: should hold at least one time"),
        ("arrival_s,departure_s\n1,inf\n", "should be a finite number"),
        ("arrival_s,departure_s\n1,two\n", '2:2: departure_s: should be a number, got "two"'),
        ("start,duration\n1,-1\n", '2:2: duration: should be at least 0, got "-1"'),
        ("from,till\n1,2\n", "two of --arrival, --departure and --duration should be given"),
        (gzip.compress(bytes(range(256)) * 50, mtime=0)[:-9], "log:"),
        (bytes(range(256)) * 50, "log:"),
    ],
)
def test_bad_files_end_with_status_2_and_their_place(tmp_path, content, told):
    file = tmp_path / "log"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    done = wsc(file, "--servers", 1)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(str(file))
    assert told in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--servers", "0"), "--servers: should be a whole number of at least 1"),
        (("--servers", "2", "--to", "1,x"), "--to: should be a whole number of at least 1"),
        (
            ("--servers", "2", "--interval", "soon"),
            "--interval: should be a time above 0, such as 1d, 12h, 5min, 60s or 200ms",
        ),
        (("--servers", "2", "--speed", "2,fast"), "--speed: should be a number greater than 0"),
        (("--servers", "2", "--priority", "urgency"), "urgency: column is missing"),
        (
            ("--servers", "2", "--network-delay", "1.5s"),
            "--network-delay: should be at most 1.",
        ),
        (
            ("--servers", "2", "--network-delay", "1ms", "--on-disk"),
            "--network-delay: needs the whole log in memory: leave --on-disk away, got 0.001",
        ),
        (("--servers", "2", "--network-delay", "-1"), "--network-delay: should be a time above 0"),
        (("--servers", "2", "--alert", "-1"), "--alert: should be a number greater than 0"),
        (("--servers", "2", "--arrival", "came"), "came: column is missing"),
        (("--servers", "2", "--unit", "ms"), "arrival_s: should be in ms, as --unit says, got a name in s"),
        (("--servers", "2", "--policy", "random", "--to", "3"), "--policy: cannot be replayed on 2 servers"),
        (("--servers", "2", "--interval", "1e-300"), "--interval: should be at least"),
        (("--servers", "9" * 20), "--servers: should be at most 4096"),
        (("--servers", "9" * 5000), "--servers: should be at most 4096"),
        (("--servers", "2", "--to", "1,4097"), '--to: should be at most 4096, got "4097"'),
        (("--servers", "2", "--policy", "rr", "--quantum", "0.01us"), "--quantum: should be at least"),
        (
            ("--servers", "2", "--policy", "rr", "--quantum", "1ms", "--speed", "1e-9"),
            "--quantum: should be at least",
        ),
    ],
)
def test_wrong_options_end_with_status_2_and_a_plain_line(log, arguments, told):
    done = wsc(log, *arguments)
    assert done.exit_code == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_is_not_there_is_told(tmp_path):
    done = wsc(tmp_path / "nothing.csv", "--servers", 1)
    assert (done.exit_code, done.stderr) == (
        2,
        f"{tmp_path}/nothing.csv: cannot be read, got No such file or directory\n",
    )


def test_one_request_is_a_log(tmp_path):
    (tmp_path / "one.csv").write_text("arrival_s,departure_s\n3,4\n")
    said = payload(tmp_path / "one.csv", "--servers", 2, "--to", "1,3", "--policy", "fcfs")
    assert (said["service_time_s"], said["queueing_time_s"], said["utilisation"]) == (1.0, 0.0, 0.5)


def test_durations_are_written_with_units():
    given = {"60s": 60.0, "5min": 300.0, "200ms": 0.2, "2h": 7200.0, "1d": 86400.0, "0.5": 0.5, " 3 s ": 3.0}
    assert {text: options.duration("--interval", text) for text in given} == pytest.approx(given)
    for text in ("", "0s", "-1s", "nan", "inf", "s"):
        with pytest.raises(FaultsError, match="--interval: should be a time above 0"):
            options.duration("--interval", text)


def test_a_long_curve_is_drawn_by_its_outline():
    arrival = np.arange(5_000.0)
    seen = curve(arrival, arrival + np.where(arrival % 100 == 0, 50.0, 0.5))
    figure = draw_occupancy(seen, 1, intervals(seen, 1, 100.0))
    drawn = figure.axes[0].collections[0].get_paths()[0].vertices
    assert drawn[:, 1].max() == seen.jobs.max()
    assert len(drawn) < 6_000


def test_intervals_without_a_request_are_not_among_the_worst(tmp_path):
    """Two requests a day apart: of 25 hours two have any."""
    (tmp_path / "log.csv").write_text("arrival_s,departure_s\n0,9\n3,12\n86400,86409\n86403,86410\n")
    done = CliRunner().invoke(app, ["occupancy", str(tmp_path / "log.csv"), "--servers", "1", "--interval", "1h"])
    assert done.exit_code == 0, done.output
    worst = done.output.split("worst intervals")[1]
    assert "nan" not in worst
    assert len(re.findall(r" s \+ ", worst)) == 2
