"""The command `wsc`: simulate a fleet, judge estimators, measure your own fleet, redraw published figures.

Each of its commands is a module here, of the same name, that is loaded when the command is asked for.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

PANELS: Mapping[str, tuple[str, ...]] = {
    "Simulate a fleet, and judge estimators on it": (
        *("scenarios", "run", "report", "validate", "scorecard", "check", "crosscheck"),
    ),
    "Did a change help my fleet?": ("design", "slots", "effect", "monitor", "audit", "convert", "wsmeter"),
    "Would more or other servers help my requests?": ("occupancy", "predict", "select", "rates", "platforms", "live"),
    "Where do my fleet's cycles go?": ("profile", "serve", "affinity"),
    "Redraw the papers' figures": ("reproduce",),
}
"""The commands by the question that they answer, in the order in which one needs them."""
NAMES = tuple(name for names in PANELS.values() for name in names)
"""Every command, in the order in which help lists them."""
_PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names}


class _Modules(Mapping[str, Any]):
    """Commands by name."""

    def __getitem__(self, name: str) -> object:
        if name not in NAMES:
            raise KeyError(name)
        command = getattr(import_module(f"scenarios.commands.{name}"), name)
        if not isinstance(command, typer.Typer):
            single = typer.Typer(add_completion=False)
            single.command(name)(command)
            command = single
        loaded = typer.main.get_command(command)
        vars(loaded)["rich_help_panel"] = _PANEL_OF[name]
        return loaded

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


class _Group(TyperGroup):
    """All commands, of which those are loaded that are asked for."""

    @property
    def commands(self) -> Any:  # noqa: ANN401  # a map; Typer's type of a command is private
        """The commands by name."""
        return _Modules()

    @commands.setter
    def commands(self, _none: object) -> None:
        """Take the commands that Typer knows, which are none."""

    def list_commands(self, ctx: object) -> list[str]:
        """Return the names of all commands, for help."""
        return list(NAMES)


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"wsc {version('wsc-testbed')}")
        raise typer.Exit


@app.callback()
def _about(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """A testbed for measuring warehouse-scale computers: from your own tables, logs and profiles, or simulated."""
