"""The command `wsc slots`."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, get_args

import typer

from models.fleet.metrics import MetricName
from scenarios.commands.guard import answer, guard
from scenarios.commands.options import Confidence, Estimator, Jobs, Json, Seed, written
from scenarios.commands.tables import NamedTables, reads_tables
from scenarios.files import options
from scenarios.files.faults import Fault, FaultsError


def _metrics(option: str, text: str) -> tuple[MetricName, ...]:
    return tuple(options.one_of(option, name, get_args(MetricName)) for name in options.names_of(option, text))


@guard
@reads_tables(
    "Observations of your fleet without the feature, as wsc effect takes them: CSV or Parquet; a SELECT; or a run's "
    "folder."
)
def slots(
    tables: NamedTables,
    *,
    slots: Annotated[
        int | None,
        written(partial(options.whole, least=2), "N", help="Slots to cut; those of --previous if left out."),
    ] = None,
    previous: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Former cut (machine, slot) that is mended with the fewest moves."),
    ] = None,
    most_moved: Annotated[
        float,
        written(
            partial(options.share, zero=True),
            "SHARE",
            help="Machines that may move to keep slots balanced; counts may require more.",
        ),
    ] = 0.02,
    experiments: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Experiments that ran on the slots of --previous (experiment, slot, treated, since): estimate them.",
        ),
    ] = None,
    estimator: Estimator = "adjusted",
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File for the cut: machine, slot; .csv or .parquet."),
    ] = None,
    jobs: Jobs = None,
    confidence: Confidence = 0.95,
    metrics: Annotated[
        Sequence[MetricName] | None,
        written(_metrics, "NAME,…", help="Metrics of a run whose noise floors are told; by default the scenario's."),
    ] = None,
    seed: Seed = 1,
    json: Json = False,
) -> None:
    """Cut a fleet into equivalent slots for many experiments at once, or estimate those that ran on them.

    The status is 1 if an experiment has no verdict.
    """
    from scenarios.effects.experiments import ExperimentsQuestion
    from scenarios.effects.experiments import experiments as estimated
    from scenarios.effects.slots import SlotsQuestion
    from scenarios.effects.slots import slots as cut
    from scenarios.views.terminal import progress

    several = tuple(metrics or ())
    if experiments is None:
        question = SlotsQuestion(slots, previous, most_moved, confidence, several, seed, out)
        with progress(quiet=json) as tell:
            answer(cut(tables.sources, question, jobs, tell, tables.recipe), json)
        return
    if previous is None:
        raise FaultsError([Fault("", 0, 0, "previous", "should name the slots that the experiments ran on")])
    metric = several[0] if several else None
    with progress(quiet=json) as tell:
        of_plan = ExperimentsQuestion(previous, experiments, estimator, confidence, metric)
        conclusion = estimated(tables.sources, of_plan, jobs, tell, tables.recipe)
    answer(conclusion, json)
    raise typer.Exit(0 if conclusion.trusted else 1)
