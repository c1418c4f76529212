"""The command `wsc check`."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scenarios.commands.guard import guard, say
from scenarios.commands.options import Json, Sets, overrides

if TYPE_CHECKING:
    from rich.console import Console


@guard
def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="Scenario files, or names of the library.")],
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Check scenario files and print all their faults, without simulating anything."""
    from scenarios.files.faults import Fault, FaultsError
    from scenarios.files.loader import load_each

    found, checked = list[Fault](), list[dict[str, Any]]()
    for file in files:
        names, faults = list[str](), list[Fault]()
        try:
            names = [one.name for one in load_each(file, overrides(sets))]
        except FaultsError as error:
            faults = error.faults
        checked.append({"file": file, "scenarios": names, "faults": [asdict(fault) for fault in faults]})
        found += faults
    say({"kind": "check", "files": checked}, _show_checked, json)
    if found:
        raise FaultsError(found)


def _show_checked(payload: dict[str, Any], console: "Console") -> None:
    for one in payload["files"]:
        count = f" in {len(one['scenarios'])} scenarios" if len(one["scenarios"]) > 1 else ""
        if not one["faults"]:
            console.print(f"{one['file']}: no faults{count}", markup=False, soft_wrap=True)
