import gzip
import io

import pytest

from analysis.tables.bytes import DamagedError, content_of, head_of, is_packed, portions, salvaged, stream_of, text_of

TEXT = b"".join(b"%d,%d\n" % (row, row * row) for row in range(30_000))


@pytest.fixture
def file(tmp_path):
    return tmp_path / "data"


@pytest.mark.parametrize("packed", [TEXT, gzip.compress(TEXT), gzip.compress(TEXT[:9]) + gzip.compress(TEXT[9:])])
def test_what_a_file_is_follows_from_its_first_bytes(file, packed):
    file.write_bytes(packed)
    assert is_packed(file) == (packed != TEXT)
    with stream_of(file) as stream:
        assert stream.read() == content_of(file) == TEXT
    assert head_of(file) == TEXT[: 1 << 16]


@pytest.mark.parametrize("cut_off", [True, False])
def test_of_a_damaged_file_there_is_what_comes_before(file, cut_off):
    packed = gzip.compress(TEXT)
    half = len(packed) // 2
    file.write_bytes(packed[:half] if cut_off else packed[:half] + b"\xff" * 40 + packed[half + 40 :])
    with stream_of(file) as stream:
        content, damage = salvaged(stream)
    assert damage is not None
    assert damage.cut_off == cut_off
    assert len(content) > 1000
    assert TEXT.startswith(content[: len(content) // 8])
    with stream_of(file) as stream, pytest.raises(DamagedError, match=r"."):
        stream.read()


@pytest.mark.parametrize("content", [b"", b"\x1f", b"\x1f\x8b", b"PAR1"])
def test_files_of_a_few_bytes_have_a_beginning(file, content):
    file.write_bytes(content)
    assert head_of(file) == (b"" if content.startswith(b"\x1f\x8b") else content)


def test_lines_come_whole_from_any_portions_and_long_ones_are_cut():
    class Slow(io.BytesIO):
        def read1(self, size=-1, /):
            return super().read1(5)

    lines = [line for some in portions(Slow(b"0,+1\n12,-1\n\n3")) for line in some]
    assert lines == [b"0,+1", b"12,-1", b"", b"3"]
    assert [line for some in portions(Slow(b"x" * 20), 8) for line in some] == [b"x" * 10, b"x" * 10, b""]


def test_text_ends_at_a_byte_that_is_not_utf8(file):
    file.write_bytes("é\n".encode() * 100_000)
    with text_of(file) as stream:
        assert stream.read() == file.read_bytes()
    file.write_bytes(b"a\n" + "é".encode()[:1])
    with text_of(file) as stream, pytest.raises(DamagedError, match="byte 0xc3"):
        stream.read()
