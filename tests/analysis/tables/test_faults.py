import pytest

from analysis.tables.faults import PRINTED, Faults, FileError, FileFault, plain


def test_faults_are_told_in_the_order_of_the_file_the_first_twenty_and_how_many_more():
    faults = Faults("a.folded")
    for line in reversed(range(1, 26)):
        faults.tell("count", "should be a whole number", "x" * 99, line=line)
    with pytest.raises(FileError) as caught:
        faults.refuse()
    lines = str(caught.value).splitlines()
    assert len(lines) == PRINTED + 1
    assert lines[0] == "a.folded:1: count: should be a whole number, got " + "x" * 59 + "…"
    assert lines[-1] == "a.folded: 5 more faults"
    assert faults.unprinted() == (5, caught.value.faults[PRINTED])


def test_beyond_a_thousand_faults_are_counted_only():
    faults = Faults()
    for line in range(1, 2001):
        faults.add(FileFault(line, 1, "row", "should have 2 fields", "3"))
    with pytest.raises(FileError) as caught:
        faults.refuse()
    assert (len(caught.value.faults), caught.value.unprinted) == (1000, 1980)
    assert str(caught.value).endswith("\nand 1980 more")


def test_nothing_wrong_is_no_error():
    Faults("a.folded").refuse()


def test_what_was_found_steers_no_terminal():
    assert plain("a\x1b[31mb\u2028\ud800") == "a\ufffd[31mb\ufffd\ufffd"
