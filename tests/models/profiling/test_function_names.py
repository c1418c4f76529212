"""Names: unique, deterministic, and files that hold what belongs together."""

from itertools import groupby

import pytest

from models.profiling.function_names import KNOWN, handlers_of, library_names, own_names


@pytest.mark.parametrize("count", [3, 60, 1000, 5000])
def test_own_names_are_unique_and_those_of_a_file_stand_together(count):
    names, files = own_names("heavyweight-01", count)
    assert len(names) == len(files) == len(set(names)) == count
    assert len(list(groupby(files))) == len(set(files))
    assert names[0] == "main"
    assert all("::Server::" in name for name in names[1 : 1 + handlers_of(count)])


@pytest.mark.parametrize("library", [*KNOWN, "libproto"])
@pytest.mark.parametrize("count", [1, 40, 1000])
def test_library_names_are_unique_and_begin_with_the_known_ones(library, count):
    names, files = library_names(library, count)
    assert len(names) == len(files) == len(set(names)) == count
    known = KNOWN.get(library, ())
    assert tuple(names[: len(known)]) == known[:count]
