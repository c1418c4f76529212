"""The command `wsc check`."""

from typing import Annotated

import typer

from scenarios.commands.guard import answer, guard
from scenarios.commands.options import Json, Sets
from scenarios.files.faults import Fault, FaultsError
from scenarios.files.options import refuse


@guard
def check(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE…", help="Scenario files, or names of the library.")
    ] = None,
    *,
    sets: Sets = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of scenario files, for editors; takes no FILE.")
    ] = False,
    json: Json = False,
) -> None:
    """Check scenario files and print all their faults, without simulating anything."""
    if schema:
        _print_schema(files)
        return
    if not files:
        raise FaultsError([Fault("FILE…", 0, 0, "", "is needed: a scenario file, or a name of the library")])
    from scenarios.files.catalogue import checked
    from scenarios.files.loader import settings

    conclusion = checked(files, settings(sets or ()))
    answer(conclusion, json)
    if conclusion.faults:
        raise FaultsError(conclusion.faults)


def _print_schema(files: list[str] | None) -> None:
    from scenarios.files.json_schema import json_schema
    from scenarios.views.terminal import dumps

    if files:
        refuse("--schema", "is the same for all files, and takes none", " ".join(files))
    typer.echo(dumps(json_schema()))
