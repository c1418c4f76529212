"""The command `wsc predict`."""

from typing import Annotated

import typer

from scenarios.commands.guard import answer, guard, named_options
from scenarios.commands.options import Benchmarks, From, Json, Platforms, Ratio, Service, ServiceLog, ratio_of


@guard
def predict(
    log: ServiceLog,
    *,
    origin: From,
    to: Annotated[str, typer.Option(metavar="PLATFORM,…", help="Platforms to predict for.")],
    platforms: Platforms = None,
    benchmarks: Benchmarks = None,
    method: Annotated[
        str | None, typer.Option(help="Way to predict; by itself testbed, or published where nobody counted CPU time.")
    ] = None,
    service: Service = None,
    instruction_ratio: Ratio = None,
    json: Json = False,
) -> None:
    """Predict service and response time on platforms where a service never ran, from its log where it did."""
    from scenarios.crossplatform import predict as predictions

    ratio = ratio_of(instruction_ratio)
    targets = tuple(to.split(","))
    question = predictions.ServiceQuestion(log, origin, targets, platforms, benchmarks, method, service, ratio)
    with named_options():
        predicted = predictions.predict(question)
    answer(predicted, json)
