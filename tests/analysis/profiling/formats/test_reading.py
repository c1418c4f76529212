"""Files of any format, told by their content, and hostile ones."""

import gzip
import io
import itertools
import json
import marshal
import struct
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.profiling.formats.foreign import Frame, Measure
from analysis.profiling.formats.pprof import read_pprof
from analysis.profiling.formats.pprof_writing import write_pprof
from analysis.profiling.formats.reading import Contents, joined_notes, notes_of, read_foreign, write_profile
from analysis.profiling.formats.tables import to_tables
from analysis.profiling.formats.wire import bytes_field, number_field, packed_field
from analysis.tables.bytes import content_of, unpacked
from analysis.tables.faults import FileError
from models.errors import WscError
from tests.helpers.foreign_profiles import profile_of
from tests.helpers.fuzzed_profiles import CORPUS, imported
from tests.helpers.mutants import json_mutants, mutants

PPROF = write_pprof(profile_of([Measure("samples")], [((Frame("f"), Frame("main")), (7,))]))
FILES = {
    "pprof": PPROF,
    "plain pprof": gzip.decompress(PPROF),
    "folded": b"main;f 3\nmain;g 4\n",
    "folded with blanks": b"\n\nmain thing;operator () 7\r\n",
    "folded with a NUL in a name": b"main;f\0x 3\nmain;g 4\n",
    "folded with a first line over 64 KiB": b"main;" + b"f" * 70_000 + b" 3\nmain;g 4\n",
    "folded with one line over 64 KiB": b";".join(b"frame%d" % number for number in range(16_000)) + b" 7",
    "gzipped folded": gzip.compress(b"main;f 7\n", mtime=0),
    "perf": b"sh 7 5.1: samples:\n\t4a1 f (/bin/a)\n\n" * 7,
    "perf with a NUL in a name": b"sh\0 7 5.1: samples:\n\t4a1 f (/bin/a)\n\n" * 7,
    "gperftools": struct.pack("<11Q", 0, 3, 0, 10000, 0, 7, 1, 0x400010, 0, 1, 0),
}


JSON_KEYS = [
    "id",
    "callFrame",
    "functionName",
    "children",
    "samples",
    "timeDeltas",
    "type",
    "unit",
    "weights",
    "events",
    "frame",
    "at",
    "name",
    "threads",
    "stackTable",
    "frameTable",
    "stringTable",
    "schema",
    "data",
    "stack",
    "prefix",
    "scopeProfiles",
    "profiles",
    "stackIndex",
    "values",
    "attributes",
]


@pytest.fixture
def file(tmp_path):
    def write(data):
        path = tmp_path / "file"
        path.write_bytes(data)
        return path

    return write


@pytest.mark.parametrize("kind", FILES)
def test_the_content_tells_the_format(file, kind):
    path = file(FILES[kind])
    assert read_foreign(path).total("samples") == 7
    assert to_tables([read_foreign(path)])["samples"].query("event == 'samples'")["count"].sum() == 7


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "should hold a profile, got an empty file"),
        (b"a;b +3\n", ":1: count: should be a number up to 9223372036854775807, after a blank, got +3"),
        (b"f(a); " * 20_000, "should be a profile: pprof"),  # took minutes
        (b"hello world\n", "should be a profile: pprof, its older text formats, OTLP, folded stacks, perf script"),
        (bytes(range(256)), "should be a profile of a known format; as pprof's, "),
        (gzip.compress(b"", mtime=0), "should be a profile: "),
        (PPROF[:-9], "should be a whole gzip file"),
        (PPROF[:12], "should be a whole gzip file"),
        (PPROF + b"rest", "should be a whole gzip file"),
        (b"\x1f\x8b", "should be a whole gzip file"),
        (b"PK\x03\x04" + bytes(60), "is packed by zip, which is not read: unzip FILE"),
    ],
)
def test_what_is_no_profile_is_refused_in_one_line(file, data, said):
    path = file(data)
    with pytest.raises(FileError) as caught:
        read_foreign(path)
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{path}:")
    assert "\n" not in str(caught.value)


def perfetto_trace(packets):
    """A trace as `trace_packet.proto` has it: clocks, an identifier, then packets with times, users and sequences."""
    clock = bytes_field(1, number_field(1, 6) + number_field(2, 10**12))
    first = [bytes_field(6, clock) + number_field(10, 1), bytes_field(36, bytes(range(16))) + number_field(3, 9999)]
    rest = [
        number_field(8, 10**12 + number) + bytes_field(66, number_field(1, number)) + number_field(10, 2)
        for number in range(packets)
    ]
    return b"".join(bytes_field(1, packet) for packet in (*first, *rest))


