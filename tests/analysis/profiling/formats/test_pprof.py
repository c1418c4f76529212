"""pprof's format, against the protocol-buffers runtime with a descriptor of its own."""

import gzip
import random
from contextlib import suppress
from dataclasses import replace
from functools import cache

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

from analysis.profiling.formats.foreign import LARGEST, ForeignProfile, Frame, Measure, Origin, Sample
from analysis.profiling.formats.pprof import read_pprof
from analysis.profiling.formats.pprof_writing import write_pprof
from analysis.tables.faults import FileError
from tests.helpers.foreign_profiles import profile_of
from tests.helpers.mutated_pprof import drawn_pprof, mutated
from tests.helpers.readable_pprof import read_pprof_message_by_message

FIELDS = {
    "Profile": [
        "sample_type:1:ValueType*",
        "sample:2:Sample*",
        "mapping:3:Mapping*",
        "location:4:Location*",
        "function:5:Function*",
        "string_table:6:string*",
        "drop_frames:7:int64",
        "keep_frames:8:int64",
        "time_nanos:9:int64",
        "duration_nanos:10:int64",
        "period_type:11:ValueType",
        "period:12:int64",
        "comment:13:int64*",
        "default_sample_type:14:int64",
        "doc_url:15:int64",
    ],
    "ValueType": ["type:1:int64", "unit:2:int64"],
    "Sample": ["location_id:1:uint64*", "value:2:int64*", "label:3:Label*"],
    "Label": ["key:1:int64", "str:2:int64", "num:3:int64", "num_unit:4:int64"],
    "Mapping": [
        "id:1:uint64",
        "memory_start:2:uint64",
        "memory_limit:3:uint64",
        "file_offset:4:uint64",
        "filename:5:int64",
        "build_id:6:int64",
    ],
    "Location": ["id:1:uint64", "mapping_id:2:uint64", "address:3:uint64", "line:4:Line*", "is_folded:5:bool"],
    "Line": ["function_id:1:uint64", "line:2:int64", "column:3:int64"],
    "Function": ["id:1:uint64", "name:2:int64", "system_name:3:int64", "filename:4:int64", "start_line:5:int64"],
}
TYPES = {"int64": 3, "uint64": 4, "bool": 8, "string": 9}


@cache
def runtime():
    """The class that the runtime makes of the fields above."""
    file = descriptor_pb2.FileDescriptorProto(name="p.proto", package="t", syntax="proto3")
    for message, fields in FIELDS.items():
        declared = file.message_type.add(name=message)
        for name, number, kind in (field.split(":") for field in fields):
            bare = kind.rstrip("*")
            extra = {"type": TYPES[bare]} if bare in TYPES else {"type": 11, "type_name": f".t.{bare}"}
            declared.field.add(name=name, number=int(number), label=3 if kind.endswith("*") else 1, **extra)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Profile"))


def parsed(data):
    return runtime().FromString(gzip.decompress(data))


def small(**changes):
    """A valid profile in the runtime's own classes: main calls f, which inlined g."""
    profile = runtime()(string_table=["", "cpu", "nanoseconds", "f", "g", "main", "a.out", "abc", "f.c", "pid"])
    profile.sample_type.add(type=1, unit=2)
    profile.mapping.add(id=1, filename=6, build_id=7)
    for number, name in ((1, 3), (2, 4), (3, 5)):
        profile.function.add(id=number, name=name, filename=8, start_line=10 * number)
    inlined = profile.location.add(id=7, mapping_id=1, address=4096)
    inlined.line.add(function_id=2, line=21)
    inlined.line.add(function_id=1, line=12)
    profile.location.add(id=9, mapping_id=1).line.add(function_id=3, line=33)
    profile.sample.add(location_id=[7, 9], value=[30]).label.add(key=9, num=12)
    profile.period_type.type, profile.period_type.unit, profile.period = 1, 2, 10
    for name, value in changes.items():
        setattr(profile, name, value)
    return profile


NAMES = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=6)
LINES = st.integers(0, 2**31 - 1)
FRAMES = st.lists(
    st.builds(Frame, NAMES, NAMES, NAMES, NAMES, LINES, LINES, st.integers(0, 2**64 - 1), st.just(-1)).map(
        lambda frame: frame if frame.function else Frame("", frame.image, frame.build_id, address=frame.address)
    ),
    min_size=1,
    max_size=5,
    unique=True,
)


def labelled(names):
    """Return an origin with the labels that say it, and one more."""
    labels = [pair for pair in zip(Origin._fields[:6], names, strict=True) if pair[1]]
    return Origin(*names, labels=tuple(sorted([*labels, ("pod", "web-1")])))


