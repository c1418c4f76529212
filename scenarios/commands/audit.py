"""The command `wsc audit`."""

from typing import Annotated

import typer

from scenarios.commands.guard import answer, guard
from scenarios.commands.options import JSON, Guards, Metric, MetricKind
from scenarios.commands.tables import NamedTables, reads_tables


def _list(context: typer.Context, wanted: bool) -> None:
    """List the guards, before it is missed that there are no tables; `--json` is eager, so that it is known here."""
    if wanted:
        from scenarios.effects.audit import GuardList

        answer(GuardList(), context.params["json"])
        raise typer.Exit


@guard
@reads_tables("Observations as wsc effect takes them; optionally jobs, and facts about the experiment as YAML or JSON.")
def audit(
    tables: NamedTables,
    *,
    metric: Metric = None,
    metric_kind: MetricKind = "rate",
    guards: Guards = None,
    list_: Annotated[
        bool, typer.Option("--list", callback=_list, help="List the guards and what they look for.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", is_eager=True, help=JSON)] = False,
) -> None:
    """Look for what would make an experiment's answer false; status 1 if anything is worse than a note."""
    from scenarios.effects.audit import audit as audited
    from scenarios.views.terminal import working

    with working("reading and auditing", quiet=json):
        conclusion = audited(tables.sources, metric, tables.recipe, guards or (), metric_kind)
    answer(conclusion, json)
    raise typer.Exit(0 if conclusion.clean else 1)
