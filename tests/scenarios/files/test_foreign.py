"""Whatever is in a file that a user gives: it is read, or refused with a reason, and is never a fault of ours."""

import io
import json
import struct
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest

from analysis.crossplatform.logs import read as read_service_log
from analysis.effects.observations import read_observations
from analysis.occupancy.logs.reading import read_log
from analysis.profiling.affinity.table import read as read_affinities
from analysis.profiling.formats.foreign import Frame, Measure
from analysis.profiling.formats.pprof_writing import write_pprof
from analysis.profiling.formats.reading import read_foreign
from analysis.profiling.formats.tables import to_tables
from analysis.tables.faults import Faults
from analysis.traces.files import blocks
from analysis.traces.layouts import FORMATS
from analysis.traces.measurements import RowTally, measurements
from models.errors import WscError
from scenarios.effects.observations import experiment, read_about
from scenarios.files.loader import load_each
from scenarios.files.own_platforms import read_platforms
from scenarios.files.traces import read_trace
from scenarios.occupancy.stream import Watched, watch
from scenarios.runs.rundir import open_run
from tests.helpers.foreign_profiles import profile_of
from tests.helpers.mutants import mutants

MUTANTS = 40


def read_tables(path):
    return to_tables([read_foreign(path)])


def lines(count, row, header=b""):
    return header + b"".join(row(number) for number in range(count))


def stacks():
    frames = Frame("f", "a.out"), Frame("main", "a.out")
    return write_pprof(profile_of([Measure("cpu", "nanoseconds")], [(frames, (10,)), (frames[1:], (30,))]))


def trace(name):
    def read(file):
        faults = Faults()
        for _ in measurements(file, FORMATS[name], 3_600_000_000, faults, RowTally()):
            pass
        faults.refuse()

    return read


def streamed(file):
    with file.open("rb") as source:
        watch(source, Watched(servers=1, interval_s=4.0), lambda said: None)


def run_of(file):
    file.replace(file.parent / "manifest.json")
    run = open_run(file.parent)
    for name in ("seed", "counts", "resolved", "scenario"):
        assert run.manifest[name] is not None
    for name in run.listed:
        run.has(name)


def parquet(content):
    file = io.BytesIO()
    pd.read_csv(io.BytesIO(content)).to_parquet(file)
    return file.getvalue()


