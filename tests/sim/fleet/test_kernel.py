"""What the compiled simulation is made of keys its cache: no file that it needs can change behind it."""

import ast
from pathlib import Path

import pytest

from sim.fleet import events, kernel

FOLDER = Path(kernel.__file__).parent
ARRAYS = {"Floats", "Ints", "Bools", "Records", "NDArray"}


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
    beside = {"kernel": ["models.fleet.processors"], "events": ["models.fleet.processors", "models.queues.station"]}
    for name, of in (("kernel", kernel.PARTS), ("events", events.MADE_OF)):
        names = sorted(part.__name__ for part in of)
        assert [part for part in names if part.startswith("models.")] == beside[name]
        assert [part.removeprefix("sim.fleet.") for part in names if part not in beside[name]] == parts(name)


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


def names(node):
    """All names in a piece of code."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} if node is not None else set()


def borrows(function):
    return any("borrows=True" in ast.unparse(decorator) for decorator in function.decorator_list)


def array_types(trees):
    """Names of types whose values are arrays or hold some."""
    records = [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    found, before = set(ARRAYS), 0
    while len(found) > before:
        before = len(found)
        fields = {
            each.name: set().union(*(names(getattr(line, "annotation", None)) for line in each.body))
            for each in records
        }
        found |= {name for name, types in fields.items() if types & found}
    return found


def lent_to_counting(sources):
    """Borrowing functions that return arrays, each with the callers that do not borrow; by module and name."""
    trees = {name: ast.parse(text) for name, text in sources.items()}
    types, lenders = array_types(trees.values()), {}
    for module, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and borrows(node) and names(node.returns) & types:
                lenders[module, node.name] = set()
    for module, tree in trees.items():
        home = {node.name: module for node in tree.body if isinstance(node, ast.FunctionDef)}
        for node in tree.body:
            if isinstance(node, ast.ImportFrom):
                home |= {each.name: (node.module or "").rpartition(".")[2] for each in node.names}
        counting = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and not borrows(node)]
        for caller in counting:
            for name in names(caller) & home.keys():
                if (home[name], name) in lenders:
                    lenders[home[name], name].add((module, caller.name))
    return lenders


def test_functions_that_count_no_references_return_arrays_only_to_their_like():
    """What counts references would let go of arrays that it never took, and free them under their owner."""
    lenders = lent_to_counting({file.stem: file.read_text() for file in FOLDER.glob("*.py")})
    assert ("events", "_residents") in lenders
    assert not any(lenders.values()), lenders


def test_a_function_that_counts_references_and_takes_borrowed_arrays_is_seen():
    there = "class Pair(NamedTuple):\n    one: Floats\n@njit(borrows=True)\ndef lent(a) -> Pair:\n    return Pair(a)\n"
    here = "from sim.fleet.there import lent\n@njit()\ndef taken(a: Floats) -> float:\n    return lent(a).one[0]\n"
    found = lent_to_counting({"there": there, "here": here})
    assert found == {("there", "lent"): {("here", "taken")}}
