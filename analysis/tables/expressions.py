"""Expressions over the columns of a table, in DuckDB's words: parsed, bound to the columns, and nothing else.

What is written is parsed into a tree first. A tree with anything but columns, constants, operators and functions that
depend on their arguments alone is refused; what is run is written anew from the tree, over a table in memory, by a
connection that may open neither files nor the network.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import duckdb
import pandas as pd
import pyarrow as pa

from models.errors import InputError

SyntaxNode: TypeAlias = Mapping[str, Any]
"""A node of DuckDB's syntax tree, which is JSON."""
_CLASSES = frozenset(
    ("COLUMN_REF", "CONSTANT", "FUNCTION", "COMPARISON", "CONJUNCTION", "OPERATOR", "CASE", "CAST", "BETWEEN", "TYPE")
)
"""Kinds of nodes that a tree may have."""
_MACROS = frozenset(("if", "ifnull", "nullif", "split_part"))
"""Functions that DuckDB writes in words of others; of one row, too."""
_NOT_OF_A_ROW = frozenset(("row", "error", "write_log", "getvariable"))
_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_access": "false",
    "lock_configuration": "true",
    "python_enable_replacements": "false",
}


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression, as it was written and as it is run."""

    text: str
    sql: str
    columns: tuple[str, ...]
    """Names that it takes, in the order of the text."""
    is_column: bool
    """Whether it is one column's name and no more."""
    texts: frozenset[str] = frozenset()
    """Columns that stand beside a text, as in ``kernel = '6.1'``: their cells are texts, whatever they look like."""

    def unknown(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the names that a table with these columns lacks."""
        return tuple(name for name in self.columns if name not in names)


def parsed(text: str, names: Sequence[str] = ()) -> Expression:
    """Parse an expression.

    Parameters
    ----------
    text : such as ``instructions / cpu_time_ms``; a name with blanks or signs stands between double quotation marks
    names : of the table's columns; a text that is one of them is that column, whatever is in it

    Raises
    ------
    InputError
        If it is no expression, or one that could do more than compute with the row's own cells.

    Examples
    --------
    >>> parsed("kernel = '6.6.30'").columns
    ('kernel',)
    >>> parsed("(SELECT 1)")
    Traceback (most recent call last):
    models.errors.InputError: should compute with columns of its row, has a SELECT of its own
    """
    if not text.strip():
        raise InputError('should be an expression, is empty: ""')
    if text.strip() in names:
        return Expression(text, _quoted(text.strip()), (text.strip(),), is_column=True)
    parser = _connection()
    tree = json.loads(_one(parser, "SELECT json_serialize_sql(?)", f"SELECT ({text}\n)"))
    if tree["error"]:
        raise InputError(f"should be a whole expression, {_syntax_problem(tree['error_message'], text)}: {text}")
    node = tree["statements"][0]["node"]
    expressions = node.pop("select_list", ())
    if len(tree["statements"]) != 1 or len(expressions) != 1 or node != _bare():
        raise InputError(f"should be one expression: {text}")
    (expression,) = node["select_list"] = expressions
    columns = tuple(dict.fromkeys(_columns(expression, text)))
    sql = _one(parser, "SELECT json_deserialize_sql(?)", json.dumps(tree)).removeprefix("SELECT ").removesuffix(";")
    is_column = expression["class"] == "COLUMN_REF"
    return Expression(text, sql, columns, is_column, frozenset(_beside_texts(expression)))


def evaluated(expression: Expression, columns: Mapping[str, pd.Series]) -> pd.Series:
    """Return the value of an expression in every row; null where it has none.

    Parameters
    ----------
    columns : of one length, those that the expression takes; a constant takes none and has one row

    Raises
    ------
    InputError
        If the expression does not fit the types of the columns.

    Examples
    --------
    >>> evaluated(parsed("x / 2"), {"x": pd.Series([1.0, 4.0])}).tolist()
    [0.5, 2.0]
    """
    connection = _connection()
    cells = pa.table({name: pa.Array.from_pandas(column) for name, column in columns.items()} or {"row": [0]})
    connection.register("cells", cells)  # a table in memory; files cannot be opened
    try:
        values = connection.sql(f"SELECT {expression.sql} AS value FROM cells").to_arrow_table()
    except duckdb.Error as error:
        raise InputError(f"{_first_line(error)}: {expression.text}") from None
    column: pd.Series = values.column("value").to_pandas()
    return column


def _syntax_problem(message: str, text: str) -> str:
    """Return what DuckDB says of an expression; it sees a parenthesis after the end, which nobody wrote."""
    if not message.endswith('near ")"'):
        return message
    return "ends too early" if text.count("(") == text.count(")") else "has parentheses without their other half"


@cache
def _bare() -> dict[str, object]:
    """Return the tree of a SELECT without its list: no table, filter, group or order."""
    tree = json.loads(_one(_connection(), "SELECT json_serialize_sql(?)", "SELECT 0"))
    return {key: value for key, value in tree["statements"][0]["node"].items() if key != "select_list"}


def _columns(node: object, text: str) -> Iterator[str]:
    """Yield the columns that a tree takes; refuse whatever may do more than compute with them."""
    if isinstance(node, list):
        for item in node:
            yield from _columns(item, text)
    elif isinstance(node, dict):
        if "class" in node:
            _allow(node, text)
        if node.get("class") == "COLUMN_REF":
            name = ".".join(node["column_names"])
            if len(node["column_names"]) > 1:
                raise InputError(
                    f'should have {name} between double quotation marks, "{name}", if it is a column: {text}'
                )
            yield name
        for value in node.values():
            yield from _columns(value, text)


def _beside_texts(node: object) -> Iterator[str]:
    """Yield the columns that share an operator or a function with a text, or are joined to one."""
    if isinstance(node, list):
        for item in node:
            yield from _beside_texts(item)
    elif isinstance(node, dict):
        operands = [value for key in ("left", "right", "input", "lower", "upper") if (value := node.get(key))]
        operands += [*node.get("children", []), *(argument["expression"] for argument in node.get("arguments", []))]
        if node.get("function_name") == "||" or any(map(_is_text, operands)):
            yield from (".".join(operand["column_names"]) for operand in operands if operand["class"] == "COLUMN_REF")
        for value in node.values():
            yield from _beside_texts(value)


def _is_text(node: SyntaxNode) -> bool:
    return bool(node["class"] == "CONSTANT" and node.get("literal", {}).get("kind") == "STRING")


def _allow(node: SyntaxNode, text: str) -> None:
    if node["class"] == "SUBQUERY":
        raise InputError("should compute with columns of its row, has a SELECT of its own")
    if node["class"] not in _CLASSES:
        raise InputError(f"should compute with columns of its row, has {node['type'].lower()}: {text}")
    if node["class"] == "FUNCTION" and node["function_name"].lower() not in _functions():
        raise InputError(f"should use DuckDB's functions of one row, has {node['function_name'] or 'none'}: {text}")


@cache
def _functions() -> frozenset[str]:
    """Return the functions of one row that depend on their arguments alone."""
    rows = _connection().sql(
        "SELECT DISTINCT lower(function_name) FROM duckdb_functions() "
        "WHERE function_type = 'scalar' AND stability = 'CONSISTENT'"
    )
    return frozenset(name for (name,) in rows.fetchall()) - _NOT_OF_A_ROW | _MACROS


def _connection() -> duckdb.DuckDBPyConnection:
    """Return a connection of its own to the one empty database of this process; opening a database takes long."""
    return _database().cursor()


@cache
def _database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config=_SETTINGS)


def _one(connection: duckdb.DuckDBPyConnection, sql: str, argument: str) -> str:
    row = connection.execute(sql, [argument]).fetchone()
    return "" if row is None else str(row[0])


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
