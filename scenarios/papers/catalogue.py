"""Every row of the papers and of the world, by its id, and what rows are made from."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from models.errors import InputError
from scenarios.crossplatform.worlds import worlds
from scenarios.files.loader import Override, load
from scenarios.files.schema import AnyScenario, ProfileScenario, ServiceScenario
from scenarios.papers import crossplatform, gwp, occupancy, world, wsmeter
from scenarios.papers.rows import Row
from scenarios.papers.sources import Kept, Sources
from scenarios.papers.trials import trials
from scenarios.profiling.validate import validate
from scenarios.runs.execution import obtain
from scenarios.runs.rundir import Run
from scenarios.views.numbers import closest
from scenarios.views.terminal import Progress, dumps

_PAPERS: Final = (wsmeter.ROWS, occupancy.ROWS, crossplatform.ROWS, gwp.ROWS, world.ROWS)
ROWS: Final[dict[str, Row]] = {row.id: row for rows in _PAPERS for row in rows}
"""Every row that can be reproduced, by its id ``paper/row``: the paper is the module that declares it."""


def chosen(which: str) -> list[str]:
    """Return the ids that a user asked for: one id (its last part where no other ends so), all of a paper, or ``all``.

    Examples
    --------
    >>> chosen("wsmeter/table2")
    ['wsmeter/table2']
    >>> chosen("calibration")
    ['world/calibration']
    """
    ids = [row for row in ROWS if which in ("all", row, row.split("/")[0])]
    short = [row for row in ROWS if which == row.split("/")[1]]
    if not ids and len(short) == 1:
        return short
    if not ids:
        names = [*sorted({row.split("/")[0] for row in ROWS}), *ROWS]
        near = closest(which, names, "wsc reproduce --list")
        raise InputError(f"nothing to reproduce is called {which!r}; there are all, {', '.join(names)}; {near}")
    return ids


def library(runs: Path, progress: Progress, world: int = 1, changed: Mapping[str, object] | None = None) -> Sources:
    """Return what rows are made from: runs, worlds and studies of the library's scenarios, kept in a folder.

    Parameters
    ----------
    runs : the folder
    progress : told what is being done
    world : seed of every run whose seed a row does not say
    changed : what every run is with or without
    """

    def scenario_of(name: str, values: Mapping[str, object]) -> AnyScenario:
        return load(name, [Override(path, dumps(value), "value") for path, value in values.items()])

    def run(name: str, values: Mapping[str, object], tell: Progress) -> Run:
        return obtain(scenario_of(name, values), runs, False, tell)

    def judge(name: str, values: Mapping[str, object], tell: Progress) -> list[Kept]:
        scenario = scenario_of(name, values)
        if isinstance(scenario, ProfileScenario):
            return [dict(validate(scenario, runs, False, tell).payload())]
        if not isinstance(scenario, ServiceScenario):
            raise InputError(f"{name}: is a {scenario.kind}, of which no worlds are judged")
        return [dict(judged) for judged in worlds(scenario, runs, False, tell)]

    return Sources(run, progress, judge, trials(runs), world, changed or {})
