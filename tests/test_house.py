"""What the documents, the Makefile and the version list say is so."""

import ast
import collections
import fnmatch
import functools
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
import typer
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scenarios.commands.app import app

ROOT = Path(__file__).parents[1]
FOLDERS = ("models", "sim", "analysis", "scenarios")
TARGETS = {"demo", "test", "check", "docs", "notebooks", "map", "web", "interop", "wheel"}
TARGETS |= {"figures", "bench", "evidence", "clean"}
CHECKED = ("demo", "test", "check", "web", "interop", "wheel", "notebooks")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RUNTIME = [Requirement(line) for line in PROJECT["dependencies"]]
DEVELOPMENT = [Requirement(line) for name in ("dev", "docs") for line in PROJECT["optional-dependencies"][name]]
MODULES = [path.relative_to(ROOT) for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]

SHARED_CLASS_NAMES = {"Contention", "WSMeter"}
"""Names that still stand for a class each in several modules; none is added."""

NAMES_THAT_FIT_ANYTHING = {"made", "found", "one", "each", "asked", "seen", "said", "there", "kept", "held"}

JSON_BORDER = {"scenarios/files/json_schema.py"}
"""Modules whose signatures may hold maps of anything: they build what is JSON and nothing else."""
ANYTHING = re.compile(r"\b(?:dict|Mapping)\b(?:\[str, Any\]|(?!\[))")

