"""Studies by simulation that rows of papers, and of the world, are judged by: each kept as it is done, by name."""

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path

from scenarios.papers.sources import Kept, Trial
from scenarios.views.terminal import Progress


def trials(out: Path) -> Mapping[str, Trial]:
    """Return every study, which keeps what it has done in a folder.

    Parameters
    ----------
    out : folder of all runs
    """
    studies: Mapping[str, Trial] = {
        "core_seconds": _core_seconds,
        "guards": _guards,
        "planner": _planner,
        "regressions": _regressions,
        "scorecard": _scorecard,
        "watch": _watch,
    }
    return {name: partial(study, out) for name, study in studies.items()}


def _regressions(out: Path, *, progress: Progress, planted: int, healthy: int) -> Kept:
    from scenarios.profiling.regressions import regressions

    return asdict(regressions(planted, healthy, out, progress))


def _watch(out: Path, *, progress: Progress, planted: int, healthy: int) -> Kept:
    from scenarios.profiling.watch_trial import watched

    return asdict(watched(planted, healthy, out, progress))


def _core_seconds(out: Path, *, progress: Progress, scenario: str, draws: int, overrides: tuple[str, ...] = ()) -> Kept:
    from scenarios.profiling.core_seconds import CollectorStudy, many

    return asdict(many(CollectorStudy(scenario, draws, overrides), out, progress))


def _guards(out: Path, *, progress: Progress, fleets: int) -> Kept:
    from scenarios.effects.scorecard.guard_corpus import corpus

    return dict(corpus(out, progress, fleets))


def _planner(out: Path, *, progress: Progress) -> Kept:
    from scenarios.effects.design_trial import FLEETS, planner

    return dict(planner(FLEETS, out, progress))


def _scorecard(out: Path, *, progress: Progress, fleets: int, draws: int) -> Kept:
    from analysis.effects.methods import names
    from scenarios.effects.scorecard.corners import CORNERS
    from scenarios.effects.scorecard.designs import DESIGNS, designs
    from scenarios.effects.scorecard.pieces import SIZES, ScorecardQuestion, cut
    from scenarios.effects.scorecard.scorecard import scorecard

    plan = ScorecardQuestion(names(), SIZES, draws, designs=DESIGNS)
    return dict(scorecard(plan, cut(tuple(CORNERS), fleets), designs, out, progress).payload())
