"""The pages that the site has of modules: all of the tree, and of each module what is its own."""

import re
from pathlib import Path

import pytest

from docs.modules import FOLDERS, commands, pages, write

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site():
    return dict(pages(ROOT))


def test_every_module_but_those_of_commands_is_on_one_page(site):
    shown = [name for text in site.values() for name in re.findall(r"automodule:: (\S+)", text)]
    there = [path.relative_to(ROOT) for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    wanted = {".".join(path.with_suffix("").parts) for path in there if path.name != "__init__.py"}
    assert sorted(shown) == sorted(name for name in wanted if not name.startswith("scenarios.commands."))


def test_every_page_is_reached_from_the_first(site):
    reached, waiting = set(), ["index"]
    while waiting:
        name = waiting.pop()
        reached.add(name)
        waiting += re.findall(r"^   ([a-z_.]+)$", site[name].partition("automodule")[0], re.MULTILINE)
    assert reached == set(site) - {"map"}


def test_a_module_shows_what_is_its_own_and_public(tmp_path):
    for folder in FOLDERS:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text('"""What it is."""\n')
    source = (
        "from math import pi\nMOST = 3\n'''So many.'''\nBARE = 4\n_OWN = 5\n'''Not for others.'''\n"
        "LEAST: int = 1\n'''So few.'''\ndef ask(): ...\ndef _tell(): ...\nclass Said: ...\n"
    )
    (tmp_path / "sim" / "asked.py").write_text(source)
    text = dict(pages(tmp_path))["sim"]
    assert "What it is." in text
    assert ".. automodule:: sim.asked\n   :members: MOST, LEAST, ask, Said\n" in text


@pytest.fixture(scope="module")
def told():
    return commands()


@pytest.mark.parametrize("name", ["wsc", "wsc convert", "wsc profile", "wsc profile import"])
def test_every_command_says_what_it_takes(told, name):
    assert f"\n{name}\n{'-' * len(name)}\n" in told
    assert "--period" in told


def test_pages_of_modules_that_are_gone_are_gone(tmp_path, monkeypatch, site):
    monkeypatch.setattr("docs.modules.commands", lambda: "")
    monkeypatch.setattr("docs.modules.pages", lambda _root: site.items())
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "sim.gone.rst").write_text("gone")
    write(ROOT, tmp_path / "old")
    assert {path.stem for path in (tmp_path / "old").iterdir()} == {*site, "commands"}


def test_every_document_is_on_the_site():
    listed = set(re.findall(r"^([a-z/A-Z_-]+)$", (ROOT / "docs/index.md").read_text(), re.MULTILINE))
    files = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.ipynb")]
    documents = {str(path.relative_to(ROOT / "docs").with_suffix("")) for path in files}
    assert listed == (documents - {"index"}) | {
        "/README",
        "/ARCHITECTURE",
        "/CONTRIBUTING",
        "/CHANGELOG",
        "modules/commands",
        "modules/index",
        "modules/map",
    }


def test_the_map_names_every_module_with_its_first_line(site):
    there = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py") if path.name != "__init__.py"]
    lines = re.findall(r"^    - ``(\w+)``: (.+)$", site["map"], re.MULTILINE)
    assert len(lines) == len(there)
    first = (ROOT / "models" / "tables.py").read_text().splitlines()[0].strip('"')
    assert ("tables", first) in lines
