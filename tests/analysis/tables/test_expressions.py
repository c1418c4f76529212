import numpy as np
import pandas as pd
import pytest

from analysis.tables.expressions import evaluated, parsed
from models.errors import InputError

COLUMNS = {"a": pd.Series([1.0, None, 4.0]), "b": pd.Series(["x", "y", None]), "my col": pd.Series([2.0, 2.0, 0.0])}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a / 2", [0.5, None, 2.0]),
        ('a * "my col"', [2.0, None, 0.0]),
        ("b = 'x'", [True, False, None]),
        ("b IN ('x', 'z') OR a > 3", [True, None, True]),
        ("CASE WHEN b = 'x' THEN 1 ELSE 0 END", [1, 0, 0]),
        ("coalesce(a, -1)", [1.0, -1.0, 4.0]),
        ("split_part(b || '/tail', '/', 2)", ["tail", "tail", None]),
        ("regexp_matches(b, '^x')", [True, False, None]),
        ("a::VARCHAR", ["1.0", None, "4.0"]),
        ("a -- what follows is a comment", [1.0, None, 4.0]),
    ],
)
def test_an_expression_is_evaluated_in_every_row(text, values):
    expression = parsed(text)
    found = evaluated(expression, {name: COLUMNS[name] for name in expression.columns})
    assert [None if pd.isna(value) else value for value in found] == values


@pytest.mark.parametrize(
    "text",
    [
        *("", "a b", "a, b", "*", "$1", "a AS b", "a LIMIT 1", "a ORDER BY b", "a FROM cells"),
        *("(SELECT 1)", "a) FROM cells; DROP TABLE cells; SELECT (1", "a) UNION SELECT (2", "a IN (SELECT 1)"),
        *("sum(a)", "row_number() OVER ()", "list_transform([1], x -> x + 1)", "columns('a')", "unnest([1])"),
        *("read_text('/etc/passwd')", "getenv('HOME')", "current_setting('threads')", "getvariable('x')"),
        *("a), (SELECT max(a) FROM cells", "a), (sum(a) OVER ()", "a), (random()", "a) WHERE (a > 1", "a) GROUP BY (a"),
        *("random()", "now()", "nextval('s')", "query('SELECT 1')", "pg_sleep(9)", "a.b"),
    ],
)
def test_what_could_do_more_than_compute_with_its_row_is_refused(text):
    with pytest.raises(InputError):
        parsed(text)


def test_no_function_that_is_taken_reads_files_or_the_system():
    with pytest.raises(InputError, match="content"):
        evaluated(parsed("a = content"), {"a": COLUMNS["a"]})


def test_a_name_of_the_table_is_that_column_whatever_is_in_it():
    assert parsed("cpu usage (%)", ["cpu usage (%)"]).columns == ("cpu usage (%)",)
    assert parsed("container.cpu", ["container.cpu"]).is_column


def test_a_name_with_a_dot_needs_quotation_marks_in_an_expression():
    with pytest.raises(InputError, match=r'"container.cpu"'):
        parsed("container.cpu / 2")
    assert parsed('"container.cpu" / 2').columns == ("container.cpu",)


def test_columns_beside_a_text_are_texts():
    expression = parsed("kernel = '6.1' AND cpu / 2 > 1 AND zone || rack <> 'b' AND lower(host) = 'x'")
    assert expression.texts == {"kernel", "zone", "rack"}


def test_types_that_do_not_fit_are_told_with_the_expression():
    with pytest.raises(InputError, match=r"No function matches.*: b / a"):
        evaluated(parsed("b / a"), COLUMNS)


def test_division_by_zero_gives_no_number():
    value = evaluated(parsed('a / "my col"'), {name: COLUMNS[name] for name in ("a", "my col")})
    assert not np.isfinite(value.iloc[2])
