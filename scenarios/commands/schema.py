"""The command `wsc schema`."""

import typer

from scenarios.commands.guard import guard


@guard
def schema() -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from scenarios.files.json_schema import json_schema
    from scenarios.views.terminal import dumps

    typer.echo(dumps(json_schema()))
