"""The command `wsc scorecard`."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from typer.models import OptionInfo

from scenarios.commands.guard import answer, folder, guard
from scenarios.commands.options import Json, Out, Seed, Workers, count, written
from scenarios.files import options

_MOST_MACHINES = 100_000
_MOST_DRAWS = 100_000
SIZES = (12, 25, 50, 100, 200, 400)


def _up_to(most: int, help: str) -> OptionInfo:
    """Return the option of a count of at most so many."""
    return written(partial(options.whole, most=most), "N", help=help)


def chosen(option: str, text: str, known: Sequence[str]) -> tuple[str, ...]:
    """Return which of the known names are written in a text, each once."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in known:
            options.refuse(option, f"should be of {', '.join(known)}", name)
    return names


def _corners(option: str, text: str) -> tuple[str, ...]:
    from scenarios.effects.scorecard.corners import CORNERS

    return chosen(option, text, tuple(CORNERS))


def _designs(option: str, text: str) -> tuple[str, ...]:
    from scenarios.effects.scorecard.designs import DESIGNS

    return chosen(option, text, DESIGNS)


def _estimators(_option: str, text: str) -> tuple[str, ...]:
    """Return names of ours, and references to those of other people, each once."""
    from analysis.effects.methods import method, names
    from models.code.parts import is_part

    given = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    ours, own = ([name for name in given if is_part(name) == others] for others in (False, True))
    for name in ours:
        method(name, names(), own=True)
    return (*ours, *own)


@guard
def scorecard(
    *,
    fleets: Annotated[int, count(help="Number of simulated fleets, spread evenly over the corners.")] = 200,
    draws: Annotated[
        int,
        written(
            partial(options.whole, most=_MOST_DRAWS), "N", help="Draws of test machines of each size, in each fleet."
        ),
    ] = 500,
    machines: Annotated[int, _up_to(_MOST_MACHINES, help="Machines of each fleet.")] = 1000,
    sizes: Annotated[
        Sequence[int],
        written(partial(options.numbers_of, most=_MOST_MACHINES), "N,N,…", help="Numbers of test machines."),
    ] = SIZES,
    corners: Annotated[
        Sequence[str],
        written(_corners, "NAME,…", help="Corners (kinds of fleets), such as base,rough,upgrade; by default all."),
    ] = (),
    estimators: Annotated[
        Sequence[str],
        written(
            _estimators,
            "NAME,…",
            help="Estimators by name, or your own as mine.py:Mine; by default all of ours. Yours are not "
            "judged on crossover, one_job and staged. Kept fleets are judged anew when your file changes, but not when "
            "a file changes that it imports.",
        ),
    ] = (),
    designs: Annotated[
        Sequence[str],
        written(
            _designs,
            "NAME,…",
            help="Designs: day, week, crossover, by_platform, balanced, covering, paired, one_job, staged; by "
            "default all.",
        ),
    ] = (),
    executor: Annotated[
        str, typer.Option(metavar="WHERE", help="processes, or dask:ADDRESS of a Dask scheduler.")
    ] = "processes",
    workers: Workers = None,
    seed: Seed = 1,
    out: Out = Path("runs"),
    json: Json = False,
) -> None:
    """Judge every estimator on simulated fleets of 33 kinds: coverage, bias, power, machines needed.

    Judged fleets are kept, so an interrupted scorecard resumes.
    """
    from models.code.parts import is_part
    from scenarios.effects.scorecard import scorecard as cards
    from scenarios.effects.scorecard.corners import CORNERS
    from scenarios.effects.scorecard.designs import DESIGNS, WITHOUT_TABLES
    from scenarios.effects.scorecard.designs import designs as designs_of
    from scenarios.effects.scorecard.pieces import ScorecardQuestion, cut
    from scenarios.runs.executors import checked
    from scenarios.views.terminal import progress

    fewest = min(sizes)
    if 2 * fewest > machines:
        problem = f"should have one of at most half of {machines} machines"
        options.refuse("--sizes", problem, ",".join(map(str, sizes)))
    chosen = tuple(name for name in DESIGNS if not designs or name in designs)
    if estimators and all(map(is_part, estimators)) and WITHOUT_TABLES.issuperset(chosen):
        able = ", ".join(name for name in DESIGNS if name not in WITHOUT_TABLES)
        options.refuse("--designs", f"estimators of your own are judged on {able} alone", ",".join(chosen))
    question = ScorecardQuestion.of(tuple(estimators), sizes, draws, machines, chosen)
    pieces = cut(tuple(corners) or tuple(CORNERS), fleets, seed)
    checked(executor)
    with progress(quiet=json) as tell, folder("--out"):
        fleets_of = partial(designs_of, names=chosen)
        card = cards.scorecard(question, pieces, fleets_of, out, tell, where=executor, workers=workers)
    answer(card, json)