@st.composite
def profiles(draw):
    frames = tuple(draw(FRAMES))
    measures = tuple(
        draw(st.lists(st.tuples(NAMES, NAMES).map(lambda found: Measure(*found)), min_size=1, max_size=3, unique=True))
    )
    origins = tuple(draw(st.lists(st.tuples(*[NAMES] * 6).map(labelled), min_size=1, max_size=2, unique=True)))
    counts = st.tuples(*[st.integers(0, LARGEST // 9) for _ in measures])
    stacks = st.lists(st.integers(0, len(frames) - 1), max_size=6).map(tuple)
    some = [Sample((), (0,) * len(measures), index) for index in range(len(origins))]
    more = draw(
        st.lists(
            st.tuples(stacks, counts, st.integers(0, len(origins) - 1)).map(lambda found: Sample(*found)), max_size=6
        )
    )
    return ForeignProfile(measures, frames, (*some, *more), origins, comments=tuple(draw(st.lists(NAMES, max_size=2))))


@given(profiles())
def test_what_is_written_is_read_again(profile):
    again = read_pprof(write_pprof(profile))
    assert (again.measures, again.frames, again.samples) == (profile.measures, profile.frames, profile.samples)
    assert (again.origins, again.comments) == (profile.origins, profile.comments)


@given(profiles())
def test_the_runtime_reads_what_is_written(profile):
    """Every frame of every sample, through the tables of strings, functions and mappings."""
    theirs = parsed(write_pprof(profile))
    text = theirs.string_table
    functions = {function.id: function for function in theirs.function}
    mappings = {mapping.id: mapping for mapping in theirs.mapping}
    frames = {}
    for location in theirs.location:
        mapping = mappings.get(location.mapping_id)
        image = (text[mapping.filename], text[mapping.build_id]) if mapping else ("", "")
        function = functions[location.line[0].function_id] if location.line else None
        named = (
            (text[function.name], *image, text[function.filename], function.start_line) if function else ("", *image)
        )
        rest = () if function else ("", 0)
        line = location.line[0].line if function else 0
        frames[location.id] = Frame(*named, *rest, line, location.address)
    found = [(tuple(frames[at] for at in sample.location_id), tuple(sample.value)) for sample in theirs.sample]
    assert found == [(tuple(profile.frames[at] for at in s.stack), s.amounts) for s in profile.samples]
    assert [(text[kind.type], text[kind.unit]) for kind in theirs.sample_type] == [m[:2] for m in profile.measures]


def test_what_the_runtime_writes_is_read():
    profile = read_pprof(small(time_nanos=5 * 10**9, duration_nanos=10**9, default_sample_type=1).SerializeToString())
    assert profile.measures == (Measure("cpu", "nanoseconds", 10),)
    names = [(f.function, f.file, f.function_line, f.line) for f in profile.frames]
    assert names == [("g", "f.c", 20, 21), ("f", "f.c", 10, 12), ("main", "f.c", 30, 33)]
    assert {(f.image, f.build_id) for f in profile.frames} == {("a.out", "abc")}
    assert profile.samples == (Sample((0, 1, 2), (30,)),)
    assert (profile.start_s, profile.length_s, profile.default) == (5, 1, "cpu")
    assert profile.origins == (Origin(process="12", labels=(("pid", "12"),)),)


def test_the_same_profile_gives_the_same_bytes():
    profile = profile_of([Measure("cpu")], [((Frame("f"),), (3,))])
    assert write_pprof(profile) == write_pprof(profile)


def test_a_total_that_readers_cannot_hold_is_refused():
    with pytest.raises(ValueError, match="sums to"):
        write_pprof(profile_of([Measure("cpu")], [((Frame("f"),), (LARGEST,)), ((Frame("g"),), (1,))]))


def broken(change):
    profile = small()
    change(profile)
    return profile.SerializeToString()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda p: p.sample[0].location_id.append(8), "sample.location_id: should be a location's id, got 8"),
        (lambda p: p.sample[0].value.append(8), "sample.value: should be 1, one a sample type, got 2"),
        (lambda p: p.sample.add(value=[-(2**63)]), f"sample.value: should be from {-LARGEST} to {LARGEST}, got -92"),
        (lambda p: p.location.add(id=7), "location.id: should be an id of its own, not 0, got 7"),
        (lambda p: p.location.add(id=0), "location.id: should be an id of its own, not 0, got 0"),
        (lambda p: p.location.add(id=1, mapping_id=3), "location.mapping_id: should be a mapping's id, got 3"),
        (lambda p: p.location.add(id=1).line.add(), "location.line.function_id: should be a function's id, got 0"),
        (lambda p: p.function.add(id=4, name=99), "function: should be an index of the 10 strings, got 99"),
        (lambda p: p.sample_type.add(type=-1), "sample_type: should be an index of the 10 strings, got 184467"),
        (lambda p: p.string_table.__setitem__(0, "x"), "string_table: should begin with an empty string, got x"),
        (lambda p: p.ClearField("sample_type"), "sample_type: should be at least one, got none"),
        (lambda p: p.comment.append(11), "comment: should be an index of the 10 strings, got 11"),
        (
            lambda p: p.sample[0].location_id.extend([7] * 9000),
            "sample: should be at most 16384 frames deep, got 18003",
        ),
    ],
)
def test_what_refers_to_nothing_is_refused(change, said):
    with pytest.raises(FileError) as caught:
        read_pprof(broken(change), "cpu.pb")
    assert said in str(caught.value)
    assert str(caught.value).startswith("cpu.pb: ")


