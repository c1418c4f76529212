"""The map of the code: rooms, arrows between them, and lines by kind, of a small tree made for it."""

import pytest

from docs.map import arrows, circles, lines, modules, room, upward


@pytest.fixture
def tree(tmp_path):
    texts = {
        "models/world.py": "if TYPE_CHECKING:\n    from scenarios.files import read\n",
        "sim/fleet/run.py": '"""Runs."""\n\n# Why.\nfrom models import world\n',
        "analysis/law.py": "def law():\n    from analysis.logs.reading import read\n",
        "analysis/logs/reading.py": "import analysis.law\n",
        "scenarios/entry.py": "import models.world\ndef main():\n    from sim.fleet import run\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_rooms_are_folders_and_single_modules_beside_them(tree):
    assert {room(name, tree) for name in modules(tree)} == {
        *("models/world.py", "sim/fleet", "analysis/law.py", "analysis/logs", "scenarios/entry.py")
    }


def test_arrows_are_imports_in_functions_too_but_not_those_for_types(tree):
    rooms = arrows(tree)
    assert rooms["models/world.py"] == set()
    assert rooms["scenarios/entry.py"] == {"models/world.py", "sim/fleet"}
    assert upward(rooms) == []
    assert upward({"sim/fleet": {"scenarios/files"}}) == [("sim/fleet", "scenarios/files")]
    assert circles(rooms) == [["analysis/law.py", "analysis/logs"]]


def test_lines_are_code_docstrings_and_the_rest(tree):
    assert lines(tree / "sim/fleet/run.py") == (1, 1, 2)
