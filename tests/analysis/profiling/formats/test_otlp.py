"""OTLP profiles, as opentelemetry-proto 1.45.2 writes them."""

import json

import pytest

from analysis.profiling.formats.foreign import Frame, Measure
from analysis.profiling.formats.otlp import is_otlp, read_otlp, read_otlp_json
from analysis.tables.faults import FileError
from tests.helpers.fuzzed_profiles import CORPUS

WRITTEN = CORPUS["OTLP"]
"""Two profiles of a service `web` on the host `h1`: three samples by their times, one of 4; then 30 + 40 ns."""
JSON = {
    "resourceProfiles": [
        {
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "web"}}]},
            "scopeProfiles": [
                {
                    "profiles": [
                        {
                            "sampleType": {"typeStrindex": 1, "unitStrindex": 2},
                            "timeUnixNano": "1700000000000000000",
                            "samples": [{"stackIndex": 1, "values": ["7"], "attributeIndices": [1, 2]}],
                        }
                    ]
                }
            ],
        }
    ],
    "dictionary": {
        "stringTable": ["", "cpu", "nanoseconds", "f", "pod", "a", "n", "ms"],
        "stackTable": [{}, {"locationIndices": [1]}],
        "locationTable": [{}, {"lines": [{"functionIndex": 1, "line": "9"}]}],
        "functionTable": [{}, {"nameStrindex": 3}],
        "attributeTable": [
            {},
            {"keyStrindex": 4, "value": {"stringValueStrindex": 5}},
            {"keyStrindex": 6, "value": {"intValue": "12"}, "unitStrindex": 7},
        ],
    },
}


def test_what_the_runtime_writes_is_read():
    """Inlined frames, build ids, periods, attributes of resources and samples, samples that have times alone."""
    assert is_otlp(WRITTEN)
    profile = read_otlp(WRITTEN)
    assert profile.measures == (Measure("samples"), Measure("cpu", "nanoseconds", 10))
    assert [profile.total(measure.event) for measure in profile.measures] == [7, 70]
    g, f = (Frame(name, "app", "abc", "f.go", 3, line, 100) for name, line in (("g", 9), ("f", 8)))
    main, bare = Frame("main", "app", "abc", "f.go", 3, 4, 50), Frame("", "app", "abc", address=77)
    stacks = [(tuple(profile.frames[at] for at in sample.stack), sample.amounts) for sample in profile.samples]
    assert stacks == [((g, f, main), (3, 0)), ((bare,), (4, 0)), ((g, f, main), (0, 70))]
    first = profile.origins[0]
    assert (first.application, first.machine, dict(first.labels)["thread.name"]) == ("web", "h1", "w1")
    assert (profile.start_s, profile.length_s) == (1_700_000_000, 5)


def test_addresses_are_places_in_the_files_that_were_mapped():
    """Without names; one in 0x400000 to 0x500000, loaded from byte 0x1000 on, one outside; as 1.45.0 writes them."""
    data = bytes.fromhex(
        "0a11120f120d0a04080110021205080122010512570a000a0f0880808002108080c002188020200312001207080110a3828002120708"
        "0110808080031a0022002a002a0773616d706c65732a05636f756e742a082f6f70742f6170702a046d61696e32003a003a040a020102"
    )
    inside, outside = read_otlp(data).frames
    assert (inside.image, inside.address, inside.file_address) == ("/opt/app", 0x400123, 0x1123)
    assert (outside.image, outside.address, outside.file_address) == ("/opt/app", 0x600000, -1)
    content = json.loads(json.dumps(JSON))
    mapping = {"memoryStart": "4194304", "memoryLimit": "5242880", "fileOffset": "4096"}
    content["dictionary"] |= {"mappingTable": [{}, mapping]}
    content["dictionary"]["locationTable"][1] = {"mappingIndex": 1, "address": "4194595"}
    assert read_otlp_json(content).frames == (Frame("", address=0x400123, file_address=0x1123),)


def test_json_is_read_with_numbers_written_as_texts():
    profile = read_otlp_json(JSON)
    assert profile.total("cpu") == 7
    assert profile.frames == (Frame("f", line=9),)
    assert profile.origins[0].labels == (("n", "12 ms"), ("pod", "a"), ("service.name", "web"))
    assert profile.start_s == 1_700_000_000


@pytest.mark.parametrize(
    ("table", "value", "problem"),
    [
        ("stackTable", [{}], "stackTable: should have an entry 1, got 1 entries"),
        ("stackTable", [], "should have a stackTable, as since opentelemetry-proto 1.8"),
        ("locationTable", [], "locationTable: should have an entry 1, got 0 entries"),
        ("stringTable", ["", "cpu"], "stringTable: should have a text "),
        ("attributeTable", {}, "attributeTable: should be a list"),
    ],
)
def test_references_to_nothing_are_faults(table, value, problem):
    content = json.loads(json.dumps(JSON))
    content["dictionary"][table] = value
    with pytest.raises(FileError) as caught:
        read_otlp_json(content)
    assert problem in str(caught.value)


def test_cut_files_are_refused():
    for end in range(len(WRITTEN)):
        assert not is_otlp(WRITTEN[:end]) or end == len(WRITTEN)