def test_a_difference_is_what_there_was_before_and_after():
    """By the runtime: the sum of a difference is that of what was after less that of what was before."""
    profile = runtime()()
    profile.ParseFromString(broken(lambda p: p.sample.add(location_id=[9], value=[-4])))
    ours = read_pprof(profile.SerializeToString())
    assert [(measure.event, measure.unit) for measure in ours.measures] == [
        ("cpu/before", "nanoseconds"), ("cpu/after", "nanoseconds"),
    ]  # fmt: skip
    assert [sample.amounts for sample in ours.samples] == [(0, 30), (4, 0)]
    assert ours.total("cpu/after") - ours.total("cpu/before") == sum(sample.value[0] for sample in profile.sample)
    assert ours.notes == ("cpu: negative values, a difference: read as cpu/before and cpu/after",)


def test_functions_without_ids_are_those_of_the_locations_in_their_order():
    """As profilers of .NET write them; where numbers of both differ it is a fault."""

    def change(profile):
        for at, function in enumerate(profile.function, 1):
            function.id = 0
            if at > len(profile.location):
                profile.location.add(mapping_id=1).line.add(line=1)
        for at, location in enumerate(profile.location, 1):
            location.id, location.line[0].function_id = at, at
            del location.line[1:]
        profile.sample[0].location_id[:] = [2, 3]

    profile = read_pprof(broken(change), "dotnet.pb")
    assert [profile.frames[at].function for at in profile.samples[0].stack] == ["g", "main"]
    assert profile.notes[0] == "functions have no ids: numbered in their order, as profilers of .NET mean it"
    with pytest.raises(FileError, match=r"function\.id: should be an id of its own, not 0, got 0"):
        read_pprof(broken(lambda p: (change(p), p.location.add(id=9))), "dotnet.pb")


def test_all_faults_are_said_at_once_and_many_are_counted():
    def change(profile):
        for _ in range(30):
            profile.sample.add(location_id=[5], value=[-(2**63)])

    with pytest.raises(FileError) as caught:
        read_pprof(broken(change))
    assert len(str(caught.value).splitlines()) == 21
    assert str(caught.value).endswith("11 more faults")


@given(st.integers(0, 400), st.integers(0, 255))
def test_a_changed_byte_is_read_or_refused(at, byte):
    """Whatever a byte becomes, reading ends in a profile or in faults."""
    data = bytearray(small().SerializeToString())
    data[at % len(data)] = byte
    try:
        read_pprof(bytes(data))
    except FileError:
        return


def test_every_cut_is_refused_or_a_shorter_message():
    """A cut within a message names its byte; one between fields may leave a valid profile."""
    data = small().SerializeToString()
    for length in range(1, len(data)):
        with suppress(FileError):
            read_pprof(data[:length])


@pytest.mark.parametrize("cut", [1, 9, 30])
def test_a_gzip_file_that_is_cut_off_is_refused(cut):
    packed = gzip.compress(small().SerializeToString())
    with pytest.raises(FileError, match="should be a whole gzip file"):
        read_pprof(packed[:-cut], "cut.pb.gz")


def test_control_characters_do_not_get_through():
    profile = small()
    profile.string_table[3] = "\x1b[31m"
    assert read_pprof(profile.SerializeToString()).frames[1].function == "\ufffd[31m"


def test_a_line_that_no_file_has_is_unknown():
    profile = small()
    profile.location[1].line[0].line = -1
    assert read_pprof(profile.SerializeToString()).frames[2].line == 0


def outcome(read, data):
    """What a reader answers, to the last frame and note, or every fault in its order."""
    try:
        profile = read(data, "a.pb")
    except FileError as error:
        return str(error), error.faults, error.counted
    return replace(profile, start_s=repr(profile.start_s), samples=tuple(profile.samples), frames=tuple(profile.frames))


@pytest.mark.parametrize("bounds", ["as they are", "close"])
def test_the_compiled_reader_answers_and_refuses_as_its_readable_twin(bounds, monkeypatch):
    """On 700 files each, two in three of them damaged; with close bounds many end at one of these."""
    reads = 0
    for seed in range(700):
        rng = random.Random(f"{bounds}/{seed}")
        if bounds == "close":
            monkeypatch.setattr("analysis.profiling.formats.pprof_samples.MOST_LABEL_VALUES", rng.choice((1, 2)))
            monkeypatch.setattr("analysis.profiling.formats.pprof_samples.MOST_AMOUNTS", rng.choice((9, 99)))
            monkeypatch.setattr("analysis.profiling.formats.foreign.MOST_FRAMES", rng.choice((40, 60, 80, 999)))
            monkeypatch.setattr("analysis.profiling.formats.wire.MOST_VALUES", rng.choice((12, 50, 99, 999)))
            monkeypatch.setattr("analysis.profiling.formats.scan._BLOCK_BYTES", rng.choice((1, 40, 999)))
        data = mutated(rng, drawn_pprof(rng))
        answer = outcome(read_pprof, data)
        assert answer == outcome(read_pprof_message_by_message, data), seed
        reads += isinstance(answer, ForeignProfile)
    assert reads > 100
