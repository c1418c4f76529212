"""Profiles of speedscope, Chrome and Firefox."""

import json
import math
import struct
import tracemalloc
from collections import Counter

import pytest

from analysis.profiling.formats import jfr, perf_data, tools
from analysis.profiling.formats import speedscope as module
from analysis.profiling.formats.foreign import Frame
from analysis.profiling.formats.reading import read_foreign
from analysis.tables.faults import FileError


@pytest.fixture
def read(tmp_path):
    def of(content):
        path = tmp_path / "file"
        path.write_text(json.dumps(content))
        return read_foreign(path)

    return of


def stacks(profile):
    sums = Counter()
    for sample in profile.samples:
        sums[";".join(profile.frames[at].function for at in reversed(sample.stack))] += sample.amounts[-1]
    return dict(sums)


def speedscope(*profiles):
    return {"profiles": list(profiles), "shared": {"frames": [{"name": "a"}, {"name": "b", "file": "b.c", "line": 7}]}}


def test_sampled_profiles_of_speedscope_are_samples_and_time(read):
    one = {
        "type": "sampled",
        "name": "t1",
        "unit": "milliseconds",
        "samples": [[0, 1], [0], [0, 1]],
        "weights": [1.5, 2, 1],
    }
    profile = read(speedscope(one, one | {"name": "t2"}))
    assert [(measure.event, profile.total(measure.event)) for measure in profile.measures] == [
        ("samples", 6),
        ("time", 9_000_000),
    ]
    assert stacks(profile) == {"a;b": 5_000_000, "a": 4_000_000}
    assert {origin.labels for origin in profile.origins} == {(("profile", "t1"),), (("profile", "t2"),)}
    assert (profile.frames[0].file, profile.frames[0].line) == ("b.c", 7)


def test_time_in_which_no_stack_is_open_makes_no_fractions(read):
    listed = [{"type": "O", "frame": 0, "at": 1.5}, {"type": "C", "frame": 0, "at": 3.5}]
    for start in (0.0, 0.5):
        profile = read(
            speedscope({"type": "evented", "unit": "none", "startValue": start, "endValue": 5.25, "events": listed})
        )
        assert [measure.unit for measure in profile.measures] == ["count"]
        assert stacks(profile) == {"a": 2}


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_speedscope_is_written_as_json_some_samples_after_others(monkeypatch, count):
    monkeypatch.setattr(module, "_AT_ONCE", 2)
    name = '"samples":["frames":['
    frames = [Frame("main", file="a.c", line=7), Frame(name), Frame(""), Frame("main", file="a.c", line=7, address=9)]
    paths = [[0], [0, 1], [], [2, 1, 3], [1, 1]][:count]
    halves = ((frames[:2], paths[:2], range(min(count, 2))), (frames, paths[2:], range(2, count)))
    parts = [*module.speedscope_parts(name, "bytes", halves)]
    written = json.loads(b"".join(parts))
    own = written["profiles"][0]
    assert b"".join(parts) == json.dumps(written, separators=(",", ":")).encode()
    assert own["samples"] == [[0], [0, 1], [], [2, 1, 0], [1, 1]][:count]
    listed = [{"name": "main", "file": "a.c", "line": 7}, {"name": name}, {"name": "[unknown]"}]
    assert written["shared"]["frames"] == listed[: {0: 0, 1: 1, 2: 2, 5: 3}[count]]
    assert (own["weights"], own["endValue"]) == ([*range(count)], sum(range(count)))
    assert (written["name"], own["name"], own["unit"]) == (name, name, "bytes")


def test_evented_profiles_of_speedscope_count_from_event_to_event(read):
    """a from 0 to 10, b inside from 2 to 5: 3 of a;b, 7 of a."""
    events = [("O", 0, 0), ("O", 1, 2), ("C", 1, 5), ("C", 0, 10)]
    listed = [{"type": kind, "frame": frame, "at": at} for kind, frame, at in events]
    profile = read(speedscope({"type": "evented", "unit": "none", "startValue": 0, "endValue": 10, "events": listed}))
    assert stacks(profile) == {"a": 7, "a;b": 3}
    halves = {"type": "sampled", "unit": "none", "samples": [[0]], "weights": [0.5]}
    assert [measure.unit for measure in read(speedscope(halves)).measures] == ["count", "millionths"]


def test_a_deep_stack_is_built_once_however_often_it_is_seen(read):
    """A small file took 23 GB: 16,000 frames, 100 times each with one of two more; the sums need 32,002 frames."""
    deep = [{"type": "O", "frame": at % 2, "at": 0} for at in range(16_000)]
    leaves = [
        {"type": kind, "frame": at % 2, "at": at + later} for at in range(100) for kind, later in (("O", 0), ("C", 1))
    ]
    tracemalloc.start()
    profile = read(speedscope({"type": "evented", "unit": "none", "events": [*deep, *leaves]}))
    highest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sorted((len(sample.stack), sample.amounts) for sample in profile.samples) == [(16_001, (50,))] * 2
    assert highest < 10e6


