"""Parts that other people write are loaded from files and modules, and their faults are told as theirs."""

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any, cast

import pytest

from models.code.parts import PartError, blamed, check_method, check_parameters, is_part, part
from models.errors import InputError


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    file = tmp_path / "mine.py"
    file.write_text("LEVEL = 3\n\n\ndef half(x):\n    return x / 2\n\n\ndef broken(x):\n    return x / 0\n")
    return file


def test_a_part_of_a_file_is_the_object_of_that_name(mine: Path) -> None:
    assert part(f"{mine}:LEVEL").load() == 3


def test_paths_are_relative_to_the_folder_of_whoever_names_them(mine: Path) -> None:
    assert part("mine.py:LEVEL", mine.parent).load() == 3


def test_the_digest_is_of_the_bytes_of_the_file(mine: Path) -> None:
    before = part(f"{mine}:LEVEL")
    mine.write_text(mine.read_text().replace("3", "4"))
    after = part(f"{mine}:LEVEL")
    assert before.sha256 != after.sha256
    assert after.load() == 4


def test_a_file_of_the_same_size_and_second_is_read_anew(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert part(f"{mine}:LEVEL").load() == 3
    mine.write_text(mine.read_text().replace("3", "4"))
    assert part(f"{mine}:LEVEL").load() == 4
    assert [file.name for file in mine.parent.iterdir()] == ["mine.py"]


def test_a_file_that_changes_after_it_was_named_is_not_run(mine: Path) -> None:
    named = part(f"{mine}:LEVEL")
    mine.write_text("LEVEL = 7\n")
    with pytest.raises(PartError, match=r"mine\.py: has changed while it was in use"):
        named.load()


def test_a_module_that_changes_after_it_was_imported_is_not_taken_for_the_new_one(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine.rename(mine.with_name("changing_part.py"))
    monkeypatch.syspath_prepend(mine.parent)
    assert part("changing_part:LEVEL").load() == 3
    (mine.parent / "changing_part.py").write_text("LEVEL = 7\n")
    with pytest.raises(PartError, match="has changed since changing_part was imported"):
        part("changing_part:LEVEL").load()


def test_a_part_that_ends_the_process_is_its_authors_mistake(mine: Path) -> None:
    mine.write_text("import sys\n\nLEVEL = 3\nsys.exit(0)\n")
    with pytest.raises(PartError, match=r"mine\.py:4: SystemExit: 0$"):
        part(f"{mine}:LEVEL").load()


def test_another_process_finds_the_part_by_its_reference(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(mine.parent)
    named = pickle.loads(pickle.dumps(part("mine.py:LEVEL")))
    monkeypatch.chdir("/")
    assert part(named.reference).load() == 3


def test_a_module_called_like_one_of_ours_shadows_nothing(tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text("THEIRS = 1\n")
    assert part(f"{tmp_path / 'models.py'}:THEIRS").load() == 1
    assert part("models.errors:WscError").load() is not None


@pytest.mark.parametrize("text", ["mine", "mine.py:", ":Mine", "mine.py:no name", ""])
def test_a_name_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(PartError, match=r"should be file\.py:Name"):
        part(text)


def test_names_without_a_colon_are_ours() -> None:
    assert not is_part("adjusted")
    assert is_part("mine.py:Mine")


def test_a_missing_file_module_or_object_is_named(mine: Path) -> None:
    with pytest.raises(PartError, match="cannot be read: No such file"):
        part("nowhere.py:Mine")
    with pytest.raises(PartError, match="there is no module nowhere"):
        part("nowhere.at.all:Mine")
    with pytest.raises(PartError, match="holds no third, but LEVEL, broken, half"):
        part(f"{mine}:third").load()


def test_an_error_in_a_part_names_the_line_of_its_file(mine: Path) -> None:
    broken = part(f"{mine}:broken")
    function = broken.load()
    assert callable(function)
    with pytest.raises(PartError) as error, blamed(broken):
        function(1)
    assert str(error.value) == f"{mine}:9: ZeroDivisionError: division by zero"


def test_an_error_in_another_file_than_the_parts_names_the_part(tmp_path: Path) -> None:
    """Of a part that is imported into its file, or inherits, as much as of one whose error has no line of it."""
    (tmp_path / "mine.py").write_text("from statistics import median\n")
    somebodys = part(f"{tmp_path / 'mine.py'}:median")
    with pytest.raises(PartError, match=r"^\S*mine\.py: StatisticsError: no median"), blamed(somebodys):
        cast("Any", somebodys.load())([])


def test_methods_that_take_no_self_are_methods() -> None:
    class Mine:
        @staticmethod
        def estimate(experiment: object) -> object:
            return experiment

        @classmethod
        def guess(cls, experiment: object, draws: int) -> object:
            return experiment, draws

    check_method(Mine, "estimate", "experiment")
    check_method(Mine(), "estimate", "experiment")
    with pytest.raises(PartError, match=r"should be a function of \(experiment\), got \(experiment, draws\)"):
        check_method(Mine, "guess", "experiment")


def test_an_error_while_a_file_is_loaded_names_its_line(tmp_path: Path) -> None:
    for text, line in (("import nowhere_at_all\n", 1), ("x = 1\ny = (\n", 2), ("x = 1\nx / 0\n", 2)):
        file = tmp_path / "bad.py"
        file.write_text(text)
        with pytest.raises(PartError, match=rf"bad\.py:{line}: "):
            part(f"{file}:x").load()


def test_what_is_called_with_wrong_arguments_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("\nclass Mine:\n    def predict(self, x):\n        return x\n\n\nclass Level:\n    level = 1\n")
    mine = part(f"{file}:Mine").load()
    assert isinstance(mine, type)
    with (
        pytest.raises(PartError, match=r"mine\.py:3: TypeError: Mine\.predict\(\) missing 1"),
        blamed(part(f"{file}:Mine")),
    ):
        mine().predict()
    with (
        pytest.raises(PartError, match=r"mine\.py:2: TypeError: Mine\(\) takes no arguments"),
        blamed(part(f"{file}:Mine")),
    ):
        mine(3)
    check_parameters(mine.predict, "self", "x")
    with pytest.raises(
        PartError, match=r"mine\.py:3: Mine\.predict: should be a function of \(self\), got \(self, x\)"
    ):
        check_parameters(mine.predict, "self")
    with pytest.raises(
        PartError, match=r"mine\.py:2: Mine: should be a function of \(x\), got a class that takes \(\)"
    ):
        check_parameters(mine, "x")


def test_what_a_part_says_can_be_mended_stays_as_it_is(mine: Path) -> None:
    with pytest.raises(InputError, match="weight is missing"), blamed(part(f"{mine}:half")):
        raise InputError("weight is missing")


def test_what_a_part_prints_is_not_in_the_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text("print('loaded')\n\n\ndef mine():\n    print('called')\n")
    somebodys = part(f"{tmp_path / 'mine.py'}:mine")
    with blamed(somebodys):
        cast("Any", somebodys.load())()
    seen = capsys.readouterr()
    assert (seen.out, seen.err) == ("", "loaded\ncalled\n")


def test_what_other_threads_print_while_a_part_is_called_goes_where_it_went(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(
        "def mine(entered, left):\n    entered.set()\n    left.wait()\n    print('called')\n"
    )
    somebodys, before = part(f"{tmp_path / 'mine.py'}:mine"), sys.stdout
    entered, left = Event(), Event()

    def call() -> None:
        with blamed(somebodys):
            cast("Any", somebodys.load())(entered, left)

    with ThreadPoolExecutor(1) as pool:
        called = pool.submit(call)
        entered.wait()
        print("meanwhile")
        left.set()
        called.result()
    seen = capsys.readouterr()
    assert (seen.out, seen.err, sys.stdout) == ("meanwhile\n", "called\n", before)