@pytest.mark.parametrize(
    ("data", "converter"),
    [
        (b"\xff\xfem\x00", "is text in UTF-16, which is not read: iconv -f UTF-16 -t UTF-8 FILE > FILE.txt"),
        (b"\x28\xb5\x2f\xfd\x00", "is packed by zstd, which is not read: zstd -d FILE"),
        (b"BZh91AY&SY", "bzip2 -d FILE"),
        (b"go 1.22 trace\x00", "go tool trace -pprof=sync FILE > FILE.pb"),
        (b"Flat profile:\n\n", "is of gprof, which is not read"),
        (b"Nettrace\x14", "dotnet-trace convert --format Speedscope FILE"),
        (b"\x04\x08{\x0f", "stackprof --stackcollapse FILE > FILE.folded"),
        (b"version: 1\ncreator: callgrind-3.19.0\n", "gprof2dot or kcachegrind"),
        (b"version: 1\nevents: Ir\nfn=main\n1 10\n", "gprof2dot or kcachegrind"),
        (marshal.dumps({("a.py", 1, "f"): (1, 1, 0.5, 0.5, {})}), "flameprof --format=log FILE"),
        (b"gmon\x01\x00\x00\x00", "is of gprof, which is not read"),
        (b"v8-version,9,4\n", "node --prof-process --preprocess FILE"),
        (b'[{"ph": "X", "ts": 1}]', "is a trace of events, or other JSON"),
        (b"\x7fELF\x02\x01", "is a program, not a profile, which is not read: --binary FILE"),
        (b"desc: --massif-out-file=m\ncmd: ./a\ntime_unit: i\n", "is of massif, which is not read: ms_print"),
        (b"memray\x00\x0c\x00", "memray flamegraph"),
        (b"\x04\x22\x4d\x18\x40\x40", "is packed by lz4"),
        (b"SQLite format 3\0" + bytes(60), "nsys stats"),
        (
            b"NVIDIA Tegra Profiler Report 2024@2@1@106-242134037904v0.\n\x0bLocal (CLI)\x12",
            "nsys export --type=sqlite",
        ),
        (perfetto_trace(7), "is a trace of Perfetto, which is not read: traceconv profile --perf FILE writes pprof"),
        (perfetto_trace(200)[:-5], "is a trace of Perfetto, which is not read: traceconv profile --perf FILE"),
        (gzip.compress(perfetto_trace(7), mtime=0), "is a trace of Perfetto"),
        (b'<?xml version="1.0"?>\n<trace-query-result>\n', "inferno-collapse-xctrace FILE > FILE.folded"),
        (b'<?xml version="1.0"?>\n<svg version="1.1">', "is a picture, which is not read: the folded stacks"),
        (b"<!DOCTYPE html>\n<html>", "is a page, which is not read"),
        (b"\xef\xbb\xbf<?xml version='1.0'?><profile/>", "is XML, which is not read"),
        (
            b'<?xml version="1.0"?>\n<!-- Flame graph -->\n<!DOCTYPE svg PUBLIC "a">\n<svg version="1.1">',
            "is a picture",
        ),
        (b"<?xml version='1.0'?>" + b"<!-- a -->" * 400 + b"<profile/>", "is XML, which is not read"),
        (b'{"start_time": 1.0, "root_frame": {}}', "pyinstrument -r speedscope -o FILE"),
        (b'{"start_time": 1.0, "frame_records": []}', "pyinstrument --load FILE -r speedscope -o FILE.json"),
        (b'{"traceEvents": []}', "is a trace of events, not a profile"),
        (
            b'{"a": 1, "b": 2}',
            "should be JSON of OTLP, speedscope, Chrome (.cpuprofile, .heapprofile) or Firefox, got an ",
        ),
        (b'{"nodes": [', "should be JSON, got "),
        (b"{" * 9, "should be JSON, got "),
    ],
)
def test_what_is_refused_names_what_converts_it(file, data, converter):
    path = file(data)
    with pytest.raises(FileError) as caught:
        read_foreign(path)
    assert converter in str(caught.value)
    assert "\n" not in str(caught.value)


@given(
    st.recursive(
        st.none() | st.integers(-3, 3) | st.text(max_size=3) | st.floats(allow_nan=True),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(JSON_KEYS), inner, max_size=5),
        max_leaves=20,
    )
)
def test_random_json_is_read_or_refused(tmp_path_factory, value):
    path = tmp_path_factory.getbasetemp() / "json"
    for keys in (
        {"nodes": value, "startTime": 0, "endTime": 9},
        {"head": {"selfSize": 1, "callFrame": {"functionName": "f"}, "children": value}},
        {"profiles": value, "shared": {"frames": [{"name": "f"}]}},
        {"threads": value, "meta": {}},
        {"resourceProfiles": value, "dictionary": {"stringTable": [""]}},
    ):
        path.write_text(json.dumps(keys))
        try:
            read_foreign(path)
        except FileError:
            continue


