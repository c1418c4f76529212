"""CPU profiles of gperftools, built word by word."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.profiling.formats.cpu_profile import is_cpu_profile, read_cpu_profile
from analysis.tables.faults import FileError

MAPS = b"00400000-00500000 r-xp 00000000 08:01 42 /opt/my program\n00600000-00700000 rw-p 00000000 08:01 42 /opt/x\n"
LAYOUTS = [(order, code) for order in "<>" for code in "QI"]


def packed(records, order="<", code="Q", period=10000, maps=MAPS):
    words = [0, 3, 0, period, 0]
    for count, *addresses in [*records, (0, 0)]:
        words += [count, len(addresses), *addresses]
    return struct.pack(f"{order}{len(words)}{code}", *words) + maps


@given(
    st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 2**31), st.integers(1, 2**31))), st.sampled_from(LAYOUTS)
)
def test_counts_sum_to_those_of_the_records(records, layout):
    profile = read_cpu_profile(packed(records, *layout))
    assert profile.total("samples") == sum(count for count, *_ in records)
    assert profile.total("cpu") == 10_000_000 * profile.total("samples")
    assert len(profile.samples) == len({tuple(addresses) for _, *addresses in records})


def test_images_are_those_of_the_executable_map():
    profile = read_cpu_profile(packed([(3, 0x400010, 0x400021), (1, 0x650000)]))
    assert [(frame.address, frame.image) for frame in profile.frames] == [
        (0x400010, "/opt/my program"),
        (0x400020, "/opt/my program"),
        (0x650000, ""),
    ]
    assert profile.main == "/opt/my program"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\0" * 80, "byte 0: header: should be that of a CPU profile of gperftools"),
        (packed([], period=0), "byte 24: sampling period: should be from 1 µs to 1000 s, got 0 µs"),
        (
            packed([(1, 5)], maps=b"")[:-1],
            "byte 80: record: should have 1 more words of 8 bytes, got a file of 87 bytes",
        ),
        (packed([(1, 5)], maps=b"")[:-24], "byte 64: record: should have 2 more words of 8 bytes"),
        (struct.pack("<7Q", 0, 3, 0, 100, 0, 1, 2**60), "byte 48: depth: should be from 1 to 16384, got 1152921504606"),
        (struct.pack("<7Q", 0, 3, 0, 100, 0, 1, 0), "byte 48: depth: should be from 1 to 16384, got 0"),
    ],
)
def test_what_is_no_such_profile_is_refused_with_its_byte(data, said):
    with pytest.raises(FileError) as caught:
        read_cpu_profile(data, "cpu.prof")
    assert str(caught.value).startswith(f"cpu.prof: {said}")


def test_only_the_header_tells():
    assert is_cpu_profile(packed([]))
    assert not is_cpu_profile(packed([])[:39])
