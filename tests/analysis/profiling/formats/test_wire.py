"""The wire format of protocol buffers, at its edges; `test_profiling_pprof` has the runtime as a judge."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.profiling.formats.wire import Shape, Wire, bytes_field, number_field, packed_field
from analysis.tables.faults import FileError

SHAPE = Shape("part", numbers=frozenset({1}), repeated=frozenset({2}), lengths=frozenset({3}))


@given(st.integers(1, 2**64 - 1), st.lists(st.integers(0, 2**64 - 1)), st.binary(max_size=200))
def test_fields_are_read_as_they_were_written(number, many, text):
    data = number_field(1, number) + packed_field(2, many) + bytes_field(3, text)
    message = Wire(data, "a.pb").message(SHAPE)
    assert message.number(1) == number
    assert message.numbers.get(2, []) == many
    assert [data[begin:end] for begin, end in message.lengths[3]] == [text]


def test_numbers_that_are_not_packed_are_joined_to_those_that_are():
    assert Wire(number_field(2, 7) + packed_field(2, [8, 9]), "a.pb").message(SHAPE).numbers[2] == [7, 8, 9]


def test_fields_that_are_not_known_are_skipped():
    data = (
        number_field(9, 5) + bytes_field(10, b"x") + bytes([11 << 3 | 1]) + bytes(8) + bytes([12 << 3 | 5]) + bytes(4)
    )
    assert Wire(data + number_field(1, 4), "a.pb").message(SHAPE).number(1) == 4


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x08", "byte 1: number: should end within its message"),
        (b"\x08" + b"\xff" * 9, "byte 1: number: should end within its message"),
        (b"\x08" + b"\xff" * 10, "byte 1: number: should fit 64 bits"),
        (b"\x08" + b"\xff" * 9 + b"\x02", "byte 1: number: should fit 64 bits"),
        (b"\x1a\x05ab", "byte 0: part: should end by byte 4, with the message or file that holds it, got one up to"),
        (b"\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "byte 0: part: should end by byte 11"),
        (b"\x0b\x0c", "byte 0: part: should begin with a field of profile.proto, got 0xb"),
        (b"\x00\x00", "byte 0: part: should begin with a field of profile.proto, got 0x0"),
        (b"\x0a\x00", "byte 0: part: field 1 should be of wire type 0, got 2"),
        (b"\x18\x00", "byte 0: part: field 3 should be of wire type 2, got 0"),
        (b"\x0d\x00\x00\x00\x00", "byte 0: part: field 1 should be of wire type 0, got 5"),
        (b"\x59\x00", "byte 0: part: should end by byte 2"),
        (b"\x12\x01\x80", "byte 2: number: should end within its message"),
    ],
)
def test_what_is_cut_off_or_mistyped_is_refused_with_its_byte(data, said):
    with pytest.raises(FileError) as caught:
        Wire(data, "a.pb").message(SHAPE)
    assert str(caught.value).startswith(f"a.pb: {said}")
