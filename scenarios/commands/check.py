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

    every_fault, checked = list[Fault](), list[dict[str, Any]]()
    for file in files:
        names, faults = list[str](), list[Fault]()
        try:
            names = [scenario.name for scenario in load_each(file, overrides(sets))]
        except FaultsError as error:
            faults = error.faults
        checked.append({"file": file, "scenarios": names, "faults": [asdict(fault) for fault in faults]})
        every_fault += faults
    say({"kind": "check", "files": checked}, _show_checked, json)
    if every_fault:
        raise FaultsError(every_fault)


def _show_checked(payload: dict[str, Any], console: "Console") -> None:
    for row in payload["files"]:
        count = f" in {len(row['scenarios'])} scenarios" if len(row["scenarios"]) > 1 else ""
        if not row["faults"]:
            console.print(f"{row['file']}: no faults{count}", markup=False, soft_wrap=True)
