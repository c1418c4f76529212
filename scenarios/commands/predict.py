"""The command `wsc predict`."""

from collections.abc import Sequence
from typing import Annotated

import typer

from scenarios.commands.guard import answer, guard
from scenarios.commands.options import Benchmarks, Clocks, From, Json, Platforms, Ratio, Service, written
from scenarios.commands.tables import NamedTables, reads_log
from scenarios.files import options


@guard
@reads_log
def predict(
    read: NamedTables,
    *,
    origin: From,
    to: Annotated[Sequence[str], written(options.names_of, "PLATFORM,…", help="Platforms to predict for.")],
    platforms: Platforms = None,
    benchmarks: Benchmarks = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="Method of prediction, or your own as FILE.py:NAME; by default testbed, or published if the log "
            "has no CPU time."
        ),
    ] = None,
    service: Service = None,
    instruction_ratio: Ratio = None,
    clock: Clocks = None,
    json: Json = False,
) -> None:
    """Predict CPU and response time of a service on platforms where it never ran, from its log on one platform."""
    from scenarios.crossplatform import predict as predictions
    from scenarios.crossplatform.calibration import ServiceQuestion
    from scenarios.views.terminal import working

    ratio = (instruction_ratio[0], instruction_ratio[1]) if instruction_ratio is not None else None
    log, recipe = read.sources[0], read.recipe
    question = ServiceQuestion(
        log, origin, tuple(to), platforms, benchmarks, method, service, ratio, clock or {}, recipe
    )
    with working("predicting", quiet=json):
        predicted = predictions.predict(question)
    answer(predicted, json)
