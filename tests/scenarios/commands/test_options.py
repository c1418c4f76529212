"""Options that mean the same are written, read and shown alike in every command."""

import inspect
import re

import pytest
import typer
from typer.core import TyperOption
from typer.testing import CliRunner

from scenarios.commands.app import app
from scenarios.files.options import Refused, typed

VALUES = {
    "SHARE": {"5%": 0.05, "0.05": 0.05},
    "TIME": {"90min": 5400.0, "150ms": 0.15, "1d": 86400.0},
    "X": {"1.5": 1.5, "2": 2.0},
    "N": {"150": 150, "3": 3},
    "N,N,…": {"1,2,8": (1, 2, 8)},
    "X,X,…": {"1.5,2": (1.5, 2.0)},
}
REFUSED = {
    "SHARE": "105%",
    "TIME": "soon",
    "X": "-1",
    "N": "1.5",
    "N,N,…": "1,x",
    "X,X,…": "0",
}
OF_A_SCENARIO = {("run", "seed"), ("validate", "seed"), ("validate", "draws"), ("validate", "machines")}
"""Values of a scenario file, whose faults are named together with those of the file."""


def commands(command=None, path=()):
    """Yield the words of every command, and the command."""
    command = command or typer.main.get_command(app)
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
    for name in inner or ():
        yield from commands(inner[name], (*path, name))


ALL = dict(commands())
OPTIONS = [
    pytest.param(path, parameter, id=f"{' '.join(path)} {parameter.name}")
    for path, command in ALL.items()
    for parameter in command.params
    if isinstance(parameter, TyperOption)
    and parameter.metavar in VALUES
    and (*path, parameter.name) not in OF_A_SCENARIO
]


def declared(path, option):
    """The parameter of the command's function that is this option, and how its text is read."""
    parameter = inspect.signature(inspect.unwrap(ALL[path].callback)).parameters[option.name]
    (mark,) = parameter.annotation.__metadata__
    return parameter.default, mark.parser


@pytest.mark.parametrize(("path", "option"), OPTIONS)
def test_what_help_calls_the_value_of_an_option_says_how_it_is_read(path, option):
    _, read = declared(path, option)
    values = {text: read(text) for text in VALUES[option.metavar]}
    known = {text: value for text, value in values.items() if not isinstance(value, Refused)}
    assert known == {text: VALUES[option.metavar][text] for text in known}
    assert known
    assert isinstance(read(REFUSED[option.metavar]), Refused)


@pytest.mark.parametrize(("path", "option"), OPTIONS)
def test_a_default_is_shown_as_one_would_type_it(path, option):
    default, read = declared(path, option)
    if default in (None, inspect.Parameter.empty):
        assert option.default is None
        return
    assert option.default == typed(option.metavar, default)
    assert read(option.default) == default
    shown = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "200"}).stdout
    assert f"[default: {option.default}]" in re.sub(r"[│\s]+", " ", shown)


def test_options_of_one_name_are_called_alike():
    of_name = {}
    for path, command in ALL.items():
        for option in command.params:
            if isinstance(option, TyperOption):
                of_name.setdefault(option.name, {}).setdefault(option.metavar, []).append(" ".join(path))
    different = {name for name, metavars in of_name.items() if len(metavars) > 1}
    assert different == {"out", "to", "machines", "sets"}  # each is of two subjects, such as servers and platforms


def test_seeds_counts_and_times_are_called_what_they_are():
    names = {"N": ("seed", "draws", "workers", "top"), "TIME": ("since", "until", "at", "interval", "period", "bound")}
    for metavar, of_metavar in names.items():
        for command in ALL.values():
            assert {option.metavar for option in command.params if option.name in of_metavar} <= {metavar}
