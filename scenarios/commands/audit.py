"""The command `wsc audit`."""

import typer

from scenarios.commands.guard import answer, guard
from scenarios.commands.options import Json, Metric
from scenarios.commands.tables import NamedTables, reads_tables


@guard
@reads_tables("Observations as wsc effect takes them; perhaps jobs, and what is known of the experiment, YAML or JSON.")
def audit(
    tables: NamedTables,
    *,
    metric: Metric = None,
    json: Json = False,
) -> None:
    """Name what would make an experiment's answer false; status 1 if anything is worse than a note."""
    from scenarios.effects.audit import audit as audited

    conclusion = audited(tables.sources, metric, tables.recipe)
    answer(conclusion, json)
    raise typer.Exit(0 if conclusion.clean else 1)
