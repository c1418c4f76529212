"""The command `wsc reproduce`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from models.errors import InputError
from scenarios.commands.guard import folder, guard, say
from scenarios.commands.options import Json

if TYPE_CHECKING:
    from scenarios.runs.rundir import Run
    from scenarios.views.output import Progress


@guard
def reproduce(
    what: Annotated[str, typer.Argument(metavar="[ID|PAPER|all]", help="What to redraw.")] = "all",
    *,
    out: Annotated[Path, typer.Option(help="Folder for figures and tables.")] = Path("figures"),
    runs: Annotated[Path, typer.Option(help="Folder of the runs that they are made from.")] = Path("runs"),
    list_: Annotated[bool, typer.Option("--list", help="Say what there is.")] = False,
    json: Json = False,
) -> None:
    """Redraw published figures and tables from simulated fleets, and say which findings hold."""
    from scenarios.papers import reproduce as papers
    from scenarios.papers.evidence import Sources
    from scenarios.papers.trials import trials
    from scenarios.runs.rundir import make_folder
    from scenarios.views.output import progress

    if list_:
        say(papers.listing(), papers.show_listing, json)
        return
    papers.chosen(what)
    with folder("--out"):
        make_folder(out)
    with progress(quiet=json) as tell, folder("--runs"):
        rows = papers.reproduce(what, out, Sources(_obtain(runs), tell, _judge(runs), trials(runs)))
    say(rows, papers.show, json)


def _obtain(out: Path) -> Callable[[str, Mapping[str, Any], "Progress"], "Run"]:
    """Return how to get the run of a library scenario with other values."""
    from scenarios.files.loader import load
    from scenarios.files.source import Override
    from scenarios.runs import execution
    from scenarios.views.output import dumps

    def obtain(name: str, values: Mapping[str, Any], tell: "Progress") -> "Run":
        overrides = [Override(path, dumps(value), "value") for path, value in values.items()]
        return execution.obtain(load(name, overrides), out, False, tell)

    return obtain


def _judge(out: Path) -> Callable[[str, Mapping[str, Any], "Progress"], list[dict[str, Any]]]:
    """Return how to get judged worlds, or judged collectors, of a library scenario with other values."""
    from scenarios.crossplatform.worlds import worlds
    from scenarios.files.loader import load
    from scenarios.files.schema import ProfileScenario, ServiceScenario
    from scenarios.files.source import Override
    from scenarios.profiling.validate import validate
    from scenarios.views.output import dumps

    def judge(name: str, values: Mapping[str, Any], tell: "Progress") -> list[dict[str, Any]]:
        scenario = load(name, [Override(path, dumps(value), "value") for path, value in values.items()])
        if isinstance(scenario, ProfileScenario):
            return [validate(scenario, out, False, tell)]
        if not isinstance(scenario, ServiceScenario):
            raise InputError(f"{name}: is a {scenario.kind}, of which no worlds are judged")
        return worlds(scenario, out, False, tell)

    return judge
