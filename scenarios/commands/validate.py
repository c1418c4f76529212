"""The command `wsc validate`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scenarios.commands.guard import answer_each, folder, guard
from scenarios.commands.options import Force, Json, Metric, Out, SeedOfScenario, Sets

if TYPE_CHECKING:
    from scenarios.files.loader import Override

Named = Annotated[str, typer.Argument(metavar="SCENARIO", help="Name of a library scenario, or path of a file.")]


@guard
def validate(
    scenario: Named,
    *,
    draws: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Test clusters of each size; worlds of a cross-platform scenario; collectors of a profiled "
            "fleet. By default the scenario's, which is 500 clusters, 100 worlds or 100 collectors unless it "
            "says otherwise.",
        ),
    ] = None,
    machines: Annotated[
        str | None,
        typer.Option(
            metavar="N,N,…",
            help="Sizes of the test clusters; by default the scenario's, which are 25,50,100 unless it says otherwise.",
        ),
    ] = None,
    metric: Metric = None,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help="Methods of prediction for a cross-platform scenario: names, ours (all shipped), or FILE.py:NAME.",
        ),
    ] = None,
    estimators: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help="Estimators of a fleet's change: baseline, wsmeter, wsmeter-widened, names of wsc effect's, or yours "
            "as mine.py:Mine.",
        ),
    ] = None,
    out: Out = Path("runs"),
    seed: SeedOfScenario = None,
    sets: Sets = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Draw many test clusters, or many worlds of services, and count how often each interval was right."""
    from scenarios.files.loader import load_each, overrides

    values = overrides(sets, seed=seed, machines=machines, metric=metric)
    scenarios = load_each(scenario, [*values, *_draws(scenario, draws), *_methods(methods), *_estimators(estimators)])
    from scenarios.runs import execution
    from scenarios.views.terminal import progress

    with progress(quiet=json) as tell, folder("--out"):
        conclusions = [execution.validate(loaded, out, force, tell) for loaded in scenarios]
    answer_each(conclusions, json)


def _draws(reference: str, draws: str | None) -> list["Override"]:
    """Return what `--draws` sets in a scenario of its kind."""
    if draws is None:
        return []
    from scenarios.files.loader import Override, draws_path

    return [Override(draws_path(reference), draws, "--draws")]


def _methods(names: str | None) -> list["Override"]:
    """Return what `--methods` sets in a cross-platform scenario."""
    if names is None:
        return []
    from json import dumps
    from typing import get_args

    from scenarios.files.loader import Override
    from scenarios.files.schema import MethodName

    words = [name.strip() for name in names.split(",")]
    methods = [name for word in words for name in (get_args(MethodName) if word == "ours" else [word])]
    return [Override("analyses.crossplatform.methods", dumps(methods), "--methods", column=0)]


def _estimators(names: str | None) -> list["Override"]:
    """Return what `--estimators` sets in a scenario of a fleet."""
    if names is None:
        return []
    from json import dumps

    from scenarios.files.loader import Override

    listed = dumps([name.strip() for name in names.split(",")])
    return [Override("analyses.wsmeter.estimators", listed, "--estimators", column=0)]
