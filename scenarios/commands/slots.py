"""The command `wsc slots`."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, get_args

import typer

from models.fleet.metrics import MetricName
from scenarios.commands.guard import answer, guard
from scenarios.commands.options import Confidence, Estimator, Jobs, Json, written
from scenarios.commands.tables import NamedTables, reads_tables
from scenarios.files import options
from scenarios.files.faults import Fault, FaultsError

_CUT, _ESTIMATE = "The cut", "Experiments on slots"
_MOST_MOVED, _SEED, _ESTIMATOR = 0.02, 1, "adjusted"


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
        written(partial(options.whole, least=2), "N", help="Slots; those of --previous if left out.", panel=_CUT),
    ] = None,
    previous: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Former cut (machine, slot) that is mended with the fewest moves."),
    ] = None,
    most_moved: Annotated[
        float | None,
        written(
            partial(options.share, zero=True),
            "SHARE",
            help="Machines that may move to keep slots balanced, 2% if left out; counts may require more.",
            panel=_CUT,
        ),
    ] = None,
    experiments: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Plan of experiments on the slots of --previous to estimate: experiment, slot, treated, since.",
            rich_help_panel=_ESTIMATE,
        ),
    ] = None,
    estimator: Estimator = _ESTIMATOR,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File for the cut: machine, slot; .csv or .parquet.", rich_help_panel=_CUT),
    ] = None,
    jobs: Jobs = None,
    confidence: Confidence = 0.95,
    metrics: Annotated[
        Sequence[MetricName] | None,
        written(
            _metrics,
            "NAME,…",
            help="Metrics of a run: of noise floors several, of experiments one; by default the scenario's.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        written(
            partial(options.whole, least=0, most=2**63 - 1), "N", help="Seed of the cut; 1 if left out.", panel=_CUT
        ),
    ] = None,
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

    several, of_cut = tuple(metrics or ()), {"slots": slots, "most_moved": most_moved, "out": out, "seed": seed}
    if wrong := list(_apart(of_cut, several, experiments, previous, estimator)):
        raise FaultsError(wrong)
    if experiments is None:
        question = SlotsQuestion(
            slots,
            previous,
            _MOST_MOVED if most_moved is None else most_moved,
            confidence,
            several,
            _SEED if seed is None else seed,
            out,
        )
        with progress(quiet=json) as tell:
            answer(cut(tables.sources, question, jobs, tell, tables.recipe), json)
        return
    metric = several[0] if several else None
    with progress(quiet=json) as tell:
        of_plan = ExperimentsQuestion(previous or Path(), experiments, estimator, confidence, metric)
        conclusion = estimated(tables.sources, of_plan, jobs, tell, tables.recipe)
    answer(conclusion, json)
    raise typer.Exit(0 if conclusion.trusted else 1)


def _apart(
    of_cut: Mapping[str, object],
    metrics: Sequence[MetricName],
    experiments: Path | None,
    previous: Path | None,
    estimator: str,
) -> Iterator[Fault]:
    """Yield the options that do not go with what is asked: a cut, or estimates of experiments."""
    if experiments is None:
        if estimator != _ESTIMATOR:
            yield Fault("", 0, 0, "estimator", "is of --experiments; the noise floor is that of adjusted", estimator)
        return
    for name, value in of_cut.items():
        if value is not None:
            yield Fault("", 0, 0, name, "is of the cut, and --experiments makes none", str(value))
    if len(metrics) > 1:
        yield Fault("", 0, 0, "metrics", "should be one with --experiments", ",".join(metrics))
    if previous is None:
        yield Fault("", 0, 0, "previous", "should name the slots that the experiments ran on")
