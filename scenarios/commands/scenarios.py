"""The command `wsc scenarios`."""

from scenarios.commands.guard import answer, guard
from scenarios.commands.options import Json


@guard
def scenarios(json: Json = False) -> None:
    """List the shipped scenarios."""
    from scenarios.files.catalogue import shipped

    answer(shipped(), json)
