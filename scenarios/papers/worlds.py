"""Rows in many worlds: what a row measures in a world is kept, and made where it is missing, world by world.

Only measured numbers are kept. The runs that they are made from stand in a folder of their own for as long as a world
is worked on: rows of one paper share them, and ten worlds take no more room than one.
"""

import ast
import json
import shutil
from collections.abc import Iterator, Sequence
from functools import cache, partial
from hashlib import blake2b, sha256
from itertools import groupby
from pathlib import Path
from tempfile import gettempdir
from typing import Final, NamedTuple, TypedDict

import numpy as np
import pandas as pd

import models
import sim
from analysis.figures.criteria import printed
from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.plan import MarginOutOfReachError
from scenarios.files.loader import load_each
from scenarios.kinds import KINDS
from scenarios.papers.catalogue import ROWS, library
from scenarios.papers.rows import Changed, published
from scenarios.papers.sources import Sources
from scenarios.runs.conclusions import CONCLUDING
from scenarios.runs.disk import abandoned, hidden
from scenarios.runs.execution import HERE, Workers
from scenarios.runs.executors import PROCESSES, executor
from scenarios.runs.parallel import spread, through
from scenarios.runs.parts import keep_part, read_part
from scenarios.runs.rundir import make_folder, source_digest, version_of, versions
from scenarios.views.terminal import Progress

TOO_LITTLE: Final = (NotEnoughDataError, MarginOutOfReachError)
"""What a row may find that it cannot be measured on: it is told, and its criteria fail."""
_PARTS: Final = frozenset({"seed", "series", "x", "value"})
_ROOT: Final = Path(__file__).parents[2]
_MEASURING: Final = (
    "analysis.",
    *(f"scenarios.{room}." for room in ("papers", "wsmeter", "crossplatform", "profiling")),
)
"""Where the code stands that decides a number once there is a run."""
_TELLING: Final = frozenset({"analysis.figures.style", "analysis.figures.spread", "scenarios.papers.rows"})
"""What draws and declares rows, and decides no number."""
_DRAWN: Final = frozenset({"Figure", "Axes"})
"""In the signature of a function that draws."""

_MAKING: Final = "measuring worlds"


class RowWorld(NamedTuple):
    """A row in one world."""

    row: str
    seed: int
    changed: Changed = ()


class KeptWorld(TypedDict):
    """What a row measured in one world, as it is kept."""

    seed: int
    series: list[str]
    x: list[float | None]
    """None of a single number."""
    value: list[float]


_Parts = list[tuple[RowWorld, KeptWorld]]


def measured(row: str, sources: Sources) -> pd.DataFrame:
    """Return what a row measures in the world of the sources: series, x, value; nothing where there is too little."""
    try:
        return ROWS[row].outcome(sources).measured
    except TOO_LITTLE:
        return pd.DataFrame({"series": [], "x": [], "value": []}).astype({"series": str, "x": float, "value": float})


def kept_tables(pieces: Sequence[RowWorld], out: Path) -> dict[RowWorld, pd.DataFrame]:
    """Return what is kept of the pieces in the folder of all runs, made by this very code."""
    read = ((piece, read_part(_folder(piece, out), {"seed": piece.seed}, _PARTS)) for piece in pieces)
    return {piece: _table(part) for piece, part in read if part is not None}


def measured_tables(
    pieces: Sequence[RowWorld], out: Path, progress: Progress, workers: Workers = HERE
) -> dict[RowWorld, pd.DataFrame]:
    """Return what rows measure in worlds: what is kept is read, the rest made in parallel and kept.

    Rows of a paper in one world are one piece of work, as they share their runs; what was interrupted goes on with the
    worlds that are missing.

    Parameters
    ----------
    pieces : rows, worlds, and what these are with or without
    out : folder of all runs, in which the numbers are kept
    progress : told the share of the pieces that is there
    workers : processes of this machine, or of a Dask cluster, whose machines need no folder in common
    """
    tables = kept_tables(pieces, out)
    missing = [piece for piece in dict.fromkeys(pieces) if piece not in tables]
    if not missing:
        return tables
    make_folder(out)
    for unfinished in abandoned(out):
        shutil.rmtree(unfinished, ignore_errors=True)
    batches = [list(batch) for _, batch in groupby(sorted(missing, key=_order), key=_order)]
    progress(_MAKING, len(tables) / len(pieces))
    for parts in _each(batches, out, workers):
        for piece, part in parts:
            make_folder(_folder(piece, out))
            keep_part(_folder(piece, out), {"seed": piece.seed}, part)
            tables[piece] = _table(part)
        progress(_MAKING, len(tables) / len(pieces))
    return tables


def _each(batches: Sequence[list[RowWorld]], out: Path, workers: Workers) -> Iterator[_Parts]:
    """Yield what becomes of each batch, in the order in which they are done; a single process is this one."""
    if workers.where == PROCESSES:
        yield from spread(partial(_measured_together, out), batches, workers.processes)
        return
    with executor(*workers) as pool:
        yield from through(pool, partial(_measured_together, None), batches)


