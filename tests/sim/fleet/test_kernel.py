"""What the compiled simulation is made of keys its cache: no file that it needs can change behind it."""

import ast
from pathlib import Path

import pytest

from sim.fleet import events, kernel

FOLDER = Path(kernel.__file__).parent


def imported(name):
    """Names of the modules of sim.fleet that a module of it imports."""
    found = set()
    for node in ast.walk(ast.parse((FOLDER / f"{name}.py").read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "sim.fleet":
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sim.fleet."):
            found.add(node.module.removeprefix("sim.fleet."))
    return found


def parts(of="kernel"):
    """Names of all modules of sim.fleet that the kernel is made of, itself left out."""
    found, waiting = set(), {of}
    while waiting:
        new = imported(waiting.pop()) - found
        found |= new
        waiting |= new
    return sorted(found)


def test_the_cache_is_keyed_by_every_module_that_the_kernel_is_made_of():
    assert parts() == ["draws", "interference", "layout", "own_physics", "power", "slots", "turnover"]
    for name, of in (("kernel", kernel.PARTS), ("events", events.MADE_OF)):
        assert sorted(part.__name__.removeprefix("sim.fleet.") for part in of) == parts(name)


def test_the_digest_of_parts_sees_their_source(monkeypatch):
    before = kernel.digest_of(kernel.PARTS)
    monkeypatch.setattr(kernel, "getsource", lambda part: f"# another {part.__name__}")
    assert kernel.digest_of(kernel.PARTS) != before


def test_another_digest_is_another_entry_of_the_cache():
    digests = [kernel._cached(text).py_func.__closure__[0].cell_contents for text in ("one", "another")]
    assert digests == ["one", "another"]


@pytest.mark.parametrize("name", ["events", "kernel", *parts()])
def test_what_needs_another_module_is_not_cached_by_itself(name):
    functions = [
        node for node in ast.parse((FOLDER / f"{name}.py").read_text()).body if isinstance(node, ast.FunctionDef)
    ]
    cached = {each.name for each in functions for made in each.decorator_list if "cache=True" in ast.unparse(made)}
    assert not cached or not imported(name)