OBSERVATIONS = lines(
    12,
    lambda i: b"%d,j%d,m%d,2,%.3f,%d,i%d,3600\n" % (i % 2, i // 6, i % 6, 1 + i * 0.01, i % 2, i % 6),
    b"period,job,machine,weight,value,treated,instance,present_s\n",
)
REQUESTS = lines(30, lambda i: b"r%d,%d.5,%d.25,a\n" % (i, i, i + 3), b"id,arrival_s,departure_s,type\n")
MANIFEST = {
    "kind": "fleet",
    "seed": 1,
    "scenario": "small",
    "counts": {"machines": 3},
    "resolved": {"name": "small", "epoch_s": 300.0},
    "tables": {"jobs": {"rows": 2, "digest": "ab", "file_bytes": 3, "file_digest": "cd"}},
    "cells": {"c0001": {"numbers": {"machine": 3}}},
}
FORMS = {
    "observations.csv": (OBSERVATIONS, lambda file: [read_observations(file), read_observations(file, strict=False)]),
    "experiment.csv": (OBSERVATIONS, lambda file: experiment([file])),
    "observations.parquet": (parquet(OBSERVATIONS), read_observations),
    "requests.csv": (REQUESTS, read_log),
    "requests.parquet": (parquet(REQUESTS), read_log),
    "stamps.csv": (lines(30, lambda i: b"2023-10-10T13:55:%02dZ,%d\n" % (i, i), b"start,duration_ms\n"), read_log),
    "access.log": (
        lines(30, lambda i: b'::1 - - [10/Oct/2023:13:55:%02d +0000] "GET / HTTP/1.1" 200 5 "-" "c" 0.%03d\n' % (i, i)),
        read_log,
    ),
    "jobs.swf": (lines(30, lambda i: b"%d %d 5 10 1%s\n" % (i, 3 * i, b" -1" * 13), b"; Computer: x\n"), read_log),
    "trace.csv": (b"arrival_s,demand_s\n0.5,1.5\n1,2\n", read_trace),
    "service.csv": (
        lines(
            12,
            lambda i: b"%d,%d,%d,%d,%d,%d\n" % (60 * i, 10 + i * i % 7, 280322 + 777 * i, 31026 + i, 2072 + i, 250 + i),
            b"start_s,requests_buy,instructions_1e4,l1_misses,l2_misses,response_time_ms\n",
        ),
        read_service_log,
    ),
    "affinities.csv": (
        b"job,platform,load,cpi,capacity\na,p,5,2,10\na,q,5,1,20\nb,p,1,,10\nb,q,1,2,20\n",
        read_affinities,
    ),
    "mine.yaml": (
        b"half: {extends: genoa_9654, cores: 48, tdp_w: 240}\nmine: {extends: half, tdp_w: 200}\n",
        read_platforms,
    ),
    "about.yaml": (b"looks: 14\ninterval: fixed\n", read_about),
    "about.json": (b'{"looks": 14, "interval": "fixed"}', read_about),
    "day.yaml": (
        b"extends: small\nseed: 3\nfleet:\n  machines: 40\nfeature: {name: x, factor: 1.1}\n",
        lambda f: load_each(str(f)),
    ),
    "part-00000-of-00500.csv": (
        lines(20, lambda i: b"%d,%d,3,%d,m,0.2%s1.6,,,,\n" % (600000000 + i, 900000000 + i, i % 3, b"," * 10)),
        trace("google2011"),
    ),
    "usage.json": (
        lines(
            20,
            lambda i: (
                json.dumps(
                    {"start_time": str(6 * 10**8 + i), "end_time": str(9 * 10**8), "collection_id": "3"}
                    | {"instance_index": str(i), "machine_id": "m", "average_usage": {"cpus": 0.2}}
                    | {"cycles_per_instruction": 1.5}
                ).encode()
                + b"\n"
            ),
        ),
        trace("google2019"),
    ),
    "events": (lines(30, lambda i: b"%d,%+d\n" % (i, 1 if i % 2 else -1), b"time,change\n"), streamed),
    "cpu.pb.gz": (stacks(), read_tables),
    "gperftools": (
        struct.pack("<12Q", 0, 3, 0, 10000, 0, 2, 2, 0x401000, 0x402000, 0, 1, 0) + b"4-5 r-xp 0 8:1 1 /a\n",
        read_tables,
    ),
    "perf.txt": (b"web 12 [003] 5.25: 1000 cycles:u: \n\t 4a1 f+0x1 (/opt/a)\n\t 4b2 main (/opt/a)\n\n", read_tables),
    "stacks.folded": (b'main;read 12\nmain;write 3\nmain;"req 200" 7\n', read_tables),
    "run": (json.dumps(MANIFEST).encode(), run_of),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_file_with_faults_at_random_places_is_read_or_refused(tmp_path, name):
    content, read = FORMS[name]
    file = tmp_path / name
    for mutant in mutants(content, MUTANTS, name):
        file.write_bytes(mutant)
        with suppress(WscError, OSError):
            read(file)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("mine.yaml", b"mine: {extends: {a: 1}, cores: 48}\n", "mine.extends: should be a platform"),
        ("about.yaml", b"looks: " + b"[" * 500, "about.yaml:1:1: is nested too deeply"),
        ("about.json", b"[" * 500, "about.json:1:1: is nested too deeply"),
        ("usage.json", b'{"start_time": ' + b"[" * 100_000 + b"\n", "1:1: row: should be one JSON object"),
    ],
)
def test_what_no_reader_expects_is_told(tmp_path, name, content, said):
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(WscError) as caught:
        FORMS[name][1](file)
    assert said in str(caught.value)


def test_half_a_character_in_json_is_no_fault(tmp_path):
    row = b'{"start_time": 6, "end_time": 9, "collection_id": "\\ud800x", "instance_index": 1}'
    (tmp_path / "usage").write_bytes(row)
    (block,) = blocks(Path(tmp_path / "usage"), FORMATS["google2019"].usage, Faults())
    assert block.columns["job"].to_pylist() == ["?x"]


def test_a_carriage_return_in_a_line_of_names_is_told(tmp_path):
    (tmp_path / "usage").write_bytes(b"start time\rend time,job ID\n1,2\n")
    faults = Faults()
    assert not list(blocks(tmp_path / "usage", FORMATS["google2011"].usage, faults))
    assert "should begin with a line of CSV" in str(faults.printed()[0])


def test_stamps_of_the_year_one_are_times(tmp_path):
    stamps = [f"0001-01-01T00:00:{second:02d}Z,1" for second in range(30)]
    (tmp_path / "log").write_text("\n".join(["start,duration_s", *stamps]))
    assert read_log(tmp_path / "log").table["arrival_s"].tolist() == list(range(30))
