"""Parts of a long computation, each kept as soon as it is done: what was interrupted goes on where it stopped."""

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence, Set
from importlib.metadata import version
from pathlib import Path
from typing import Any

import analysis
import models
import scenarios
import sim
from scenarios.output import Progress
from scenarios.parallel import spread
from scenarios.provenance import source_digest, versions
from scenarios.rundir import make_folder


def folder_of(out: Path, stem: str, asked: Mapping[str, Any], libraries: Sequence[str]) -> Path:
    """Return where parts are kept: same question and same code, same place.

    Parameters
    ----------
    out : folder of all runs
    stem : first part of the folder's name
    asked : what decides the parts, as JSON holds it
    libraries : what decides them beside the libraries that decide a run

    Examples
    --------
    >>> one, other = (folder_of(Path("runs"), "fleet-collectors", {"top": top}, ["scipy"]) for top in (1, 2))
    >>> one == other, one.name[:17]
    (False, 'fleet-collectors-')
    """
    made_by = source_digest(models, sim, analysis, scenarios), versions(), [version(name) for name in libraries]
    text = json.dumps([asked, *made_by], separators=(",", ":"), sort_keys=True)
    return out / f"{stem}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def each(
    seeds: Sequence[int],
    make: Callable[[int], dict[str, Any]],
    folder: Path,
    parts: Set[str],
    tell: Progress,
    *,
    force: bool = False,
    what: str = "judging worlds",
) -> list[dict[str, Any]]:
    """Return what is made of every seed: what is kept in a folder is read, the rest made in parallel and kept.

    Parameters
    ----------
    seeds : what `make` is called with, one by one
    make : of a module, since other processes import it; what it returns holds its seed
    folder : where parts are kept, one file each; made if need be
    parts : keys that everything kept must have
    tell : told the share that is done
    force : make again what is kept
    what : how `tell` calls it

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
    ...     each([3], lambda seed: {"seed": seed}, Path(folder), {"seed"}, lambda what, share: None)
    [{'seed': 3}]
    """
    make_folder(folder)
    kept = {} if force else {seed: made for seed in seeds if (made := _kept(folder, seed, parts)) is not None}
    missing = [seed for seed in seeds if seed not in kept]
    tell(what, len(kept) / len(seeds))
    for made in spread(make, missing):
        _keep(folder, made)
        kept[made["seed"]] = made
        tell(what, len(kept) / len(seeds))
    return [kept[seed] for seed in seeds]


def _keep(folder: Path, made: dict[str, Any]) -> None:
    """Keep what was made of a seed, all of it or nothing."""
    file = _file(folder, made["seed"])
    unfinished = file.with_name(f"{file.name}.{os.getpid()}.partial")
    try:
        unfinished.write_text(json.dumps(made), encoding="utf-8")
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)


def _kept(folder: Path, seed: int, parts: Set[str]) -> dict[str, Any] | None:
    """Return what was kept of a seed; None if nothing was, or it cannot be read."""
    try:
        made = json.loads(_file(folder, seed).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return made if isinstance(made, dict) and made.get("seed") == seed and made.keys() >= parts else None


def _file(folder: Path, seed: int) -> Path:
    return folder / f"{seed}.json"
