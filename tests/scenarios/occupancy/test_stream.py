"""`wsc occupancy -`: a log as from its file; of events, intervals, alerts and faults as they come, then totals."""

import gzip
import io
import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis.occupancy.curve import curve
from analysis.occupancy.law import intervals
from scenarios.commands.app import app
from scenarios.files.faults import FaultsError
from scenarios.occupancy.standard_input import StandardInput
from scenarios.occupancy.stream import Watched, watch


def wsc(text, *arguments):
    return CliRunner().invoke(app, ["occupancy", "-", "--servers", "2", *arguments], input=text)


class Pipe:
    """Bytes that come in portions; an exception among them is raised there."""

    def __init__(self, *portions):
        self.portions = list(portions)

    def read1(self, _size):
        portion = self.portions.pop(0) if self.portions else b""
        if isinstance(portion, BaseException):
            raise portion
        return portion


def told(source, **watched):
    said = []
    watch(source, Watched(**{"servers": 2, "interval_s": 10.0} | watched), said.append)
    return [line.payload() for line in said]


@pytest.fixture(scope="module")
def trace():
    rng = np.random.default_rng(3)
    arrival = rng.exponential(1.0, 300).cumsum()
    return arrival, arrival + rng.exponential(2.0, 300)


@pytest.fixture(scope="module")
def text(trace):
    arrival, departure = trace
    events = sorted([*((t, "+1") for t in arrival.tolist()), *((t, "-1") for t in departure.tolist())])
    return "".join(f"{time!r},{change}\n" for time, change in events).encode()


def test_what_is_said_is_what_the_law_says_of_the_whole_log(trace, text):
    *parts, total = told(io.BytesIO(text))
    expected = intervals(curve(*trace), 2, 10.0).to_dict("records")
    assert [{"kind": "interval", **row} for row in expected] == parts
    assert total["queueing_time_s"] == pytest.approx(sum(row["queueing_time_s"] for row in expected))
    assert total["service_time_s"] + total["queueing_time_s"] == pytest.approx((trace[1] - trace[0]).sum())
    assert (total["events"], total["present"], total["late"], total["surplus"]) == (600, 0, 0, 0)
    assert total["peak"] == max(row["peak"] for row in expected)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_same_is_said_however_the_bytes_come(text, size):
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert told(Pipe(*pieces)) == told(io.BytesIO(text))


def test_an_interval_is_said_before_the_next_line_comes():
    said = []

    class Asked(Pipe):
        def read1(self, size):
            said.append([line.payload()["kind"] for line in heard])
            return super().read1(size)

    heard = []
    watch(Asked(b"0,+1\n", b"12,-1\n", b"25,0\n"), Watched(servers=1, interval_s=10.0), heard.append)
    assert said == [[], [], ["interval"], ["interval", "interval"]]


def test_an_interval_of_much_queueing_raises_an_alert_right_after_it():
    said = told(io.BytesIO(b"0,+1\n0,+1\n0,+1\n10,-1\n10,-1\n20,-1\n"), servers=1, alert=1.5)
    assert [(each["kind"], each.get("ratio")) for each in said[:3]] == [
        ("interval", 2.0),
        ("alert", 2.0),
        ("interval", 0.0),
    ]
    assert said[-1]["alerts"] == 1


def test_late_events_count_from_then_on_unless_they_are_held_back():
    lines = b"0,+1\n", b"5,+1\n", b"2,-1\n", b"10,-1\n"
    late, ordered = (told(Pipe(*lines), servers=1, reorder=held)[-1] for held in (0, 3))
    assert (late["late"], late["queueing_time_s"]) == (1, 0.0)
    assert (ordered["late"], ordered["service_time_s"]) == (0, 7.0)
    assert told(Pipe(b"".join(lines)), servers=1)[-1] == late


def test_a_departure_of_nobody_is_counted():
    total = told(io.BytesIO(b"0,+1\n1,-1\n2,-1\n"))[-1]
    assert (total["present"], total["surplus"]) == (0, 1)


def test_a_bad_line_is_told_at_once_left_out_and_ends_with_status_2():
    done = wsc("0,+1\nsoon,-1\n4,-1\n", "--interval", "2s")
    assert done.exit_code == 2
    assert [line[:5] for line in done.stdout.splitlines()] == ["0.0 s", "2.0 s", "2 eve"]
    assert done.stdout.endswith("0 present, 1 line left out\n")
    assert done.stderr.splitlines() == [
        'stdin:2:1: time: should be a finite number, got "soon"',
        "stdin: every line should be an event, got 1 left out",
    ]