DOCUMENTS = [
    path.relative_to(ROOT)
    for path in sorted([ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").glob("*.md")])
]


def rows(document, name):
    """The cells of the table between the marks of that name, without its head."""
    text = (ROOT / document).read_text()
    table = re.search(rf"<!-- {name} -->\n(.*)<!-- /{name} -->", text, re.DOTALL)
    lines = [line.strip("| ").split(" | ") for line in table[1].splitlines() if line.startswith("| ")]
    return [[cell.strip("` ") for cell in line] for line in lines[1:]]


def blocks(document, *languages):
    """The texts of the document's fenced blocks in those languages."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / document).read_text(), re.DOTALL | re.MULTILINE)
    return [text for language, text in fenced if language in languages]


def commands(document):
    """The lines of the document's shell blocks, word by word."""
    lines = "".join(blocks(document, "", "sh", "console")).splitlines()
    return [line.removeprefix("$ ").split() for line in lines]


class Source(NamedTuple):
    """What the text of a module holds."""

    purpose: str
    classes: list[str]
    signatures: list[tuple[str, str]]
    """Names of functions, each with the annotations of its parameters and of what it returns."""
    imports: list[str]
    """Top-level packages, type-only imports included."""
    variables: list[str]
    """Names that are assigned, and parameters."""


def annotations(function):
    """The annotations of a function's parameters and of what it returns, as text."""
    given = function.args
    parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    marks = [parameter.annotation for parameter in parameters if parameter is not None]
    return " ".join(ast.unparse(mark) for mark in [*marks, function.returns] if mark is not None)


@functools.cache
def sources():
    """Every module's path with what it holds; each is parsed once."""
    return {path: source(ast.parse((ROOT / path).read_text())) for path in MODULES}


def source(tree):
    held = Source(ast.get_docstring(tree).splitlines()[0], [], [], [], [])
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            held.classes.append(node.name)
        elif isinstance(node, ast.FunctionDef):
            held.signatures.append((node.name, annotations(node)))
        elif isinstance(node, ast.arg):
            held.variables.append(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            held.variables.append(node.id)
        elif isinstance(node, ast.Import):
            held.imports.extend(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            held.imports.append(str(node.module).partition(".")[0])
    return held


def test_every_module_has_a_purpose_of_its_own():
    purposes = [each.purpose for each in sources().values()]
    assert all(len(purpose.split()) >= 3 for purpose in purposes)
    assert len(set(purposes)) == len(purposes)


def test_a_public_class_name_stands_for_one_class():
    places = collections.defaultdict(set)
    for path, each in sources().items():
        for name in each.classes:
            if not name.startswith("_"):
                places[name].add(path)
    assert {name for name, paths in places.items() if len(paths) > 1} <= SHARED_CLASS_NAMES


def test_signatures_say_what_maps_hold():
    untyped = {
        path.as_posix(): name
        for path, each in sources().items()
        for name, annotated in each.signatures
        if ANYTHING.search(annotated)
    }
    assert {path: name for path, name in untyped.items() if path not in JSON_BORDER} == {}


def test_names_that_would_fit_any_variable_are_few():
    assert sum(name in NAMES_THAT_FIT_ANYTHING for each in sources().values() for name in each.variables) <= 50


def test_compiled_functions_have_no_defaults():
    """An argument that is left out has a type of its own: Numba would compile the function once more."""
    left_out = re.compile(r"^@njit\(.*\)\ndef (\w+)\([^)]*=", re.MULTILINE)
    assert [name for path in MODULES for name in left_out.findall((ROOT / path).read_text())] == []


def named_in(text):
    """Dotted names and paths in backticks that begin with one of the four folders, or with that of tests."""
    folders = "|".join((*FOLDERS, "tests", "docs", "benchmarks"))
    for name in re.findall(rf"`((?:{folders})[./][\w./]+)`", text):
        yield name.rstrip("/")


def resolves(name):
    """Whether a path is there, or a dotted name is a module or something that a module's text holds."""
    if "/" in name:
        return (ROOT / name).exists() or (ROOT / f"{name}.py").exists()
    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        place = ROOT.joinpath(*parts[:size])
        if place.is_dir() and size == len(parts):
            return True
        if place.with_suffix(".py").is_file():
            source = place.with_suffix(".py").read_text()
            return all(re.search(rf"\b{part}\b", source) for part in parts[size:])
    return False


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_what_a_document_names_is_there(document):
    assert [name for name in named_in((ROOT / document).read_text()) if not resolves(name)] == []


def test_the_readme_is_read_in_five_minutes():
    assert len((ROOT / "README.md").read_text().split()) <= 1500


def test_the_architecture_is_read_in_ten_minutes():
    assert len((ROOT / "ARCHITECTURE.md").read_bytes()) <= 20 * 1024


def test_no_exception_lets_the_statistician_see_what_spec_sheets_do_not_say():
    """Factors of cores, processors, memories and sockets, and all that is asked of worlds, are closed to analysis."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (closed,) = (one for one in contracts if one["name"] == "the statistician sees tables, never the world")
    assert closed["source_modules"] == ["analysis"]
    assert closed["forbidden_modules"] == ["models"]
    allowed = [pattern.split(" -> ")[1] for pattern in closed["ignore_imports"]]
    rooms = {".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in MODULES}
    seen = {room for room in rooms if any(fnmatch.fnmatchcase(room, pattern) for pattern in allowed)}
    assert {room for room in seen if room.startswith("models.fleet.")} == {"models.fleet.metrics"}
    assert not {room for room in seen if room.startswith("models.services") or room.startswith("models.profiling")}
    assert {"models.fleet.processors", "models.fleet.memory"} <= rooms


def test_every_dependency_has_its_reason():
    reasons = rows("ARCHITECTURE.md", "dependencies")
    assert [name for name, _ in reasons] == [each.name for each in (*RUNTIME, *DEVELOPMENT)]
    assert all(len(reason.split()) >= 3 for _, reason in reasons)


def test_the_four_folders_import_what_is_declared_and_all_of_it():
    used = {name for each in sources().values() for name in each.imports} - {*FOLDERS, *sys.stdlib_module_names}
    known = {each.name.partition(".")[0].replace("-", "_") for each in RUNTIME}
    belongs = {"pydantic_core": "pydantic", "sklearn": "scikit_learn", "elftools": "pyelftools"}
    assert {belongs.get(name, name) for name in used} == known


def test_the_version_list_holds_names_and_versions_only():
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*", line) for line in lines)
    names = [canonicalize_name(line.partition("==")[0]) for line in lines]
    assert len(set(names)) == len(names)
    assert canonicalize_name(PROJECT["name"]) not in names


@pytest.mark.parametrize("dependency", [*RUNTIME, *DEVELOPMENT], ids=lambda each: each.name)
def test_the_version_list_pins_every_dependency_within_its_bounds(dependency):
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    versions = {canonicalize_name(name): version for name, version in pinned.items()}
    assert dependency.specifier.contains(versions[canonicalize_name(dependency.name)])


def test_every_command_shown_is_one_that_wsc_has():
    known = typer.main.get_command(app).commands
    shown = [words[1:] for words in commands("README.md") if words[:1] == ["wsc"]]
    assert {words[0] for words in shown} == set(known)
    for name, *words in shown:
        command = getattr(known[name], "commands", {}).get(words[0], known[name]) if words else known[name]
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= options


def test_every_make_target_shown_is_one_that_the_makefile_has():
    shown = {words[1] for words in commands("README.md") if words[:1] == ["make"]}
    assert {"demo", "test"} <= shown <= TARGETS


def make(folder, *words, **variables):
    return subprocess.run(
        ["make", *words, *(f"{name}={value}" for name, value in variables.items())],
        cwd=folder,
        env={name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        capture_output=True,
        text=True,
        check=False,
    )


def test_make_alone_says_what_there_is():
    helped = make(ROOT)
    assert helped.returncode == 0
    assert {line.split()[1] for line in helped.stdout.splitlines()} == TARGETS | {"help"}
    assert all(len(line.split()) > 3 for line in helped.stdout.splitlines())


@pytest.mark.parametrize("check", ["interchange", "web"])
def test_checks_with_programs_of_their_own_say_how_they_are_used(check):
    words = [sys.executable, ROOT / "tests" / check / "check.py", "--help"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: check.py")


@pytest.mark.parametrize("lens", ["wsmeter", "effects", "occupancy", "crossplatform", "profiling"])
def test_the_tests_of_one_lens_are_its_rooms_and_those_below(lens):
    line = next(line for line in make(ROOT, "-n", "test", LENS=lens).stdout.splitlines() if "pytest" in line)
    rooms = line.partition("loadfile ")[2].removesuffix(" || \\").split()
    assert {f"analysis/{lens}", f"tests/analysis/{lens}", f"scenarios/{lens}", f"tests/scenarios/{lens}"} <= set(rooms)
    assert any(room.startswith("tests/models/") for room in rooms)
    assert all((ROOT / room).is_dir() for room in rooms)


def test_a_lens_that_is_none_is_refused():
    refused = make(ROOT, "test", LENS="weather")
    assert refused.returncode == 2
    assert "LENS should be wsmeter, effects, occupancy, crossplatform or profiling, got weather" in refused.stderr


FAKE = """#!/bin/sh
# Stands for Python: makes an environment whose pip notes how it was called, and fails when told or stamped too early.
case "$*" in
    *venv*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    *pip*) echo "Collecting everything"; echo "pip $*" >> log; test ! -e broken && test ! -e .venv/.ready ;;
esac
"""


@pytest.fixture
def checkout(tmp_path):
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "python").write_text(FAKE)
    (tmp_path / "python").chmod(0o755)
    return tmp_path


def set_up(checkout):
    return make(checkout, ".venv/.ready", PYTHON="./python")


def test_set_up_installs_the_pinned_versions_once(checkout):
    first, second = set_up(checkout), set_up(checkout)
    assert (first.returncode, second.returncode) == (0, 0)
    assert "collecting everything" in first.stdout
    assert "up to date" in second.stdout
    uv, call = (checkout / "log").read_text().splitlines()
    assert uv.endswith("-c constraints.txt -q uv")
    assert "-c constraints.txt -e .[dev]" in call


@pytest.mark.parametrize("changed", ["pyproject.toml", "constraints.txt"])
def test_set_up_follows_the_files_that_it_depends_on(checkout, changed):
    set_up(checkout)
    ready = (checkout / ".venv/.ready").stat().st_mtime
    os.utime(checkout / changed, (ready + 10, ready + 10))
    assert "collecting everything" in set_up(checkout).stdout


def test_a_set_up_that_failed_leaves_no_stamp_and_starts_afresh(checkout):
    (checkout / "broken").touch()
    assert set_up(checkout).returncode != 0
    assert not (checkout / ".venv/.ready").exists()
    half = checkout / ".venv/half-installed"
    half.touch()
    (checkout / "broken").unlink()
    assert set_up(checkout).returncode == 0
    assert not half.exists()
    assert (checkout / ".venv/.ready").exists()


@pytest.mark.parametrize(("failing", "status"), [(None, 0), *((name, 1) for name in CHECKED)])
def test_ci_runs_every_target_and_fails_with_any(tmp_path, failing, status):
    (tmp_path / ".ci").mkdir()
    ci = shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    recipes = (f"{name}:\n\t@echo ran {name}; {'false' if name == failing else 'true'}\n" for name in CHECKED)
    (tmp_path / "Makefile").write_text(".venv/.ready .venv/.docs:\n\t@true\n\n" + "\n".join(recipes))
    for tool in ("chromium", "node", "npm"):  # there, so that nothing is installed
        (tmp_path / tool).write_text("#!/bin/sh\n")
        (tmp_path / tool).chmod(0o755)
    env = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([ci], cwd="/", env=env, capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert [line for line in done.stdout.splitlines() if line.startswith("ran ")] == [f"ran {name}" for name in CHECKED]


def test_the_licence_is_the_declared_one():
    assert PROJECT["license"] == "Apache-2.0"
    assert "Apache License" in (ROOT / "LICENSE").read_text().splitlines()[1]
