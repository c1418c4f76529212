import math

import pytest

from analysis.profiling.query import ALIASES, DIMENSIONS, Query, QueryError, dimension, parse_where, unknown
from analysis.profiling.sums import SQL

HOSTILE = ("'; DROP TABLE samples; --", '" OR 1=1', "../../etc/passwd", "function)", "o.application", "", "\x00")


def test_every_dimension_has_an_expression_and_every_alias_a_dimension():
    assert set(SQL) == set(DIMENSIONS)
    assert set(ALIASES.values()) <= set(DIMENSIONS)
    assert not set(ALIASES) & set(DIMENSIONS)


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_dimension_is_refused_wherever_it_stands(name):
    with pytest.raises(QueryError, match="unknown dimension"):
        dimension(name)
    with pytest.raises(QueryError, match="unknown dimension"):
        Query(by=(name,))
    with pytest.raises(QueryError, match="unknown dimension"):
        Query(where=((name, ("x",)),))
    with pytest.raises(QueryError, match="unknown dimension"):
        parse_where([f"{name.replace('=', '')}=x"])


def test_all_faults_are_told_at_once_and_control_characters_are_not():
    with pytest.raises(QueryError) as caught:
        Query(by=("functoin", "\x1b[31m"), where=(("machine", ()),), since_s=math.nan)
    lines = str(caught.value).splitlines()
    assert len(lines) == 4
    assert "did you mean function?" in lines[0]
    assert "\x1b" not in str(caught.value)


def test_an_alias_and_its_dimension_are_the_same_dimension():
    with pytest.raises(QueryError, match="application is given twice"):
        Query(by=("job", "application"))


def test_an_empty_time_range_is_refused():
    with pytest.raises(QueryError, match="until should be after since"):
        Query(since_s=5.0, until_s=5.0)
    assert Query(since_s=0.0, until_s=1.0).since_s == 0.0


def test_restrictions_keep_equals_signs_commas_and_backslashes_of_values():
    parsed = parse_where([r"function=operator==,f<int\,int>", "job=a", r"file=C:\\x"])
    assert parsed == (("function", ("operator==", "f<int,int>")), ("application", ("a",)), ("file", ("C:\\x",)))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("json::Parse(char const*, int),main", ("json::Parse(char const*, int)", "main")),
        ("map<int, pair<a, b> >::at,f", ("map<int, pair<a, b> >::at", "f")),
        ("operator<,operator->,operator()(int, int),x", ("operator<", "operator->", "operator()(int, int)", "x")),
        ("<T as Fn(A, B) -> C>::call,y", ("<T as Fn(A, B) -> C>::call", "y")),
        (r"a\,b,f(x", ("a,b", "f(x")),
        (r"a\\,f(x,g", ("a\\", "f(x", "g")),
        (r"f\(x,pair<int, int>", ("f(x", "pair<int, int>")),
    ],
)
def test_commas_within_brackets_part_no_values(text, values):
    assert parse_where([f"function={text}"]) == (("function", values),)


def test_a_restriction_without_a_value_is_refused_with_every_other_fault():
    with pytest.raises(QueryError) as caught:
        parse_where(["job", "nothing=3"])
    assert len(str(caught.value).splitlines()) == 2


def test_equal_questions_are_equal_keys():
    assert hash(Query(by=["job"], where=[["job", ["a", "a"]]])) == hash(Query(by=("job",), where=(("job", ("a",)),)))


def test_a_name_far_from_all_lists_some_and_counts_the_rest():
    assert unknown("job", "zzz", [f"job{number}" for number in range(20)]).endswith("and 8 more")
