"""How commands end: what the user can mend in a line and status 2, faults of ours in a traceback and status 70."""

import errno
import re
from pathlib import Path

import numpy as np
import pytest
import typer

from models.errors import InputError, WscError
from scenarios.commands.guard import guard
from scenarios.files.faults import Fault, FaultsError
from scenarios.runs.rundir import RunError


def ended(function, *given):
    """Return the status and what is printed of a guarded function that is given so many arguments."""
    with pytest.raises(typer.Exit) as caught:
        guard(function)(*given)
    return caught.value.exit_code


def raising(error):
    def function(*_given):
        raise error

    return function


@pytest.mark.parametrize(
    "error",
    [InputError("servers must be at least 1"), FaultsError([Fault("a.csv", 1, 1, "", "is empty")]), RunError("no run")],
)
def test_what_the_user_can_mend_is_a_line_and_status_2(capsys, error):
    assert ended(raising(error)) == 2
    assert capsys.readouterr().err == f"{error}\n"
    assert isinstance(error, WscError)


@pytest.mark.parametrize("status", [0, 1])
def test_a_status_that_a_command_ends_with_is_its_own(status):
    assert ended(raising(typer.Exit(status))) == status


def ours():
    return [
        lambda: list(zip([1], [1, 2], strict=True)),
        lambda: int("x"),
        lambda: [1, 2].index(5),
        lambda: np.zeros(2) + np.zeros(3),
        lambda: {}["table"],
        lambda: 1 / 0,
    ]


@pytest.mark.parametrize("fault", ours())
def test_a_fault_of_ours_shows_its_place_and_says_whose_it_is(capsys, fault):
    """These were told as faults of the input: a ValueError raised in our frames counted as expected."""
    assert ended(lambda *_: fault()) == 70
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert "this is a fault of wsc, not of your input" in said


def test_a_planted_fault_in_the_planner_is_not_blamed_on_the_table(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from scenarios.commands.app import app

    def broken(*_given, **_more):
        return list(zip([1], [1, 2], strict=True))

    monkeypatch.setattr("scenarios.wsmeter.own_tables.allocate", broken)
    table = tmp_path / "services.csv"
    table.write_text("job,weight,mean,std,instances,cost\na,1,100,10,50,1\n")
    result = CliRunner().invoke(app, ["wsmeter", "plan", str(table), "--margin", "3%"])
    assert result.exit_code == 70, result.output
    assert "services.csv:" not in result.output


@pytest.mark.parametrize(
    ("number", "name", "given", "status"),
    [
        (errno.ENOENT, "/data/log.csv", "/data/log.csv", 2),
        (errno.EACCES, "/data/runs/x/t.parquet", "/data/runs", 2),
        (errno.ENOSPC, "/elsewhere/x", "/data/runs", 2),
        (errno.EADDRINUSE, None, "8080", 2),
        (errno.ENOENT, "/usr/lib/ours.csv", "/data/log.csv", 70),
    ],
)
def test_errors_of_the_system_are_the_users_where_they_name_a_path_of_his_or_none(number, name, given, status):
    error = OSError(number, "why", name) if name else OSError(number, "why")
    assert ended(raising(error), Path(given)) == status


def test_a_file_that_may_not_be_read_or_written_is_named_without_a_number(tmp_path, capsys):
    for name, place in (("a.yaml", tmp_path / "a.yaml"), (".small-1.partial", tmp_path)):
        error = PermissionError(errno.EACCES, "Permission denied", str(tmp_path / name))
        assert ended(raising(error), tmp_path) == 2
        assert capsys.readouterr().err == f"{place}: Permission denied\n"


def test_a_full_or_read_only_folder_is_named_with_what_is_free(tmp_path, capsys):
    place = str(tmp_path / "runs" / ".small-1.partial")
    (tmp_path / "runs").mkdir()
    assert ended(raising(OSError(errno.EROFS, "why", place)), tmp_path / "runs") == 2
    assert capsys.readouterr().err == f"{tmp_path / 'runs'}: Read-only file system\n"
    for error in (OSError(errno.ENOSPC, "why", place), OSError(errno.ENOSPC, "Error writing bytes to file")):
        assert ended(raising(error), tmp_path / "runs") == 2
        said = re.escape(f"{tmp_path / 'runs'}: No space left on device; ") + r"[\d,.]+ MB are free there\n"
        assert re.fullmatch(said, capsys.readouterr().err)
    assert ended(raising(OSError(errno.ENOSPC, "Error writing bytes to file")), "log.csv") == 2
    assert capsys.readouterr().err == "No space left on device\n"
