"""Parts of a long computation, each kept as soon as it is done: what was interrupted goes on where it stopped."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import Executor
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import analysis
import models
import scenarios
import sim
from scenarios.runs.disk import JsonError, abandoned, json_of, whole
from scenarios.runs.parallel import spread, through
from scenarios.runs.rundir import make_folder, source_digest, versions
from scenarios.views.terminal import Progress

_T = TypeVar("_T")
_Part = TypeVar("_Part", bound=Mapping[str, object])


def folder_of(out: Path, stem: str, question: Mapping[str, object], libraries: Sequence[str]) -> Path:
    """Return where parts are kept: same question and same code, same place.

    Parameters
    ----------
    out : folder of all runs
    stem : first part of the folder's name
    question : what decides the parts, as JSON holds it
    libraries : what decides them beside the libraries that decide a run

    Examples
    --------
    >>> first, second = (folder_of(Path("runs"), "fleet-collectors", {"top": top}, ["scipy"]) for top in (1, 2))
    >>> first == second, first.name[:17]
    (False, 'fleet-collectors-')
    """
    made_by = source_digest(models, sim, analysis, scenarios), versions(), [version(name) for name in libraries]
    text = json.dumps([question, *made_by], separators=(",", ":"), sort_keys=True)
    return out / f"{stem}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _of_seed(seed: object) -> Mapping[str, object]:
    return {"seed": seed}


def computed_parts(
    items: Sequence[_T],
    make: Callable[[_T], _Part],
    folder: Path,
    parts: Set[str],
    tell: Progress,
    *,
    force: bool = False,
    what: str = "judging worlds",
    named: Callable[[_T], Mapping[str, object]] = _of_seed,
    executor: Executor | None = None,
) -> list[_Part]:
    """Return what is made of every item: what is kept in a folder is read, the rest made in parallel and kept.

    Parameters
    ----------
    items : what `make` is called with, one by one; seeds, unless `named` says otherwise
    make : of a module, since other processes import it; what it returns is what JSON can hold, and has its item's names
    folder : where parts are kept, one file each; made if need be
    parts : keys that everything kept must have
    tell : told the share that is done
    force : make again what is kept
    what : how `tell` calls it
    named : by which names an item is told from the others, in what is made of it and in its file's name
    executor : what the work runs through; processes of this machine if not said

    Raises
    ------
    FolderError
        If the folder cannot be made.
    RunError
        If a process ends without an answer.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     computed_parts([3], lambda seed: {"seed": seed}, Path(folder), {"seed"}, lambda what, share: None)
    [{'seed': 3}]
    """
    make_folder(folder)
    _tidy(folder)
    files = [_file(folder, named(item)) for item in items]
    parts_done = dict[Path, _Part]()
    for item, file in zip(items, files, strict=True):
        part = None if force else _kept(file, named(item), parts)
        if part is not None:
            parts_done[file] = part
    missing = [item for item, file in zip(items, files, strict=True) if file not in parts_done]
    tell(what, len(parts_done) / len(files))
    try:
        for part in spread(make, missing) if executor is None else through(executor, make, missing):
            file = _file(folder, {name: part[name] for name in named(items[0])})
            _keep(file, part)
            parts_done[file] = part
            tell(what, len(parts_done) / len(files))
    finally:
        with suppress(OSError):  # a folder with parts stays
            folder.rmdir()
    return [parts_done[file] for file in files]


def read_part(folder: Path, names: Mapping[str, object], parts: Set[str]) -> Any:  # noqa: ANN401  # what JSON holds
    """Return what is kept of one item in a folder; None if nothing is, or it cannot be read."""
    return _kept(_file(folder, names), names, parts)


def keep_part(folder: Path, names: Mapping[str, object], part: Mapping[str, object]) -> None:
    """Keep what was made of one item in a folder that is there, all of it or nothing."""
    _keep(_file(folder, names), part)


def digest(parts: Sequence[Mapping[str, object]]) -> str:
    """Return the SHA-256 digest of parts in their order, as canonical JSON: sorted keys, shortest digits, no spaces.

    Examples
    --------
    >>> digest([{"seed": 1, "share": 0.5}]) == digest([{"share": 0.5, "seed": 1}])
    True
    """
    text = json.dumps(list(parts), separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _keep(file: Path, part: Mapping[str, object]) -> None:
    """Keep what was made of an item, all of it or nothing."""
    with whole(file) as unfinished:
        unfinished.write_text(json.dumps(part), encoding="utf-8")


def _tidy(folder: Path) -> None:
    """Remove what processes left half-written that were killed."""
    for unfinished in abandoned(folder):
        unfinished.unlink(missing_ok=True)


def _kept(file: Path, names: Mapping[str, object], parts: Set[str]) -> Any:  # noqa: ANN401  # what JSON holds
    """Return what was kept of an item; None if nothing was, or it cannot be read."""
    try:
        part = json_of(file)
    except (OSError, JsonError):
        return None
    return part if isinstance(part, dict) and part.keys() >= parts and part.items() >= names.items() else None


def _file(folder: Path, names: Mapping[str, object]) -> Path:
    return folder / f"{'-'.join(str(name) for name in names.values())}.json"
