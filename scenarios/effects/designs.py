"""The designs of experiments that the scorecard tries on every simulated fleet, as cells that estimators take."""

from collections.abc import Iterator

from analysis.effects.cells import Cells
from analysis.effects.study import Study, potential
from scenarios.effects.fleets import Fleet, Span, fleet
from scenarios.effects.pieces import Design


def designs(corner: str, seed: int, machines: int) -> Iterator[Design]:
    """Yield the designs that can be tried on a fleet of the sweep, each simulated course made into cells.

    day: a day, the day before as the past. week: a week and the week before. crossover: 24 hours in which machines
    switch the feature on and off by the hour, where it can be switched; one course for each random schedule.

    Parameters
    ----------
    corner : its name
    seed : of the fleet
    machines : times those of the corner

    Raises
    ------
    FaultsError
        If there is no such corner.

    Examples
    --------
    >>> [(one.name, len(one.courses)) for one in designs("base", 1, 50)]
    [('day', 1), ('week', 1), ('crossover', 2)]
    """
    made = fleet(corner, seed, machines)
    yield Design("day", (_cells(made, made.day),), made.day.truth)
    yield Design("week", (_cells(made, made.week),), made.week.truth)
    if made.crossovers:
        courses = tuple(Study.of(table, made.jobs).cells for table in made.crossovers)
        yield Design("crossover", courses, made.crossover_truth)


def _cells(made: Fleet, span: Span) -> Cells:
    return potential(span.before, span.off, span.on, made.jobs)
