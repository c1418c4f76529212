"""Pages for the site: one for each package with its modules, made from the tree, and one of the commands."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("models", "sim", "analysis", "scenarios")
_COMMANDS = Path("scenarios", "commands")
"""The commands have a page of their own."""


def write(root: Path, out: Path) -> None:
    """Write the pages of all packages and of the commands into a folder, those that changed; others are removed."""
    made = {f"{name}.rst": text for name, text in (*pages(root), ("commands", commands()))}
    out.mkdir(exist_ok=True)
    for path in out.iterdir():
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        path = out / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def pages(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each page: an index, and the packages."""
    yield "index", _page("Modules", "Imports go down only: scenarios, then sim and analysis, then models.", FOLDERS)
    yield "map", _title("Map") + "Every module by its folder, and what it is about.\n\n" + "".join(_map(root))
    for folder in FOLDERS:
        yield from _package(root / folder, folder)


def _package(folder: Path, name: str) -> Iterator[tuple[str, str]]:
    """Yield the page of a package, with its modules, and those of the packages in it."""
    modules = [path for path in sorted(folder.glob("*.py")) if path.stem != "__init__"]
    packages = [path.parent for path in sorted(folder.glob("*/__init__.py")) if path.parts[-3:-1] != _COMMANDS.parts]
    text = _page(name, _purpose(folder / "__init__.py"), [f"{name}.{path.name}" for path in packages])
    for path in modules:
        members = ", ".join(_parsed(path)[1])
        text += f"\n{_title(f'{name}.{path.stem}', '-')}.. automodule:: {name}.{path.stem}\n"
        text += f"   :members: {members}\n" if members else ""
    yield name, text
    for path in packages:
        yield from _package(path, f"{name}.{path.name}")


def _map(root: Path) -> Iterator[str]:
    """Yield the folders, each with its modules and the first lines of what they say of themselves."""
    for folder in FOLDERS:
        for package in sorted(path.parent for path in (root / folder).rglob("__init__.py")):
            yield f"**{package.relative_to(root).as_posix()}**\n    {_purpose(package / '__init__.py')}\n\n"
            modules = [path for path in sorted(package.glob("*.py")) if path.stem != "__init__"]
            yield "".join(f"    - ``{path.stem}``: {_purpose(path).partition(chr(10))[0]}\n" for path in modules) + "\n"


def commands() -> str:
    """Return a page with what `wsc` and each of its commands say of themselves."""
    import typer
    from typer.testing import CliRunner

    from scenarios.commands.app import app

    runner = CliRunner(env={"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"})
    known = typer.main.get_command(app).commands
    words = [[], *([name] for name in known)]
    words += [[name, each] for name, group in known.items() for each in getattr(group, "commands", {})]
    text = _title("Commands")
    for each in sorted(words):
        help_text = runner.invoke(app, [*each, "--help"]).output
        block = "".join(f"   {line}".rstrip() + "\n" for line in help_text.splitlines())
        text += f"\n{_title(' '.join(['wsc', *each]), '-')}.. code-block:: text\n\n{block}\n"
    return text


@functools.cache
def _parsed(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return what a module says of itself, and its members; each is parsed once."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return ast.get_docstring(tree) or "", tuple(_members(tree.body))


def _members(body: list[ast.stmt]) -> Iterator[str]:
    """Yield what a module holds of its own for others: functions, classes, and constants that say what they are."""
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from [node.name] if node.name[0] != "_" else []
        elif isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            names = [each.id for each in targets if isinstance(each, ast.Name)]
            yield from [name for name in names if name.isupper() and name[0] != "_"]


def _purpose(path: Path) -> str:
    return _parsed(path)[0]


def _page(title: str, text: str, inner: Iterator[str] | tuple[str, ...] | list[str]) -> str:
    entries = "".join(f"   {each}\n" for each in inner)
    return f"{_title(title)}{text}\n\n.. toctree::\n   :maxdepth: 1\n\n{entries}"


def _title(text: str, line: str = "=") -> str:
    return f"{text}\n{line * len(text)}\n\n"
