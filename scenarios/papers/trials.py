"""Studies by simulation that rows of papers, and of the world, are judged by: each kept as it is done, by name."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from scenarios.papers.evidence import Trial
from scenarios.views.output import Progress


def trials(out: Path) -> Mapping[str, Trial]:
    """Return every study, which keeps what it has done in a folder.

    Parameters
    ----------
    out : folder of all runs

    Examples
    --------
    >>> sorted(trials(Path("runs")))
    ['core_seconds', 'guards', 'planner', 'regressions', 'scorecard']
    """
    all_of_them: Mapping[str, Trial] = {
        "core_seconds": _core_seconds,
        "guards": _guards,
        "planner": _planner,
        "regressions": _regressions,
        "scorecard": _scorecard,
    }
    return {name: partial(one, out) for name, one in all_of_them.items()}


def _regressions(out: Path, *, progress: Progress, planted: int, healthy: int) -> dict[str, Any]:
    from scenarios.profiling.regressions import regressions

    return regressions(planted, healthy, out, progress)


def _core_seconds(
    out: Path, *, progress: Progress, scenario: str, draws: int, overrides: tuple[str, ...] = ()
) -> dict[str, Any]:
    from scenarios.profiling.core_seconds import Asked, many

    return many(Asked(scenario, draws, overrides), out, progress)


def _guards(out: Path, *, progress: Progress, fleets: int) -> dict[str, Any]:
    from scenarios.effects.scorecard.guard_corpus import corpus

    return corpus(out, progress, fleets)


def _planner(out: Path, *, progress: Progress) -> dict[str, Any]:
    from scenarios.effects.design_trial import FLEETS, planner

    return planner(FLEETS, out, progress)


def _scorecard(out: Path, *, progress: Progress, fleets: int, draws: int) -> dict[str, Any]:
    from analysis.effects.methods import names
    from scenarios.effects.scorecard.corners import CORNERS
    from scenarios.effects.scorecard.designs import DESIGNS, designs
    from scenarios.effects.scorecard.pieces import SIZES, Asked, cut
    from scenarios.effects.scorecard.scorecard import scorecard

    asked = Asked(names(), SIZES, draws, designs=DESIGNS)
    return scorecard(asked, cut(tuple(CORNERS), fleets), designs, out, progress)
