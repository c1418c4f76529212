"""The command `wsc check`."""

from typing import Annotated

import typer

from scenarios.commands.guard import answer, guard
from scenarios.commands.options import Json, Sets


@guard
def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="Scenario files, or names of the library.")],
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Check scenario files and print all their faults, without simulating anything."""
    from scenarios.files.catalogue import checked
    from scenarios.files.faults import FaultsError
    from scenarios.files.loader import settings

    conclusion = checked(files, settings(sets or ()))
    answer(conclusion, json)
    if conclusion.faults:
        raise FaultsError(conclusion.faults)