def node(number, name, children=(), **more):
    return {
        "id": number,
        "callFrame": {"functionName": name, "url": "a.js", "lineNumber": 3},
        "children": list(children),
    } | more


def test_a_cpu_profile_of_chrome_has_the_time_from_sample_to_sample(read):
    """Samples at 1, 3 and 6 µs of 10: 2 of f, 3 of g, 4 of f."""
    nodes = [node(1, "(root)", [2]), node(2, "main", [3, 4]), node(3, "f"), node(4, "")]
    content = {"nodes": nodes, "startTime": 0, "endTime": 10, "samples": [3, 4, 3], "timeDeltas": [1, 2, 3]}
    profile = read(content)
    assert stacks(profile) == {"main;f": 6000, "main;(anonymous)": 3000}
    assert profile.total("samples") == 3
    assert (profile.frames[0].file, profile.frames[0].function_line) == ("a.js", 4)
    by_parent = [node(1, "(root)"), node(2, "main", parent=1), node(3, "f", parent=2, hitCount=5)]
    assert stacks(read({"nodes": by_parent, "startTime": 0, "endTime": 10})) == {"main;f": 10_000}


def test_a_heap_profile_of_chrome_has_bytes(read):
    head = node(1, "(root)", [node(2, "f", [node(3, "g", selfSize=5)], selfSize=7)], selfSize=0)
    assert stacks(read({"head": head, "samples": []})) == {"f": 7, "f;g": 5}


def test_profiles_of_firefox_are_read_as_the_browser_and_as_its_profiler_write_them(read):
    raw = {
        "name": "GeckoMain",
        "processType": "tab",
        "samples": {"schema": {"stack": 0, "time": 1}, "data": [[1, 0.5], [1, 1.5], [0, 2.5], [None, 3.5]]},
        "stackTable": {"schema": {"prefix": 0, "frame": 1}, "data": [[None, 0], [0, 1]]},
        "frameTable": {"schema": {"location": 0}, "data": [[0], [1]]},
        "stringTable": ["(root)", "f (a.js:3)"],
    }
    meta = {"interval": 1, "startTime": 1_536_100_486_000}
    profile = read({"meta": meta, "threads": [raw], "processes": [{"threads": [raw]}]})
    assert stacks(profile) == {"(root)": 2_000_000, "(root);f": 4_000_000}
    assert profile.total("samples") == 6
    assert profile.origins[0].labels == (("process", "tab"), ("thread", "GeckoMain"))
    saved = {
        "name": "main",
        "samples": {"stack": [1, 0, None], "weight": [3, 1, 1], "length": 3},
        "stackTable": {"prefix": [None, 0], "frame": [0, 1]},
        "frameTable": {"func": [0, 1]},
        "funcTable": {"name": [0, 1]},
        "stringArray": ["root", "f"],
    }
    assert stacks(read({"meta": meta, "threads": [saved]})) == {"root": 1_000_000, "root;f": 3_000_000}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            speedscope({"type": "sampled", "samples": [[9]], "weights": [1]}),
            "samples: should be an index of 2 entries, got 9",
        ),
        (speedscope({"type": "sampled", "samples": [[0]], "weights": []}), "weights: should be 1, one a sample, got 0"),
        (speedscope({"type": "sampled", "samples": [[0]], "weights": [-1]}), "value: should be from 0"),
        (
            speedscope({"type": "sampled", "samples": [[0]], "weights": [10**400]}),
            "weights: should be numbers, got 1000",
        ),
        (
            speedscope({"type": "sampled", "unit": "seconds", "samples": [[0]], "weights": [1e305]}),
            "weights: should be numbers, got 1e+305",
        ),
        (
            speedscope({"type": "evented", "events": [{"type": "O", "frame": 0, "at": 10**400}]}),
            "at: should be a number, got 1000",
        ),
        ({"meta": {"interval": math.nan}, "threads": [{}]}, "interval: should be a number, got nan"),
        (
            {"nodes": [node(1, "f", hitCount=10**400)], "startTime": 0, "endTime": 10},
            "hitCount: should be at most 10000000 in all, got more",
        ),
        (speedscope({"type": "evented", "events": [{"type": "C", "frame": 0, "at": 1}]}), "events: should open (O)"),
        ({"nodes": [node(1, "f", [1])], "startTime": 0, "endTime": 1, "samples": [1], "timeDeltas": [1]}, "callers"),
        (
            {"nodes": [], "startTime": 0, "endTime": 1, "samples": [1], "timeDeltas": [1]},
            "samples: should be ids of nodes",
        ),
        ({"threads": [{}], "meta": {}}, "threads: should have samples, stackTable and frameTable"),
    ],
)
def test_faults_are_named(read, content, problem):
    with pytest.raises(FileError) as caught:
        read(content)
    assert problem in str(caught.value)