def _order(piece: RowWorld) -> tuple[str, str, int]:
    """Return what pieces have in common that are worked on together: paper, changes and world."""
    return piece.row.partition("/")[0], repr(piece.changed), piece.seed


def _measured_together(out: Path | None, pieces: Sequence[RowWorld]) -> _Parts:
    """Return what rows measure in one world, of which nothing else is left.

    Parameters
    ----------
    out : where there is room for runs; where the system has its temporary files if not said
    pieces : of one paper in one world
    """
    runs = hidden((out or Path(gettempdir())) / "world")
    try:
        sources = library(runs, lambda _what, _share: None, pieces[0].seed, dict(pieces[0].changed))
        return [(piece, _part(piece, measured(piece.row, sources))) for piece in pieces]
    finally:
        shutil.rmtree(runs, ignore_errors=True)


def _part(piece: RowWorld, table: pd.DataFrame) -> KeptWorld:
    x: list[float | None] = [None if np.isnan(x) else x for x in table["x"].astype(float)]
    value = [float(value) for value in table["value"]]
    return {"seed": piece.seed, "series": table["series"].astype(str).tolist(), "x": x, "value": value}


def _table(part: KeptWorld) -> pd.DataFrame:
    columns = {"series": part["series"], "x": part["x"], "value": part["value"]}
    return pd.DataFrame(columns).astype({"series": str, "x": float, "value": float})


def _folder(piece: RowWorld, out: Path) -> Path:
    """Return where a row's worlds are kept: same question, same code that makes and measures them, same place."""
    text = json.dumps([_question(piece.row), list(piece.changed)], sort_keys=True)
    return out / f"row-{piece.row.replace('/', '-')}-{sha256(text.encode()).hexdigest()[:12]}"


@cache
def _question(row: str) -> tuple[object, ...]:
    """Return what decides what a row measures in a world of a given seed, beside what is changed.

    Bounds have no part in it, nor what is only drawn or told.
    """
    scenarios = []
    for name in ROWS[row].scenarios:
        for scenario in load_each(name, []):
            scenarios.append(KINDS[scenario.kind].adapter.dump_json(scenario, by_alias=True).decode())
    paper = printed(published(row))[["series", "x", "value"]].to_csv()
    libraries = sorted({**versions(), **{name: version_of(name) for name in CONCLUDING}}.items())
    return row, scenarios, paper, source_digest(models, sim), measuring_digest(row.partition("/")[0]), libraries


@cache
def measuring_digest(paper: str) -> str:
    """Return the digest of the code that measures the rows of a paper on their runs: all that its module imports.

    Functions that draw are left out, and so are comments, docstrings and the way code is laid out.
    """
    digest, modules, deciding = blake2b(digest_size=16), [f"scenarios.papers.{paper}"], dict[str, str]()
    while modules:
        module = modules.pop()
        if module in deciding or module in _TELLING or not module.startswith(_MEASURING):
            continue
        imported, deciding[module] = _decided(module)
        modules += imported
    for module, code in sorted(deciding.items()):
        digest.update(f"{module} {code}\n".encode())
    return digest.hexdigest()


@cache
def _decided(module: str) -> tuple[tuple[str, ...], str]:
    """Return the modules that a module imports, and its code that decides numbers; papers share most modules."""
    tree = _tree(module)
    return tuple(_imported(tree)), ast.dump(_deciding(module, tree))


def _tree(module: str) -> ast.Module:
    stem = _ROOT.joinpath(*module.split("."))
    file = stem.with_suffix(".py") if stem.with_suffix(".py").is_file() else stem / "__init__.py"
    return ast.parse(file.read_text(encoding="utf-8"))


def _imported(tree: ast.Module) -> Iterator[str]:
    """Yield the modules that a module imports anywhere."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _is_module(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from {name if _is_module(name) else node.module for name in names}


def _is_module(name: str) -> bool:
    stem = _ROOT.joinpath(*name.split("."))
    return stem.with_suffix(".py").is_file() or (stem / "__init__.py").is_file()


def _deciding(module: str, tree: ast.Module) -> ast.Module:
    """Return the tree of a module, which it changes, without what draws and without docstrings."""
    if module.startswith("analysis.figures."):
        tree.body = [node for node in tree.body if not (isinstance(node, ast.FunctionDef) and _draws(node))]
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [part for part in node.body if not _is_text(part)]
    return tree


def _draws(function: ast.FunctionDef) -> bool:
    arguments = [*function.args.args, *function.args.kwonlyargs]
    annotations = [function.returns, *(argument.annotation for argument in arguments)]
    named = (node for annotation in annotations if annotation is not None for node in ast.walk(annotation))
    return any(isinstance(node, ast.Name) and node.id in _DRAWN for node in named)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