@given(st.binary(max_size=300))
def test_random_bytes_are_read_or_refused(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "random"
    path.write_bytes(data)
    try:
        read_foreign(path)
    except FileError:
        return


@given(st.lists(st.sampled_from(["main;f 3", "sh 7 5.1: 10 cycles:", "\t4a1 f (/bin/a)", "", "#", "x", ": :", "7"])))
def test_random_lines_are_read_or_refused(tmp_path_factory, lines):
    path = tmp_path_factory.getbasetemp() / "lines"
    path.write_text("\n".join(lines))
    try:
        read_foreign(path)
    except FileError:
        return


def test_a_bomb_is_refused_before_it_unfolds():
    bomb = gzip.compress(bytes(1 << 25))
    with pytest.raises(FileError, match="should unpack to at most 16777216 bytes"):
        unpacked(bomb, "bomb.gz")


def test_many_members_cannot_pass_the_bound_together():
    packed = io.BytesIO()
    for _ in range(100):
        packed.write(gzip.compress(b"main 1\n" * 10))
    assert unpacked(packed.getvalue(), "many.gz").count(b"\n") == 1000
    with pytest.raises(FileError, match="should unpack to at most 5000 bytes"):
        unpacked(packed.getvalue(), "many.gz", 5000)


def test_a_file_without_end_is_refused():
    with pytest.raises(FileError, match="should be at most 1000 bytes"):
        content_of(Path("/dev/zero"), 1000)


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_foreign(tmp_path / "none")


def test_the_faults_of_several_files_are_said_at_once(tmp_path):
    (tmp_path / "a").write_bytes(b"")
    (tmp_path / "c").write_text("main;f 3\nx\n")
    with pytest.raises(ValueError, match="empty file") as caught:
        write_profile([tmp_path / name for name in "ac"], tmp_path)
    assert [line.split(":")[0][-1] for line in str(caught.value).splitlines()] == ["a", "c"]


def test_a_copy_is_left_out_and_a_like_profile_of_another_time_is_not():
    profile = profile_of([Measure("cpu")], [((Frame("f"),), (3,))])
    later, copy = replace(profile, start_s=60.0, name="later"), replace(profile, start_s=60.0, name="copy")
    contents = Contents()
    notes = [contents.note(read) for read in (profile, later, copy)]
    assert notes == ["", "", "copy: left out: holds the very samples of later"]


def test_a_note_of_many_files_is_said_once():
    profile = profile_of([Measure("heap", "bytes")], [((Frame("f"),), (30,))])
    profiles = [replace(profile, name=f"{at}.pb", notes=("no times",)) for at in range(3)]
    amounts = "heap: amounts without a count of samples: each record counts as one"
    notes = [(profile.name, note) for profile in profiles for note in notes_of(profile)]
    assert joined_notes(notes) == ["0.pb and 2 more files: no times", f"0.pb and 2 more files: {amounts}"]


@pytest.mark.parametrize("form", ["pprof", "folded", "perf", "gperftools"])
def test_stacks_beyond_what_memory_holds_are_refused_in_every_format(tmp_path, monkeypatch, form):
    """Three stacks of two frames count as thirty; the third is refused where there is room for 29.

    Folded stacks are arrays from the first line on, and have room for six times as many.
    """
    names = ["f", "g", "h"]
    stacks = [((Frame(name), Frame("main")), (1,)) for name in names]
    words = struct.pack("<5Q", 0, 3, 0, 10_000, 0)
    words += b"".join(struct.pack("<4Q", 1, 2, at, 9) for at in range(3)) + struct.pack("<3Q", 0, 1, 0)
    data = {
        "pprof": write_pprof(profile_of([Measure("samples")], stacks)),
        "folded": b"".join(f"main;{name} 1\n".encode() for name in range(24)),
        "perf": b"".join(f"sh 7 5.1: 10 cycles:\n\t4 {name} (a)\n\t5 main (a)\n\n".encode() for name in names),
        "gperftools": words,
    }
    path = tmp_path / form
    path.write_bytes(data[form])
    folded = form == "folded"
    assert len(read_foreign(path).samples) == (24 if folded else 3)
    monkeypatch.setattr("analysis.profiling.formats.foreign.MOST_FRAMES", 29)
    refused = f"stacks: should be at most {174 if folded else 29} frames in all, each stack counted as 8 more"
    with pytest.raises(FileError, match=refused):
        read_foreign(path)


def test_a_file_of_empty_strings_is_refused_before_it_fills_the_memory(monkeypatch):
    """Two bytes of file were 130 of memory each; so were packed numbers."""
    monkeypatch.setattr("analysis.profiling.formats.wire.MOST_VALUES", 1000)
    for data in (b"\x32\x00" * 1001, packed_field(13, [0] * 20_000)):
        with pytest.raises(FileError, match="should have at most 1000 values in all its fields"):
            read_pprof(data)


@pytest.mark.parametrize("form", CORPUS)
def test_files_with_faults_are_refused_or_their_totals_are_in_the_tables(tmp_path, form):
    path = tmp_path / "file"
    path.write_bytes(CORPUS[form])
    imported(path, tmp_path, opened=True)
    values = json_mutants(CORPUS[form], 12, form) if CORPUS[form].startswith(b"{") else ()
    for mutant in itertools.chain(mutants(CORPUS[form], 12, form), values):
        path.write_bytes(mutant)
        with suppress(WscError):
            imported(path, tmp_path, opened=False)
