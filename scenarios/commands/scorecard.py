"""The command `wsc scorecard`."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from scenarios.commands.guard import answer, folder, guard
from scenarios.files.options import numbers_of, refuse, whole

_MOST_MACHINES = 100_000
_MOST_DRAWS = 100_000
SIZES = "12,25,50,100,200,400"


@guard
def scorecard(
    *,
    fleets: Annotated[str, typer.Option(metavar="N", help="Simulated fleets; corners take turns.")] = "200",
    draws: Annotated[
        str, typer.Option(metavar="N", help="Draws of test machines of each size, in each fleet.")
    ] = "500",
    machines: Annotated[str, typer.Option(metavar="N", help="Machines of each fleet.")] = "1000",
    sizes: Annotated[str, typer.Option(metavar="N,N,…", help="Numbers of test machines.")] = SIZES,
    corners: Annotated[str | None, typer.Option(metavar="NAME,…", help="Corners of the sweep; all of them.")] = None,
    estimators: Annotated[str | None, typer.Option(metavar="NAME,…", help="Estimators; all of them.")] = None,
    designs: Annotated[str | None, typer.Option(metavar="NAME,…", help="Designs; all of them.")] = None,
    executor: Annotated[
        str, typer.Option(metavar="WHERE", help="processes, or dask:ADDRESS of a Dask scheduler.")
    ] = "processes",
    workers: Annotated[str | None, typer.Option(metavar="N", help="Processes; one for each processor.")] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of each corner's first fleet.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder that the runs' folders go into.")] = Path("runs"),
    json: Annotated[bool, typer.Option("--json", help="Print one JSON value and nothing else.")] = False,
) -> None:
    """Put every estimator to fleets from all corners of a sweep: coverage, bias, power, machines needed.

    Fleets are kept as they are done; what was interrupted goes on where it stopped.
    """

    from scenarios.effects.scorecard import designs as offered
    from scenarios.effects.scorecard import scorecard as cards
    from scenarios.effects.scorecard.corners import CORNERS
    from scenarios.effects.scorecard.pieces import Asked, cut
    from scenarios.runs.executors import checked
    from scenarios.views.output import progress

    asked = Asked(
        _estimators(estimators),
        tuple(sorted(numbers_of("--sizes", sizes, _MOST_MACHINES))),
        whole("--draws", draws, _MOST_DRAWS),
        whole("--machines", machines, _MOST_MACHINES),
        _designs(designs),
    )
    if 2 * asked.sizes[0] > asked.machines:
        refuse("--sizes", f"should have one of at most half of {asked.machines} machines", sizes)
    pieces = cut(chosen("--corners", corners, tuple(CORNERS)), whole("--fleets", fleets), seed)
    count = whole("--workers", workers) if workers is not None else None
    checked(executor)
    with progress(quiet=json) as tell, folder("--out"):
        made = partial(offered.designs, names=asked.designs)
        card = cards.scorecard(asked, pieces, made, out, tell, where=executor, workers=count)
    answer(card, json)


def chosen(option: str, text: str | None, known: "Sequence[str]") -> tuple[str, ...]:
    """Return which of the known names are written in a text, each once; all of them if there is no text.

    Raises
    ------
    FaultsError
        If a name is not known.

    Examples
    --------
    >>> chosen("--corners", "churn, base", ("base", "tails", "churn")), chosen("--corners", None, ("base",))
    (('churn', 'base'), ('base',))
    """
    if text is None:
        return tuple(known)
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in known:
            refuse(option, f"should be of {', '.join(known)}", name)
    return names


def _designs(text: str | None) -> tuple[str, ...]:
    from scenarios.effects.scorecard.designs import DESIGNS

    wanted = chosen("--designs", text, DESIGNS)
    return tuple(name for name in DESIGNS if name in wanted)


def _estimators(text: str | None) -> tuple[str, ...]:
    from analysis.effects.methods import names

    return chosen("--estimators", text, names())
