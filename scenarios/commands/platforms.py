"""The command `wsc platforms`."""

from typing import Annotated

import typer

from scenarios.commands.guard import answer, guard
from scenarios.commands.options import Json, Platforms


@guard
def platforms(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME…]", help="Platforms to show in full.")] = None,
    *,
    file: Platforms = None,
    json: Json = False,
) -> None:
    """List the platforms that are known, or show one's spec sheet."""
    from scenarios.crossplatform import platforms as sheets

    answer(sheets.platforms(tuple(names or ()), file), json)