def test_perf_data_is_read_through_perf(tmp_path, monkeypatch):
    """A `perf` of the test's own says what a recording holds; without one the message says what to run."""
    (tmp_path / "perf.data").write_bytes(b"PERFILE2" + bytes(96))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileError, match=r"perf script --header -i FILE > FILE\.txt where it was recorded"):
        read_foreign(tmp_path / "perf.data")
    perf = tmp_path / "perf"
    perf.write_text("#!/bin/sh\nprintf 'sh 7 1.5: 9 cycles:\\n\\t4 f (a)\\n\\t5 main (a)\\n'\n")
    perf.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert stacks(read_foreign(tmp_path / "perf.data")) == {"main;f": 9}
    perf.write_text("#!/bin/sh\necho 'no such event' >&2\nexit 1\n")
    with pytest.raises(FileError, match="should be read by perf script, got no such event"):
        perf_data.read_perf_data(b"PERFILE2", "perf.data")
    perf.write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(tools, "_LONGEST_S", 0.2)
    with pytest.raises(FileError, match=r"should be read by perf script in 0\.2 s"):
        perf_data.read_perf_data(b"PERFILE2", "perf.data")


PRINTED = """jdk.ExecutionSample {
  startTime = 02:14:30.972
  sampledThread = "main" (javaThreadId = 1)
  state = "STATE_RUNNABLE"
  stackTrace = [
    Busy.sum(int) line: 2
    Busy.main(String[]) line: 6
  ]
}

jdk.ExecutionSample {
  startTime = 02:14:30.992
  sampledThread = "pool 1" (javaThreadId = 2)
  stackTrace = [
    Handler1388.write(long, String)
    ...
  ]
}

jdk.ExecutionSample {
  stackTrace = null
}
"""
"""What `jfr print` of a JDK 17 says, shortened."""


def chunk(start_ns, length_ns):
    """A chunk of a recording, without events: 68 bytes of head and 40 of what would be events."""
    return struct.pack(">4sHHqqqqqqqI", b"FLR\0", 2, 1, 108, 68, 68, start_ns, length_ns, 0, 10**9, 2) + bytes(40)


def test_recordings_of_the_jvm_are_read_through_jfr(tmp_path, monkeypatch):
    """A `jfr` of the test's own prints three samples; it is given a name that ends in .jfr, as jfr wants."""
    start_ns = 1_795_926_890_000_000_000
    chunks = chunk(start_ns, 4 * 10**9), chunk(start_ns + 4 * 10**9, 25 * 10**8)
    (tmp_path / "recording").write_bytes(b"".join(chunks))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileError, match=r"which is not here: jfrconv -o collapsed FILE FILE\.folded"):
        read_foreign(tmp_path / "recording")
    (tmp_path / "printed").write_text(PRINTED)
    tool = tmp_path / "jfr"
    tool.write_text(
        f"#!/bin/sh\nfor file; do :; done\ncase $file in *.jfr) exec cat {tmp_path}/printed;; esac\nexit 1\n"
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    profile = read_foreign(tmp_path / "recording")
    assert stacks(profile) == {
        "Busy.main(String[]);Busy.sum(int)": 1,
        "Handler1388.write(long, String)": 1,
        "[unknown]": 1,
    }
    assert [frame.line for frame in profile.frames] == [2, 6, 0, 0]
    assert [dict(origin.labels) for origin in profile.origins] == [{"thread": "main"}, {"thread": "pool 1"}, {}]
    assert profile.notes[0].startswith("1 sample with a stack that the JVM cut off")
    assert (profile.start_s, profile.length_s, profile.span) == (1_795_926_890.0, 6.5, False)
    (tmp_path / "recording").write_bytes(chunks[0] + chunk(start_ns + 4 * 10**9, 0))
    unfinished = read_foreign(tmp_path / "recording")
    assert (unfinished.start_s, unfinished.length_s) == (1_795_926_890.0, 0.0)
    (tmp_path / "recording").write_bytes(chunk(0, 0))
    assert math.isnan(read_foreign(tmp_path / "recording").start_s)
    with pytest.raises(FileError, match=r"should be at least one of jdk\.ExecutionSample, got none"):
        jfr.read_jfr_text(b"")
