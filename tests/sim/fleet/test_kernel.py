"""What the compiled simulation is made of: who counts references to arrays."""

import ast
from pathlib import Path

from sim.fleet import kernel

FOLDER = Path(kernel.__file__).parent
ARRAYS = {"Floats", "Ints", "Bools", "Records", "NDArray"}


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
