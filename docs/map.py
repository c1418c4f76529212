"""A map of the code: its rooms and what they know of each other, its lines by kind, and the way of one command.

    python docs/map.py                                    rooms, arrows and lines
    python docs/map.py -- run small --out /tmp/runs       and the files that a command goes through
    python docs/map.py --root ../older -- run small       of another checkout

A room is a folder, or a single module beside folders, of `models`, `sim`, `analysis` or `scenarios`. An arrow leads
from the room of a module to the room of one that it imports, in functions too; imports for types alone do not count.
"""

import argparse
import ast
import contextlib
import io
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType, ModuleType

LAYERS = ("models", "sim", "analysis", "scenarios")
ENTRIES = ("scenarios.commands.entry", "scenarios.entry", "scenarios.cli")
"""Where the command `wsc` starts, or started."""
Arrows = dict[str, set[str]]


def modules(root: Path) -> dict[str, Path]:
    """Return the file of every module of the four folders."""
    files = [file for layer in LAYERS for file in sorted((root / layer).rglob("*.py"))]
    return {_name(file.relative_to(root)): file for file in files}


def _name(file: Path) -> str:
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__")


def room(module: str, root: Path) -> str:
    """Return the room of a module: its folder below the layer, or itself if it stands beside folders."""
    layer, *rest = module.split(".")
    if not rest:
        return layer
    return f"{layer}/{rest[0]}" if (root / layer / rest[0]).is_dir() else f"{layer}/{rest[0]}.py"


def imported(tree: ast.Module, known: dict[str, Path]) -> Iterator[str]:
    """Yield the modules of the project that a module imports when it runs, or when a function of it does."""
    for node in _running(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in known else node.module for name in names if {name, node.module} & known.keys())


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a tree that are there for more than types."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for other in child.orelse:
                yield from _running(other)
        else:
            yield child
            yield from _running(child)


def arrows(root: Path) -> Arrows:
    """Return the other rooms that each room knows."""
    known, rooms = modules(root), defaultdict[str, set[str]](set)
    for module, file in known.items():
        here = room(module, root)
        rooms[here] |= {room(other, root) for other in imported(ast.parse(file.read_text("utf-8")), known)} - {here}
    return {name: {other for other in others if other not in LAYERS} for name, others in rooms.items()}


def upward(rooms: Arrows) -> list[tuple[str, str]]:
    """Return the arrows that lead from a layer to one above it."""
    rank = {layer: i for i, layer in enumerate(LAYERS)}
    return [(a, b) for a, others in rooms.items() for b in others if rank[_layer(b)] > rank[_layer(a)]]


def _layer(name: str) -> str:
    return name.split("/", maxsplit=1)[0]


def circles(rooms: Arrows) -> list[list[str]]:
    """Return the rooms that know each other, directly or round about, together."""
    reached = {name: _reached(name, rooms) for name in rooms}
    groups = {tuple(sorted(b for b in reached[a] if a in reached.get(b, ()))) for a in rooms if a in reached[a]}
    return [list(group) for group in sorted(groups)]


def _reached(name: str, rooms: Arrows) -> set[str]:
    reached, waiting = set[str](), list(rooms.get(name, ()))
    while waiting:
        other = waiting.pop()
        if other not in reached:
            reached.add(other)
            waiting += rooms.get(other, ())
    return reached


def lines(file: Path) -> tuple[int, int, int]:
    """Return how many lines of a file are code, docstrings, and blank or comments."""
    text = file.read_text("utf-8")
    spoken = set[int]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            spoken.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    rest = [line.strip() for i, line in enumerate(text.splitlines(), 1) if i not in spoken]
    code = sum(bool(line) and not line.startswith("#") for line in rest)
    return code, len(spoken), len(rest) - code


def way(root: Path, words: list[str]) -> tuple[list[str], list[str], object]:
    """Run a command, and return the files whose functions it entered, the modules it loaded, and its exit status."""
    files = {str(file): name for name, file in modules(root).items()}
    entered, met = dict[str, None](), set[CodeType]()

    def entering(frame: FrameType, event: str, _given: object) -> None:
        code = frame.f_code
        if event != "call" or code in met:
            return
        met.add(code)
        if code.co_filename in files and code.co_name != "<module>" and not _defines(frame):
            entered.setdefault(files[code.co_filename])

    status: object = 0
    sys.path.insert(0, str(root))
    sys.argv = ["wsc", *words]
    main = _entry(root).main
    sys.setprofile(entering)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            main()
    except SystemExit as done:
        status = done.code
    finally:
        sys.setprofile(None)
    loaded = sorted(name for name in sys.modules if name.split(".")[0] in LAYERS)
    return list(entered), loaded, status


def _entry(root: Path) -> ModuleType:
    """Return the module whose function `main` is the command."""
    known = modules(root)
    return import_module(next(name for name in ENTRIES if name in known))


def _defines(frame: FrameType) -> bool:
    """Return whether a frame belongs to the making of a module: a class body, a decorator, a constant."""
    above: FrameType | None = frame
    while above is not None:
        if above.f_code.co_name == "<module>" and above.f_globals.get("__name__", "").split(".")[0] in LAYERS:
            return True
        above = above.f_back
    return False


def report(root: Path) -> Iterator[str]:
    """Yield what is to be said of a checkout."""
    rooms, known = arrows(root), modules(root)
    for layer in LAYERS:
        mine = [name for name in rooms if _layer(name) == layer and name != layer]
        inside = [(a, b) for a in mine for b in rooms[a] if _layer(b) == layer]
        yield f"{layer}: {len(mine)} rooms, {len(inside)} arrows among them"
        for name in sorted(mine):
            yield f"  {name}: {' '.join(sorted(rooms[name])) or '-'}"
    among = [(a, b) for a, others in rooms.items() for b in others]
    yield f"all: {len(rooms)} rooms, {len(among)} arrows"
    yield "up: " + ("; ".join(f"{a} -> {b}" for a, b in upward(rooms)) or "none")
    yield "circles: " + ("; ".join(" ".join(group) for group in circles(rooms)) or "none")
    for layer in LAYERS:
        counts = [lines(file) for name, file in known.items() if name.split(".")[0] == layer]
        code, spoken, rest = (sum(column) for column in zip(*counts, strict=True))
        yield f"{layer}: {len(counts)} modules, {code} lines of code, {spoken} of docstrings, {rest} blank or comments"


def main() -> None:
    """Print the map, and the way of a command if one follows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="the checkout")
    parser.add_argument("--files", action="store_true", help="name the files and modules of the command")
    parser.add_argument("command", nargs="*", help="words of a wsc command, after --")
    given = parser.parse_args()
    root = given.root.resolve()
    if not given.command:
        print(*report(root), sep="\n")
        return
    entered, loaded, status = way(root, given.command)
    print(f"wsc {' '.join(given.command)} (status {status})")
    print(f"files entered: {len(entered)}", *(f"  {name}" for name in entered if given.files), sep="\n")
    print(f"modules loaded: {len(loaded)}", *(f"  {name}" for name in loaded if given.files), sep="\n")


if __name__ == "__main__":
    main()
