"""The command `wsc scenarios`."""

from typing import TYPE_CHECKING

from scenarios.commands.guard import guard, say
from scenarios.commands.options import Json

if TYPE_CHECKING:
    from rich.console import Console


@guard
def scenarios(json: Json = False) -> None:
    """List the shipped scenarios."""
    from scenarios.files import loader

    say(loader.shipped(), _show_shipped, json)


def _show_shipped(payload: list[dict[str, str]], console: "Console") -> None:
    from rich.table import Table

    table = Table("scenario", "kind", "what it shows")
    for entry in payload:
        table.add_row(entry["name"], entry["kind"], entry["description"])
    console.print(table)