def test_json_is_one_value_a_line():
    done = wsc("0,+1\n0,+1\n0,+1\n9,-1\n", "--interval", "4s", "--alert", "0.4", "--json")
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.exit_code == 0
    assert [each["kind"] for each in said] == ["interval", "alert", "interval", "alert", "interval", "alert", "total"]
    assert (said[-1]["present"], said[-1]["alerts"]) == (2, 3)


def test_ctrl_c_gives_the_totals():
    said = []
    with pytest.raises(KeyboardInterrupt):
        watch(Pipe(b"0,+1\n3,-1\n", KeyboardInterrupt()), Watched(servers=1), said.append)
    assert said[-1].payload()["kind"] == "total"
    assert said[-1].service_time_s == 3.0


def test_nothing_is_a_fault():
    with pytest.raises(FaultsError, match=r"^stdin: should hold at least one event, got none$"):
        told(io.BytesIO(b"\n\n"))


@pytest.fixture(scope="module")
def piped():
    rows = pd.DataFrame({"arrival_s": [0.0, 1.0, 2.0], "departure_s": [2.0, 3.5, 4.0]})
    parquet, table = io.BytesIO(), rows.to_csv(index=False).encode()
    rows.to_parquet(parquet)
    return {
        "CSV": table,
        "CSV after a blank line": b"\n" + table,
        "gzip": gzip.compress(table),
        "Parquet": parquet.getvalue(),
        "JSON lines": rows.to_json(orient="records", lines=True).encode(),
    }


@pytest.mark.parametrize("form", ["CSV", "CSV after a blank line", "gzip", "Parquet", "JSON lines"])
def test_a_log_on_standard_input_says_what_its_file_says(form, piped, tmp_path):
    (tmp_path / "log").write_bytes(piped[form])
    options = ["--servers", "2", "--to", "1,3", "--json"]
    if form == "JSON lines":
        options += ["--arrival", "arrival_s", "--departure", "departure_s"]
    file, done = (
        CliRunner().invoke(app, ["occupancy", str(name), *options], input=content)
        for name, content in ((tmp_path / "log", None), ("-", piped[form]))
    )
    assert done.exit_code == 0
    assert json.loads(done.stdout) == json.loads(file.stdout) | {"log": "stdin"}


def test_a_copy_of_standard_input_holds_every_byte_and_is_gone_afterwards(piped):
    for size in (1, 7, 5000):
        content = piped["gzip"] + bytes(10_000)
        given = StandardInput(Pipe(*[content[at : at + size] for at in range(0, len(content), size)]))
        with given.file() as file:
            assert (given.events, file.read_bytes()) == (False, content)
        assert not file.parent.exists()


def test_faults_of_a_log_on_standard_input_have_their_places():
    done = wsc("arrival_s,departure_s\n0,2\n1,x\ny,3\n")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        'stdin:3:2: departure_s: should be a number, got "x"',
        'stdin:4:1: arrival_s: should be a number, got "y"',
    ]
    assert wsc("a line\nof text\n").stderr.startswith("stdin:1:1: columns: ")


def test_what_is_about_events_or_one_log_is_refused_with_another():
    log = "arrival_s,departure_s\n0,2\n"
    assert wsc(log, "--reorder", "3").stderr.startswith("--reorder: is about events")
    assert wsc(log, "-").stderr.startswith("LOG:1:1: is one ")


def test_input_without_line_ends_does_not_fill_the_memory():
    with pytest.raises(FaultsError, match="stdin:1:1: line"):
        told(Pipe(*[b"x" * 5000] * 3))
    given = Pipe(*[b"x" * 5000] * 3)
    assert not StandardInput(given).events
    assert len(list(given.portions)) == 2


@pytest.mark.parametrize(
    "given",
    [("--to", "3"), ("--speed", "2"), ("--policy", "ps"), ("--arrival", "a"), ("--priority", "p"), ("--out", "o")],
)
def test_what_needs_a_file_is_refused(given):
    done = wsc("0,+1\n", *given)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"{given[0]}: is about logs, not about events on standard input")


def test_times_since_1970_are_said_by_the_calendar():
    done = wsc("1700000000,+1\n1700000001,-1\n")
    assert done.stdout.startswith("2023-11-14 22:13:20: 50.0% busy, service 1.0 s")
