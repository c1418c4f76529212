"""The commands that repeat a scorecard or a sweep, from what their pieces and runs say."""

import itertools
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path

from ruamel.yaml import YAML

from analysis.effects.methods import names
from scenarios.effects.scorecard.card import Card
from scenarios.effects.scorecard.corners import CORNERS
from scenarios.effects.scorecard.designs import DESIGNS
from scenarios.effects.scorecard.pieces import Piece, cut
from scenarios.effects.scorecard.scorecard import Scorecard
from scenarios.views.conclusion import Payload

_PREFIX = "scorecard-"
USUAL = {
    "fleets": "200",
    "draws": "500",
    "machines": "1000",
    "sizes": "12,25,50,100,200,400",
    "seed": "1",
    "out": "runs",
}
"""What `wsc scorecard` takes if nothing is said."""


def scorecard(card: Scorecard) -> str:
    """Return `wsc scorecard` with every option that was not as it is if nothing is said."""
    pieces = [Piece(truth.corner, truth.seed) for truth in card.truths]
    corners, first = _corners(pieces), min(truth.seed for truth in pieces)
    options = {
        "fleets": str(_fleets(corners, first, pieces)),
        "draws": str(card.draws),
        "machines": str(card.machines),
        "sizes": _listed(card.sizes),
        "corners": _chosen(corners, tuple(CORNERS)),
        "estimators": _chosen(_estimators(card.card), names()),
        "designs": _chosen(_designs(card), DESIGNS),
        "seed": str(first),
        "out": _out(card.folder),
    }
    sizes = _listed(size for size in map(int, USUAL["sizes"].split(",")) if 2 * size <= card.machines)
    usual = USUAL | {"sizes": sizes}
    unusual = {name: text for name, text in options.items() if text and text != usual.get(name)}
    return " ".join(["wsc scorecard", *(f"--{name} {shlex.quote(text)}" for name, text in unusual.items())])


def _corners(pieces: Sequence[Piece]) -> tuple[str, ...]:
    """Return the corners in the order in which they took turns: those with a fleet more come first."""
    counts = Counter(piece.corner for piece in pieces)
    place = {name: i for i, name in enumerate(CORNERS)}
    return tuple(sorted(counts, key=lambda name: (-counts[name], place.get(name, len(place)), name)))


def _fleets(corners: Sequence[str], first: int, pieces: Sequence[Piece]) -> int:
    """Return how many fleets, corners taking turns, hold all the pieces."""
    most = len(corners) * (max(piece.seed for piece in pieces) - first + 1)
    place = {piece: i + 1 for i, piece in enumerate(cut(corners, most, first))}
    return max(place[piece] for piece in pieces)


def _estimators(card: Card) -> tuple[str, ...]:
    """Return the estimators that can be asked for; designs' own are judged anyway."""
    known = set(names())
    judged = dict.fromkeys(name for rows in (card.corners, card.silent) if len(rows) for name in rows["estimator"])
    return tuple(name for name in judged if name in known)


def _designs(card: Scorecard) -> tuple[str, ...]:
    return tuple(name for name in DESIGNS if any(name in truth.changes for truth in card.truths))


def _chosen(names: Sequence[str], every: Sequence[str]) -> str:
    """Return names as an option has them; nothing if they are all that there are, as they are ordered."""
    return "" if tuple(names) == tuple(every) else _listed(names)


def _listed(values: Iterable[object]) -> str:
    return ",".join(map(str, values))


def _out(folder: str) -> str:
    """Return the folder that a scorecard's folder is in, where that has its own name still."""
    path = Path(folder)
    return str(path.parent) if path.name.startswith(_PREFIX) else ""


def sweep(names: Sequence[str], values: Sequence[Mapping[str, object]]) -> tuple[str, str]:
    """Return a sweep's name and its file, whose scenario is STEM_base.yaml; nothing twice if the runs are no whole one.

    Parameters
    ----------
    names : of the runs' scenarios
    values : of each run, the settings by dotted path in which the runs differ
    """
    paths = list(values[0]) if values else []
    marks = {path: f"-{path.rpartition('.')[2]}-" for path in paths}
    plain = all(isinstance(value, str | int | float) for run in values for value in run.values())
    named = all(mark in name for mark in marks.values() for name in names)
    if not paths or not plain or not named or len(set(marks.values())) < len(paths):
        return "", ""
    paths.sort(key=lambda path: names[0].index(marks[path]))
    stems = {name[: name.index(marks[paths[0]])] for name in names}
    pairs = zip(names, values, strict=True)
    values = [{path: _as_named(run[path], marks[path], name) for path in paths} for name, run in pairs]
    axes = {path: _sorted(run[path] for run in values) for path in paths}
    if len(stems) > 1 or {tuple(run[path] for path in paths) for run in values} != {*itertools.product(*axes.values())}:
        return "", ""
    stem = stems.pop()
    seeds = axes.pop("seed", None)
    axes_and_seeds = {"scenario": f"{stem}_base.yaml", "axes": axes, **({"seeds": seeds} if seeds else {})}
    return stem, _file({"name": stem, "sweep": axes_and_seeds})


def _as_named(value: object, mark: str, name: str) -> object:
    """Return a value as the sweep's file wrote it, as far as the run's name says: 2 and not 2.0."""
    whole = isinstance(value, float) and value.is_integer() and f"{mark}{value}" not in name
    return int(str(value).partition(".")[0]) if whole and f"{mark}{value:.0f}" in name else value


def _sorted(values: Iterable[object]) -> list[object]:
    """Return values each once: numbers by size, all others by their text."""
    return sorted(
        dict.fromkeys(values), key=lambda value: (value, "") if isinstance(value, int | float) else (0, str(value))
    )


def _file(content: Payload) -> str:
    text, yaml = StringIO(), YAML()
    yaml.default_flow_style = None
    yaml.dump(content, text)
    return text.getvalue()
