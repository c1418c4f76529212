"""The testbed for Python: simulate fleets, measure changes, read request logs, service logs and profiles.

A table may be a frame, a path, a SELECT or the folder of a run. Answers are frozen: their fields are the numbers,
`.frame()` gives them as a table, `.payload()` is what the command's ``--json`` prints, and a notebook shows what the
command prints. What you can mend is raised as a `WscError`.

Examples
--------
>>> import pandas as pd, wsc
>>> row = {"period": [0, 1] * 40, "job": "search", "machine": [f"m{i // 2}" for i in range(80)], "weight": 2.0}
>>> table = pd.DataFrame(row).assign(treated=lambda t: (t.period == 1) & (t.index < 40))
>>> table["value"] = 1.0 + 0.1 * table.treated + 0.001 * (table.index % 7)
>>> wsc.effect(table)
<EffectAnswer: faster by 9.96% (9.81% to 10.11%); zero is ruled out>
"""

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce, wraps
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from inspect import signature
from operator import or_
from pathlib import Path
from types import GenericAlias, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Literal,
    ParamSpec,
    TypeAlias,
    TypedDict,
    TypeVar,
    Union,
    Unpack,
    cast,
    get_args,
    get_origin,
)

from annotated_types import Ge, Gt, Lt, MinLen

if TYPE_CHECKING:
    import pandas as pd

    from analysis.effects.estimator import Estimator as AnyEstimator
    from analysis.tables.cells import Source
    from analysis.tables.queries import TableQuery
    from analysis.tables.recipe import Recipe
    from models.fleet.metrics import MetricName
    from scenarios.crossplatform.calibration import ServiceQuestion
    from scenarios.crossplatform.platforms import Sheets
    from scenarios.crossplatform.predict import Predicted
    from scenarios.crossplatform.select import SelectConclusion
    from scenarios.effects.audit import AuditAnswer
    from scenarios.effects.check_estimator import EstimatorChecks
    from scenarios.effects.design import DesignAnswer
    from scenarios.effects.effect import EffectAnswer
    from scenarios.effects.experiments import ExperimentsAnswer
    from scenarios.effects.monitor import MonitorAnswer
    from scenarios.effects.own_guards import GuardFunction
    from scenarios.effects.rates import RatesAnswer
    from scenarios.effects.scorecard.scorecard import Scorecard
    from scenarios.effects.slots import SlotsAnswer
    from scenarios.files.catalogue import Shipped
    from scenarios.files.schema import AnyScenario
    from scenarios.occupancy.occupancy import OccupancyConclusion
    from scenarios.papers.reproduce import Reproduced
    from scenarios.profiling.affinity import Assignment
    from scenarios.profiling.calls import CallRows
    from scenarios.profiling.query import ProfileDifference, ProfileRows
    from scenarios.profiling.regress import Regression
    from scenarios.profiling.watch import ProfileWatch
    from scenarios.runs.rundir import Run
    from scenarios.views.conclusion import Conclusion
    from scenarios.views.terminal import Progress
    from scenarios.wsmeter.own_tables import EstimatedChange, PlannedInstances

__all__ = [  # noqa: RUF022  # in the order in which one needs them
    "simulate",
    "load",
    "measure",
    "library",
    "validate",
    "scorecard",
    "check_estimator",
    "reproduce",
    "read",
    "effect",
    "audit",
    "design",
    "slots",
    "experiments",
    "monitor",
    "plan",
    "estimate",
    "requests",
    "service",
    "rates",
    "platforms",
    "profile",
    "affinity",
    "TableQuery",
    "Recipe",
    "Run",
    "Platform",  # noqa: F822  # loaded when it is asked for
    "Estimator",  # noqa: F822  # loaded when it is asked for
    "ExperimentTables",  # noqa: F822  # loaded when it is asked for
    "Finding",  # noqa: F822  # loaded when it is asked for
    "Governor",  # noqa: F822  # loaded when it is asked for
    "Mechanism",  # noqa: F822  # loaded when it is asked for
    "Policy",  # noqa: F822  # loaded when it is asked for
    "WscError",  # noqa: F822  # loaded when it is asked for
    "NotEnoughData",  # noqa: F822  # loaded when it is asked for
]

Table: TypeAlias = "pd.DataFrame | str | Path | TableQuery | Run"
"""A frame, a path, a SELECT as text or as a `TableQuery`, or a run."""
_Count: TypeAlias = Annotated[int, Ge(1)]
_Seed: TypeAlias = Annotated[int, Ge(0)]
_Positive: TypeAlias = Annotated[float, Gt(0)]
_Share: TypeAlias = Annotated[float, "a share between 0 and 1, such as 0.03", Gt(0), Lt(1)]
_Seconds: TypeAlias = Annotated[float, "a number of seconds above 0", Gt(0)]
_Scenario: TypeAlias = Annotated[str | Path, "the name of a scenario, or a path"]
_Names: TypeAlias = Annotated[str | Sequence[str], "a name or several"]
_Time: TypeAlias = Annotated[float | str | datetime, "seconds from the beginning, a text such as 7d, or a datetime"]
_Method: TypeAlias = Annotated[str, "the name of a method, or of your own as text, such as mine.py:Mine"]
_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T", str, int, float)
_TYPES = {
    "TableQuery": "analysis.tables.queries",
    "Recipe": "analysis.tables.recipe",
    "Run": "scenarios.runs.rundir",
    "Platform": "models.platforms",
    "Estimator": "analysis.effects.estimator",
    "ExperimentTables": "analysis.effects.estimator",
    "Finding": "analysis.audit.findings",
    "Governor": "sim.fleet.own_physics",
    "Mechanism": "sim.fleet.own_physics",
    "Policy": "models.queues.own_policies",
    "WscError": "models.errors",
    "NotEnoughData": "analysis.statistics",
}
"""Types, and the module that is loaded when one is asked for."""
_NAMES = {
    "Governor": "GovernorFunction",
    "Mechanism": "MechanismFunction",
    "Policy": "PolicyFunction",
    "NotEnoughData": "NotEnoughDataError",
}
"""What types are called there, if otherwise."""
_PACKAGES = ("models", "sim", "analysis", "scenarios")


def _judged(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return a function whose arguments are what its annotations say, or are refused by name before it runs.

    Its own signature has the types without their bounds, as people read it.
    """

    @wraps(function)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        from scenarios.files.faults import FaultsError
        from scenarios.runs import arguments

        try:
            bound = signature(function).bind(*args, **kwargs)
        except TypeError:
            arguments.known_names(function, kwargs, ())
            return function(*args, **kwargs)  # Python says what is missing
        bound.arguments.update(arguments.judged(function, bound.arguments))
        try:
            return function(*bound.args, **bound.kwargs)
        except FaultsError as error:
            raise arguments.of_arguments(function, error) from error.__cause__

    shown = signature(function)
    entries = [entry.replace(annotation=_bare(entry.annotation)) for entry in shown.parameters.values()]
    vars(called)["__signature__"] = shown.replace(parameters=entries)
    return called


def _bare(kind: object) -> object:
    """Return an annotation without bounds and words."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _bare(inner[0])
    if origin in {Union, UnionType}:
        return reduce(or_, map(_bare, inner))
    return GenericAlias(Sequence, (_bare(inner[0]),)) if origin is Sequence else kind


class Columns(TypedDict, total=False):
    """How the columns of a table become ours; see `Recipe`. What is left out is as in TABLE.columns.yaml beside it."""

    columns: Mapping[str, str]
    where: str
    period: str
    since: str
    until: str
    zone: str
    skip_bad: float | str


@_judged
def simulate(
    scenario: _Scenario, *, seed: int | None = None, out: str | Path = "runs", force: bool = False, **values: object
) -> "Run":
    """Return the run of a scenario, which is simulated unless an intact one is there.

    Parameters
    ----------
    scenario : the name of one in the library (`library()` lists them), or a path
    seed : of all random draws, 0 or more; that of the scenario if left out
    out : folder of all runs
    force : simulate even if an intact run is there
    values : other values than the file's; ``fleet__machines=500`` is the command's ``--set fleet.machines=500``, and
        ``platforms="mine.yaml"`` names a file of your own spec sheets

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = simulate("queue_small", out=folder, horizon_s=60)
    ...     run.manifest["scenario"], len(run.table("requests")) > 0
    ('queue_small', True)
    """
    from scenarios.runs.execution import obtain

    with _progress() as tell:
        return obtain(_scenario(scenario, seed, values), Path(out), force, tell)


@_judged
def load(run: str | Path) -> "Run":
    """Return a run that is there; its `table(name)` are frames.

    Raises
    ------
    WscError
        If the folder holds no finished run.

    Examples
    --------
    >>> try:
    ...     load("no/run")
    ... except ValueError as error:
    ...     type(error).__name__
    'RunError'
    """
    from scenarios.runs.rundir import open_run

    return open_run(Path(run))


@_judged
def measure(run: "Run | str | Path") -> "Conclusion":
    """Return what ``wsc run`` says of a run: its measurements, and what the estimators make of them.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     measure(simulate("queue_small", out=folder, horizon_s=60))
    <QueueConclusion: queueing ... s by the law, ... s in truth; 39.9% busy, 39.9% in truth>
    """
    from scenarios.runs import arguments
    from scenarios.runs.execution import measure as measured
    from scenarios.runs.execution import reopen

    path = arguments.file("run", run)
    scenario, opened = reopen(path)
    with _progress() as tell:
        return measured(scenario, opened, path.parent, tell)


def library() -> "Shipped":
    """Return the scenarios that come with the testbed.

    Examples
    --------
    >>> "small" in library().frame()["name"].tolist()
    True
    """
    from scenarios.files.catalogue import shipped

    return shipped()


@_judged
def validate(
    scenario: _Scenario,
    *,
    estimators: "str | Sequence[str | AnyEstimator]" = (),
    seed: int | None = None,
    out: str | Path = "runs",
    force: bool = False,
    **values: object,
) -> "Conclusion":
    """Return how often the intervals of the estimators are right on many test clusters of a scenario.

    Parameters
    ----------
    scenario, seed, out, force, values : as of `simulate`
    estimators : of a fleet's change: names of ours, ``mine.py:Mine``, or your own objects; those that the scenario
        names if left out

    Examples
    --------
    >>> import tempfile
    >>> def nothing(experiment):
    ...     return 0.0, -0.2, 0.2
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     drawn = dict(analyses__wsmeter__draws=5, analyses__wsmeter__machines=[10], fleet__machines=100)
    ...     scores = validate("small", estimators=["adjusted", nothing], out=folder, **drawn).frame()
    >>> scores["estimator"].tolist()
    ['adjusted', 'nothing']
    """
    from scenarios.runs import arguments
    from scenarios.runs.execution import validate as validated

    judged = arguments.parts("estimators", estimators)
    if judged:
        values["analyses__wsmeter__estimators"] = [each for each in judged if isinstance(each, str)]
    loaded = _scenario(scenario, seed, values)
    own = [each for each in judged if not isinstance(each, str)]
    with _progress() as tell:
        if not own:
            return validated(loaded, Path(out), force, tell)
        from scenarios.effects.own import OwnEstimator
        from scenarios.effects.validate import validate_fleet

        return validate_fleet(loaded, Path(out), force, tell, [OwnEstimator.of(each) for each in own])


@_judged
def scorecard(
    estimators: _Names = (),
    *,
    corners: _Names = (),
    designs: Annotated[_Names, MinLen(1)] = ("day",),
    fleets: _Count = 29,
    draws: _Count = 200,
    machines: _Count = 1000,
    sizes: _Count | Annotated[Sequence[_Count], MinLen(1)] = (50, 200),
    seed: _Seed = 1,
    workers: _Count | None = None,
    out: str | Path = "runs",
) -> "Scorecard":
    """Return how right estimators are over simulated fleets from all corners of a sweep; pieces that are done are kept.

    Parameters
    ----------
    estimators : names of ours and ``mine.py:Mine``; all of ours if left out
    corners, designs : names; all corners if left out
    fleets : corners take turns
    draws : of test machines of each size, in each fleet
    machines, sizes : of each fleet, and of its tests
    workers : processes; one for each processor if left out

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     question = dict(corners=["base"], fleets=1, draws=10, machines=40, sizes=[12])
    ...     card = scorecard(["adjusted", "cuped"], out=folder, **question)
    >>> card.frame()[["estimator", "draws"]].to_numpy().tolist()
    [['adjusted', 10], ['cuped', 10]]
    """
    from functools import partial

    from scenarios.effects.scorecard import scorecard as cards
    from scenarios.effects.scorecard.corners import CORNERS
    from scenarios.effects.scorecard.designs import DESIGNS
    from scenarios.effects.scorecard.designs import designs as designs_of
    from scenarios.effects.scorecard.pieces import ScorecardQuestion, cut
    from scenarios.runs import arguments

    arguments.one_of("corners", _several(corners), CORNERS)
    arguments.one_of("designs", _several(designs), DESIGNS)
    question = ScorecardQuestion.of(_several(estimators), _several(sizes), draws, machines, _several(designs))
    fleets_of = partial(designs_of, names=question.designs)
    with _progress() as tell:
        pieces = cut(_several(corners) or tuple(CORNERS), fleets, seed)
        return cards.scorecard(question, pieces, fleets_of, Path(out), tell, workers=workers)


@_judged
def check_estimator(estimator: "AnyEstimator | str", *, draws: _Count = 200) -> "EstimatorChecks":
    """Return what an estimator does right and wrong: units, order, repeated rows, confidence, false alarms, coverage.

    Parameters
    ----------
    estimator : your object, class or function, ``mine.py:Mine``, or a name of ours
    draws : experiments without a change, and as many with one

    Examples
    --------
    >>> def sure(experiment):
    ...     return 0.01, 0.0, 0.02
    >>> check_estimator(sure, draws=20).failed[:1]
    ('is wider for more confidence (80%, 99%)',)
    """
    from scenarios.effects.check_estimator import check_estimator as checked
    from scenarios.runs import arguments

    arguments.parts("estimator", estimator)
    with _progress() as tell:
        return checked(estimator, tell, draws)


@_judged
def reproduce(
    row: str, *, worlds: int | None = None, out: str | Path = "figures", runs: str | Path = "runs"
) -> "Reproduced":
    """Draw and judge a figure or table of a paper, such as ``wsmeter/table2``; all of a paper, or ``all``.

    Parameters
    ----------
    worlds : on how many simulated worlds it is judged; those that were measured before if not said
    out : folder of the figures
    runs : folder of the runs that they are drawn from; those that are missing are simulated

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numbers = reproduce("wsmeter/table2", out=folder).frame()
    >>> numbers.set_index("number").loc["rounded_compute", ["published", "measured"]].tolist()
    [21.0, 21.0]
    """
    from scenarios.papers import catalogue
    from scenarios.papers import reproduce as papers

    catalogue.chosen(row)
    with _progress() as tell:
        asked = papers.Asked(Path(runs), worlds)
        return papers.reproduce(row, Path(out), catalogue.library(Path(runs), tell), asked)


@_judged
def read(*tables: Table, metric: "MetricName | None" = None, **columns: Unpack[Columns]) -> "pd.DataFrame":
    """Return observations as `effect` takes them: period, job, machine, weight, value, treated and what else there is.

    Parameters
    ----------
    tables : taken together
    metric : of runs; that of their scenario if left out
    columns : expressions by our names, and what else a `Recipe` says

    Examples
    --------
    >>> import pandas as pd
    >>> export = pd.DataFrame({"day": 1, "svc": "a", "host": ["x", "y"], "cpu": ["500m", "2"], "instr": [3.0, 4.0]})
    >>> names = {"period": "day", "job": "svc", "machine": "host", "weight": "cpu", "value": "instr / 2"}
    >>> read(export, columns=names)[["weight", "value"]].to_numpy().tolist()
    [[0.5, 1.5], [2.0, 2.0]]
    """
    from scenarios.effects.observations import observed
    from scenarios.runs import arguments

    with _progress("reading"):
        sources = arguments.observations(tables)
        return observed(sources, metric, recipe=_recipe(read, columns, sources))[0].table


@_judged
def effect(
    *tables: Table,
    jobs: "Table | None" = None,
    estimator: "AnyEstimator | str" = "adjusted",
    confidence: _Share = 0.95,
    metric: "MetricName | None" = None,
    about: Annotated[str | Path, "the path of a file, YAML or JSON"] | None = None,
    guards: "str | GuardFunction | Sequence[str | GuardFunction]" = (),
    cluster: str | None = None,
    domain: str | None = None,
    target: Literal["instances", "quota", "sums"] | None = None,
    metric_kind: str = "rate",
    change: Literal["relative", "absolute"] | None = None,
    prices: "Table | None" = None,
    **columns: Unpack[Columns],
) -> "EffectAnswer":
    """Return by how much a feature changed a fleet's performance, and what would make that false: ``wsc effect``.

    Parameters
    ----------
    tables : observations, taken together: period, job, machine, weight, value, treated; or a run
    jobs : job, quota, instances of the whole fleet
    estimator : a name of ours (``wsc effect --help`` lists them), ``mine.py:Mine``, or your own object
    confidence : of the interval, 0..1
    metric : of a run; that of its scenario if left out
    about : facts about the experiment, YAML or JSON
    guards : your own, beside ours: functions of observations, jobs and about, or texts such as ``mine.py:racks_alike``
    cluster : a column; machines with the same value there are one cluster of the error
    domain : a column; machines with the same value disturb each other: the answer is everybody on against nobody on
    target : within a job each instance counts alike (instances), or by its quota; or a ratio of sums over all jobs
    metric_kind : rate (positive), mean (any numbers), proportion (0 to 1), ratio (value / exposure) or such as p99
    change : relative, or absolute as of a mean or a proportion if left out
    prices : of machines, rows `without` and `with` in place of platforms, as of `rates`: `.costs` says what work costs
    columns : expressions by our names, and what else a `Recipe` says

    Returns
    -------
    EffectAnswer
        `.change`, `.low`, `.high`, `.trusted`, `.verdict`; `.jobs()` has a row a job.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = {"period": [0, 1] * 40, "job": "search", "machine": [f"m{i // 2}" for i in range(80)], "weight": 2.0}
    >>> table = pd.DataFrame(rows).assign(treated=lambda t: (t.period == 1) & (t.index < 40))
    >>> answer = effect(table.assign(value=1.0 + 0.1 * table.treated + 0.001 * (table.index % 7)))
    >>> round(answer.change, 4), answer.jobs()["verdict"].tolist()
    (0.0996, ['gained'])
    """
    from scenarios.effects.effect import effect as estimated
    from scenarios.runs import arguments

    sources = arguments.observations(tables)
    with _progress("reading and estimating"):
        return estimated(
            sources,
            arguments.optional_table("jobs", jobs),
            estimator=estimator,
            confidence=confidence,
            by_job=True,
            metric=metric,
            about=None if about is None else Path(about),
            recipe=_recipe(effect, columns, sources),
            guards=_guards(guards),
            cluster=cluster,
            domain=domain,
            target=target,
            metric_kind=metric_kind,
            change=change,
            prices=arguments.optional_table("prices", prices),
        )


@_judged
def audit(
    *tables: Table,
    metric: "MetricName | None" = None,
    guards: "str | GuardFunction | Sequence[str | GuardFunction]" = (),
    metric_kind: str = "rate",
    **columns: Unpack[Columns],
) -> "AuditAnswer":
    """Return what would make an experiment's answer false: ``wsc audit``.

    Parameters
    ----------
    tables : observations, and perhaps the fleet's jobs and what is known of the experiment (YAML or JSON)
    guards : your own, beside ours, as in `effect`
    metric_kind : what `value` is, as in `effect`

    Examples
    --------
    >>> import pandas as pd, wsc
    >>> def few_rows(observations, jobs, about):
    ...     if len(observations) < 100:
    ...         return wsc.Finding("few_rows", "error", "fewer than 100 rows", remedy="measure longer")
    >>> rows = {"period": 1, "job": "a", "machine": range(30), "weight": 1.0, "value": 2.0, "treated": [0, 1] * 15}
    >>> str(audit(pd.DataFrame(rows), guards=[few_rows]).audit.findings[0])
    'error: few_rows: fewer than 100 rows'
    """
    from scenarios.effects.audit import audit as audited
    from scenarios.runs import arguments

    with _progress("reading and auditing"):
        sources = arguments.tables(tables)
        return audited(sources, metric, _recipe(audit, columns, sources), _guards(guards), metric_kind)


@_judged
def design(
    *tables: Table,
    detect: _Positive,
    power: _Share = 0.95,
    days: _Positive = 7,
    jobs: "Table | None" = None,
    crossover: bool = False,
    draws: Annotated[int, Ge(100)] = 500,
    seed: _Seed = 1,
    confidence: _Share = 0.95,
    spread: Annotated[float, Ge(0)] | None = None,
    apart: Annotated[float, Ge(0)] | None = None,
    assign: str | Path | None = None,
    metric: "MetricName | None" = None,
    metric_kind: str = "rate",
    change: Literal["relative", "absolute"] | None = None,
    domain: str | None = None,
    saturations: Sequence[float] = (0.0, 1.0),
    **columns: Unpack[Columns],
) -> "DesignAnswer":
    """Plan the experiment that finds a change of a given size: ``wsc design``.

    Parameters
    ----------
    tables : observations of the fleet without the feature, of two periods or more; or the name of a scenario
    detect : change of the fleet: relative, 0..1; of a mean or a proportion absolute, unless `change` is relative
    power : share of experiments that should detect it
    days : of the longer study, and of the time before
    draws : experiments rehearsed for each size, 100 or more
    confidence : of the interval afterwards, 0..1
    spread, apart : standard deviation of the change between jobs (twice `detect` if left out), and of what a machine
        adds to it (a quarter of `spread`)
    assign : file for the machines of the first design, which are drawn: machine, start_s, end_s, treated
    metric : of a run or a scenario; that of the scenario if left out
    metric_kind : rate, mean, proportion or ratio
    change : as of `effect`
    domain : a column; machines with the same value disturb each other, so these are drawn, not machines
    saturations : shares of a domain's machines that get the feature, to which domains are drawn

    Examples
    --------
    >>> import pandas as pd
    >>> rows = {"period": [1, 2] * 40, "job": "search", "machine": [f"m{i // 2}" for i in range(80)], "weight": 2.0}
    >>> past = pd.DataFrame(rows).assign(treated=0, value=lambda t: 1.0 + 0.01 * (t.index % 7))
    >>> designs = design(past, detect=0.05, days=1, draws=100).frame()
    >>> sorted(designs["estimator"])
    ['adjusted', 'balanced', 'cuped', 'paired', 'published']
    """
    from scenarios.effects.design import DesignQuestion
    from scenarios.effects.design import design as designed
    from scenarios.runs import arguments

    question = DesignQuestion(
        detect=detect,
        power=power,
        days=days,
        crossover=crossover,
        draws=draws,
        seed=seed,
        confidence=confidence,
        spread=spread,
        apart=apart,
        assign=None if assign is None else Path(assign),
        metric=metric,
        metric_kind=metric_kind,
        change=change,
        domain=domain,
        saturations=tuple(saturations),
    )
    sources = arguments.observations(tables)
    with _progress() as tell:
        recipe = _recipe(design, columns, sources)
        return designed(sources, question, arguments.optional_table("jobs", jobs), tell, recipe)


@_judged
def slots(
    *tables: Table,
    slots: Annotated[int, Ge(2)] | None = None,
    previous: "Table | None" = None,
    most_moved: Annotated[float, "a share from 0 to 1", Ge(0), Lt(1)] = 0.02,
    jobs: "Table | None" = None,
    confidence: _Share = 0.95,
    metrics: "Sequence[MetricName]" = (),
    seed: _Seed = 1,
    **columns: Unpack[Columns],
) -> "SlotsAnswer":
    """Cut a fleet into equivalent slots, any two of which can be compared, and tell their noise floor: ``wsc slots``.

    `.frame()` is the cut: machine, slot; `.pairs()` the noise floor of every pair.

    Parameters
    ----------
    tables : observations of the fleet without the feature, or runs
    slots : how many; of a former cut as many as it has
    previous : a former cut (machine, slot) that is mended with the fewest moves
    most_moved : share of the machines that may move to keep slots balanced; counts may require more
    jobs : job, quota of the whole fleet, by which the noise floor weighs jobs
    confidence : of the noise floor
    metrics : of runs, whose noise floors are told; that of the scenario if left out
    seed : of ties
    columns : as of `effect`

    Examples
    --------
    >>> import pandas as pd
    >>> rows = {"period": [0, 1] * 40, "job": "search", "machine": [f"m{i // 2}" for i in range(80)], "weight": 2.0}
    >>> past = pd.DataFrame(rows).assign(value=lambda t: 1.0 + 0.01 * (t.index % 7))
    >>> cut = slots(past, slots=4)
    >>> cut.frame()["slot"].value_counts().tolist(), len(cut.pairs())
    ([10, 10, 10, 10], 6)
    """
    from scenarios.effects.slots import SlotsQuestion
    from scenarios.effects.slots import slots as cut
    from scenarios.runs import arguments

    sources, former = arguments.observations(tables), arguments.optional_table("previous", previous)
    question = SlotsQuestion(slots, former, most_moved, confidence, tuple(metrics), seed)
    with _progress() as tell:
        recipe = _recipe(_slots, columns, sources)
        return cut(sources, question, arguments.optional_table("jobs", jobs), tell, recipe)


_slots = slots  # inside, the name is that of an argument


@_judged
def experiments(
    *tables: Table,
    slots: "Table",
    plan: "Table",
    jobs: "Table | None" = None,
    estimator: str = "adjusted",
    confidence: _Share = 0.95,
    metric: "MetricName | None" = None,
    **columns: Unpack[Columns],
) -> "ExperimentsAnswer":
    """Return what experiments on slots changed, and whether they interact: ``wsc slots --experiments``.

    Parameters
    ----------
    tables : observations before and during the experiments, or runs
    slots : which machine is in which slot, such as `.frame()` of `slots`
    plan : experiment, slot, treated (0 or 1), and perhaps since, the first period with the feature
    jobs, estimator, confidence, metric, columns : as of `effect`

    Examples
    --------
    >>> import pandas as pd
    >>> rows = {"period": [0, 1] * 80, "job": "search", "machine": [f"m{i // 2}" for i in range(160)], "weight": 2.0}
    >>> table = pd.DataFrame(rows).assign(value=lambda t: 1.0 + 0.01 * (t.index % 7))
    >>> cut = slots(table[table.period == 0], slots=4).frame()
    >>> table.loc[table.machine.isin(cut.machine[cut.slot == "1"]) & (table.period == 1), "value"] *= 1.1
    >>> plan = pd.DataFrame({"experiment": "a", "slot": ["1", "2"], "treated": [1, 0], "since": 1})
    >>> answer = experiments(table, slots=cut, plan=plan)
    >>> answer.frame()[["experiment", "zero_ruled_out"]].values.tolist()
    [['a', True]]
    """
    from scenarios.effects.experiments import ExperimentsQuestion
    from scenarios.effects.experiments import experiments as estimated
    from scenarios.runs import arguments

    sources = arguments.observations(tables)
    cut, planned = arguments.table("slots", slots), arguments.table("plan", plan)
    question = ExperimentsQuestion(cut, planned, estimator, confidence, metric)
    with _progress() as tell:
        recipe = _recipe(experiments, columns, sources)
        return estimated(sources, question, arguments.optional_table("jobs", jobs), tell, recipe)


@_judged
def monitor(
    *tables: Table,
    jobs: "Table | None" = None,
    every: Literal["period", "day"] | _Positive = "period",
    planned: _Count | None = None,
    estimator: str = "adjusted",
    confidence: _Share = 0.95,
    metric: "MetricName | None" = None,
    spending: Literal["any-time", "obrien-fleming", "pocock"] = "any-time",
    guards: "str | GuardFunction | Sequence[str | GuardFunction]" = (),
    metric_kind: str = "rate",
    change: Literal["relative", "absolute"] | None = None,
    target: Literal["instances", "quota", "sums"] | None = None,
    **columns: Unpack[Columns],
) -> "MonitorAnswer":
    """Return what an experiment says so far, with intervals that hold however often you look: ``wsc monitor``.

    Parameters
    ----------
    tables, jobs, estimator, confidence, metric, guards, change, target, columns : as of `effect`
    every : how often you look: after each period, each day, or each so many units of the periods
    planned : looks until the end
    metric_kind : as of `effect`, but no quantile
    spending : how the error is spent over looks: for ever, or up to the planned end (late, or evenly)

    Examples
    --------
    >>> import pandas as pd
    >>> rows = {"period": [0, 1] * 40, "job": "search", "machine": [f"m{i // 2}" for i in range(80)], "weight": 2.0}
    >>> table = pd.DataFrame(rows).assign(treated=lambda t: (t.period == 1) & (t.index < 40))
    >>> looks = monitor(table.assign(value=1.0 + 0.1 * table.treated + 0.001 * (table.index % 7)))
    >>> len(looks.frame()), bool(looks.frame()["low"].iloc[-1] > 0)
    (1, True)
    """
    from scenarios.effects.monitor import monitor as monitored
    from scenarios.runs import arguments

    sources = arguments.observations(tables)
    with _progress("reading and estimating"):
        return monitored(
            sources,
            arguments.optional_table("jobs", jobs),
            every=every,
            planned=planned,
            estimator=estimator,
            confidence=confidence,
            metric=metric,
            spending=spending,
            recipe=_recipe(monitor, columns, sources),
            guards=_guards(guards),
            metric_kind=metric_kind,
            change=change,
            target=target,
        )


@_judged
def plan(
    table: Table, margin: _Share, *, t: _Positive = 2.0, min_instances: _Count = 4, **columns: Unpack[Columns]
) -> "PlannedInstances":
    """Return how many instances of each job to measure for a relative margin, at least cost: ``wsc wsmeter plan``.

    Parameters
    ----------
    table : job, weight, mean, std, instances, cost
    margin : relative to the weighted mean, above 0

    Examples
    --------
    >>> import pandas as pd
    >>> jobs = pd.DataFrame({"job": ["a", "b"], "weight": 1.0, "mean": 1.0, "std": [0.1, 0.2]})
    >>> plan(jobs.assign(instances=1000, cost=1.0), margin=0.03).frame()["job"].tolist()
    ['a', 'b']
    """
    from scenarios.runs import arguments
    from scenarios.wsmeter import own_tables

    with _progress("planning"):
        source = arguments.table("table", table)
        return own_tables.plan(source, margin, t, min_instances, _recipe(plan, columns, [source]))


@_judged
def estimate(
    current: Table,
    new: Table,
    jobs: "Table | None" = None,
    *,
    current_is: Literal["population", "sample"] = "population",
    t: _Positive = 2.0,
    min_instances: _Count = 4,
    **columns: Unpack[Columns],
) -> "EstimatedChange":
    """Return the change that WSMeter finds between two tables of instances: ``wsc wsmeter estimate``.

    Parameters
    ----------
    current, new : job, machine, weight, value
    jobs : job, quota, instances of the whole fleet

    Examples
    --------
    >>> import pandas as pd
    >>> before = pd.DataFrame({"job": "search", "machine": range(20), "weight": 2.0, "value": [1.0, 1.1] * 10})
    >>> after = before.assign(machine=before.machine + 20, value=before.value * 1.1)
    >>> estimate(before, after).frame().set_index("estimator")["change"].round(3).to_dict()
    {'baseline': 0.1, 'wsmeter': 0.1, 'wsmeter-widened': 0.1}
    """
    from scenarios.runs import arguments
    from scenarios.wsmeter import own_tables

    sources = arguments.table("current", current), arguments.table("new", new)
    with _progress("reading and estimating"):
        return own_tables.estimate(
            *sources,
            arguments.optional_table("jobs", jobs),
            current_is=current_is,
            t=t,
            min_instances=min_instances,
            recipe=_recipe(estimate, columns, sources),
        )


@_judged
def requests(
    log: "Table | Sequence[str | Path]",
    servers: _Count,
    *,
    to: _Count | Sequence[_Count] = (),
    speed: _Positive | Sequence[_Positive] = (),
    policy: str | None = None,
    interval_s: _Seconds | None = None,
    arrival: str | None = None,
    departure: str | None = None,
    duration: str | None = None,
    unit: Literal["ns", "us", "ms", "s"] | None = None,
    priority: str | None = None,
    format: str | None = None,
    upstream: bool = False,
    network_delay_s: _Seconds | None = None,
    zone: str | None = None,
    slo: str | None = None,
    load: _Positive = 1.0,
    hourly: bool = False,
    scalability: bool = False,
    by: str | None = None,
    hosts: str | None = None,
    where: str | None = None,
    since: str | None = None,
    until: str | None = None,
    on_disk: bool = False,
) -> "OccupancyConclusion":
    """Return what the operational laws say of a request log, and what other servers would change: ``wsc occupancy``.

    Parameters
    ----------
    log : arrival_s and departure_s of each request; a file in any format that the command reads, or the files of its
        rotation; or a queue's run
    servers : that the log was made with
    to, speed : other numbers of servers, other speeds
    policy : a name, ``auto`` to find it out, or None for bounds alone
    interval_s : length of the intervals, seconds
    arrival, departure, duration, priority : your names of the columns; two of the first three are needed
    unit : of the times, if they are numbers
    format : of lines, as nginx's log_format or Apache's LogFormat has it
    upstream : whether the time of the servers behind a proxy is wanted
    network_delay_s : what of each response time is not the servers', if a client wrote the log
    zone : of stamps without one, such as Europe/Berlin
    slo : objective on a percentile of response, such as p99=300ms: the fewest servers and the largest load that meet it
    load : that the objective is asked for, as a multiple of the log's
    hourly : whether it is asked for each hour of the day or week, too, on the clock of `zone`: `.slo.by_hour()`
    scalability : whether contention and coherence are fitted to the completion rates
    by : column of classes to compare
    hosts : column of machines, each a queue with `servers` of its own
    where : condition on the columns; only these rows count
    since, until : points in time; requests present between them count
    on_disk : whether a table is read part by part, in memory that does not grow with its length

    Examples
    --------
    >>> import pandas as pd
    >>> log = pd.DataFrame({"arrival_s": [0.0, 1.0], "departure_s": [2.0, 3.0]})
    >>> requests(log, servers=1).queueing_time_s
    1.0
    """
    from analysis.occupancy.logs.log import LogOptions
    from analysis.occupancy.objective import Objective
    from models.errors import ArgumentError
    from models.queues.policies import POLICIES
    from scenarios.files.copies import as_file
    from scenarios.occupancy.occupancy import occupancy
    from scenarios.occupancy.on_disk import occupancy_on_disk
    from scenarios.occupancy.question import OccupancyQuery
    from scenarios.occupancy.slices import LogSlice
    from scenarios.runs import arguments

    known = next((name for name in POLICIES if name == policy), None)
    if policy not in {None, "auto", known}:
        raise ArgumentError("policy", f"should be one of auto, {', '.join(POLICIES)}", str(policy))
    chosen = (where, since, until, by, hosts)
    query = OccupancyQuery(
        servers,
        _several(to),
        _several(speed),
        interval_s,
        policy=known,
        identify=policy == "auto",
        objective=None if slo is None else Objective.parse(slo),
        load=load,
        hourly=hourly,
        scalability=scalability,
        network_delay_s=network_delay_s,
        rows=LogSlice(*chosen) if any(text is not None for text in chosen) else None,
    )
    said = LogOptions(arrival, departure, duration, unit, priority, format, upstream, zone)
    ask = occupancy_on_disk if on_disk else occupancy
    if isinstance(log, Sequence) and not isinstance(log, str):
        files = [arguments.file("log", part) for part in log]
        if not files:
            arguments.refuse("log", "at least one file", log)
        with _progress("reading and replaying"):
            return ask(files, query, said)
    with as_file(arguments.table("log", log)) as (file, name), _progress("reading and replaying"):
        return ask(file, query, said, name=name)


@dataclass(frozen=True, repr=False, eq=False)
class Service:
    """A service's log and the platform that it was made on."""

    log: "Source"
    platform: str
    sheets: Path | None = None
    recipe: "Recipe | None" = None
    """How the log's columns become ours; as they are if left out."""

    def __repr__(self) -> str:
        from analysis.tables.cells import name_of

        return f"<Service: {self.log.name if isinstance(self.log, Path) else name_of(self.log)} on {self.platform}>"

    @_judged
    def predict(
        self,
        to: _Names = (),
        method: _Method | None = None,
        instruction_ratio: Sequence[float] | None = None,
        clock_hz: Mapping[str, float] | None = None,
    ) -> "Predicted":
        """Return service and response times on other platforms: ``wsc predict``.

        Parameters
        ----------
        to : platforms; all that are known if left out
        method : a name, or your own such as ``mine.py:Mine``
        instruction_ratio : low and high end of a 90% interval for the instructions of a request on platforms of
            another instruction set, over those of the log
        clock_hz : clocks of platforms that do not run at the base clock of their sheets, such as ``{"pres": 1.6e9}``
        """
        from scenarios.crossplatform.predict import predict

        with self._question(to, method, instruction_ratio, clock_hz) as question, _progress("predicting"):
            return predict(question)

    @_judged
    def select(
        self,
        bound_s: _Seconds,
        to: _Names = (),
        method: _Method | None = None,
        instruction_ratio: Sequence[float] | None = None,
        clock_hz: Mapping[str, float] | None = None,
        *,
        prices: "Table | None" = None,
    ) -> "SelectConclusion":
        """Return platforms by throughput per watt within a bound on mean response time: ``wsc select``.

        Parameters
        ----------
        bound_s : seconds
        to, method, instruction_ratio, clock_hz : as of `predict`
        prices : as of `rates`: `.costs` says what requests cost
        """
        from scenarios.crossplatform.select import select
        from scenarios.runs import arguments

        priced = arguments.optional_table("prices", prices)
        with self._question(to, method, instruction_ratio, clock_hz) as question, _progress("predicting"):
            return select(question, bound_s, priced)

    @contextmanager
    def _question(
        self,
        to: str | Sequence[str],
        method: str | None,
        ratio: Sequence[float] | None,
        clock_hz: Mapping[str, float] | None,
    ) -> "Generator[ServiceQuestion]":
        from analysis.tables.recipe import AS_IT_IS
        from scenarios.crossplatform.calibration import ServiceQuestion
        from scenarios.files.options import clocks, instruction_ratio

        ends = None if ratio is None else instruction_ratio("--instruction-ratio", ",".join(map(str, ratio)))
        text = ",".join(f"{name}={hz!r}" for name, hz in (clock_hz or {}).items())
        at_hz = clocks("--clock", text) if text else {}
        yield ServiceQuestion(
            self.log,
            self.platform,
            _several(to),
            self.sheets,
            method=method,
            instruction_ratio=ends,
            clock_hz=at_hz,
            recipe=self.recipe or AS_IT_IS,
        )


def _several(given: _T | Sequence[_T]) -> tuple[_T, ...]:
    """Return several names or numbers, of which one may stand alone."""
    if isinstance(given, (tuple, list)):
        return tuple(given)
    return (given,)  # pyrefly: ignore[bad-return] # a text is one name


@_judged
def service(
    log: "Table",
    platform: str,
    *,
    sheets: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    where: str | None = None,
) -> Service:
    """Return a service's log, to be asked about other platforms.

    Parameters
    ----------
    log : a row an interval
    platform : that it was made on
    sheets : YAML file of your own spec sheets, as ``--platforms`` of the commands; their platforms may then be named
    columns : by our name, an expression over the log's columns; others are left aside
    where : an expression that is true of the rows that are taken

    Examples
    --------
    >>> service("service.csv", "piii").platform
    'piii'
    """
    from analysis.crossplatform.log_columns import not_of_log
    from scenarios.runs import arguments

    source = arguments.table("log", log)
    recipe = _recipe_of_other(source, columns, where, not_of_log)
    return Service(source, platform, None if sheets is None else Path(sheets), recipe)


@_judged
def rates(
    *tables: Table,
    against: str | None = None,
    jobs: "Table | None" = None,
    metric: "MetricName | None" = None,
    confidence: _Share = 0.95,
    cluster: str = "machine",
    sheets: str | Path | None = None,
    prices: "Table | None" = None,
    **columns: Unpack[Columns],
) -> "RatesAnswer":
    """Return what one machine of a platform is worth in machines of another: ``wsc rates``.

    `.frame()` has a row a platform, `.jobs()` one a job and platform.

    Parameters
    ----------
    tables : observations with the column platform; or runs
    against : the platform in whose machines others are told; that of most machines if left out
    jobs : job, quota of the whole fleet
    metric : of runs; that of the scenario if left out
    confidence : of intervals
    cluster : column of what counts as independent
    sheets : YAML file of your own spec sheets
    prices : platform, price, years, power_w, power_price, and perhaps carbon_kg, carbon_kg_per_kwh: `.costs` says what
        work costs
    columns : as of `effect`

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"period": 0, "job": ["a", "b"] * 40, "machine": range(80), "weight": 1.0, "vcpus": 8})
    >>> new = rows.index % 4 < 2
    >>> table = rows.assign(platform="old", value=1 + 0.5 * new + 0.01 * (rows.index % 7))
    >>> table.loc[new, "platform"] = "new"
    >>> answer = rates(table, against="old")
    >>> round(float(answer.frame()["worth"][0]), 2), answer.jobs()["source"].tolist()
    (1.49, ['pooled', 'pooled'])
    """
    from scenarios.effects.rates import RatesQuestion
    from scenarios.effects.rates import rates as compared
    from scenarios.runs import arguments

    sources = arguments.observations(tables)
    own, priced = None if sheets is None else Path(sheets), arguments.optional_table("prices", prices)
    question = RatesQuestion(against, metric, confidence, cluster, own, priced)
    with _progress("reading and comparing"):
        return compared(sources, question, arguments.optional_table("jobs", jobs), _recipe(rates, columns, sources))


@_judged
def platforms(*names: str, sheets: str | Path | None = None) -> "Sheets":
    """Return the spec sheets of platforms: ``wsc platforms``.

    Parameters
    ----------
    names : of platforms; all that are known if left out
    sheets : YAML file of your own spec sheets, to be known beside the shipped ones

    Examples
    --------
    >>> platforms("rome_7742").frame()["name"].tolist()
    ['rome_7742']
    """
    from scenarios.crossplatform.platforms import platforms as known

    return known(names, None if sheets is None else Path(sheets))


@dataclass(frozen=True, repr=False)
class Profile:
    """Profiles of runs or of files, taken together."""

    paths: tuple[Path, ...]

    def __repr__(self) -> str:
        names = [path.name for path in self.paths]
        return f"<Profile: {names[0] if len(names) == 1 else f'{names[0]} and {len(names) - 1} more'}>"

    @_judged
    def top(
        self,
        by: _Names = "function",
        where: Mapping[str, str] | None = None,
        top: _Count | None = 20,
        event: str | None = None,
    ) -> "ProfileRows":
        """Return samples by any dimensions, with intervals on their shares: ``wsc profile query``."""
        from scenarios.profiling.query import QueryOptions, query

        with _progress("reading profiles"):
            return query(self.paths, QueryOptions(_joined(by), _equal(where), event, top=top))

    @_judged
    def cumulative(
        self,
        by: _Names = "function",
        where: Mapping[str, str] | None = None,
        top: _Count | None = 20,
        event: str | None = None,
    ) -> "CallRows":
        """Return functions with all that they call, from call paths: ``wsc profile query --cumulative``."""
        from scenarios.profiling.calls import cumulative
        from scenarios.profiling.query import QueryOptions

        with _progress("reading profiles"):
            return cumulative(self.paths, QueryOptions(_joined(by), _equal(where), event, top=top))

    @_judged
    def callers(
        self,
        function: str,
        where: Mapping[str, str] | None = None,
        top: _Count | None = 20,
        event: str | None = None,
    ) -> "CallRows":
        """Return who calls a function, from call paths: ``wsc profile query --callers``."""
        from scenarios.profiling.calls import callers
        from scenarios.profiling.query import QueryOptions

        with _progress("reading profiles"):
            return callers(self.paths, QueryOptions(where=_equal(where), event=event, top=top), function)

    @_judged
    def diff(
        self,
        other: "Profile | None" = None,
        by: _Names = "function",
        where: Mapping[str, str] | None = None,
        other_where: Mapping[str, str] | None = None,
        event: str | None = None,
    ) -> "ProfileDifference":
        """Return this profile beside another, or beside itself under another restriction: ``wsc profile diff``."""
        from scenarios.profiling.query import QueryOptions, diff

        paths = self.paths if other is None else _profiles("other", other)
        with _progress("reading profiles"):
            return diff(self.paths, paths, QueryOptions(_joined(by), event=event), _equal(where), _equal(other_where))

    @_judged
    def regress(
        self,
        after: "Profile | None" = None,
        at: _Time | None = None,
        event: str | None = None,
        *,
        min_factor: float = 1.25,
        min_cost: float = 0.0001,
        false_alarms: float = 0.01,
        adjustment: Literal["holm", "benjamini-hochberg", "benjamini-yekutieli"] = "holm",
    ) -> "Regression":
        """Return the functions that became more expensive or cheaper, from this profile to another or at a time.

        It is in seconds from the beginning, or a text such as ``"7d"``; of imported files a point in time as well:
        a datetime, ISO 8601 (UTC without a zone), or a number from 10⁸ on, which counts since 1970.
        """
        from analysis.profiling.regressions.comparison import AlarmCriteria
        from scenarios.files.options import time_given
        from scenarios.profiling.regress import regress

        criteria = AlarmCriteria(false_alarms, min_factor, min_cost, adjustment)
        later = None if after is None else _profiles("after", after)
        with _progress("reading profiles"):
            return regress(self.paths, later, time_given("--at", at), event, criteria)

    @_judged
    def watch(
        self,
        event: str | None = None,
        since: _Time | None = None,
        until: _Time | None = None,
        *,
        bin_s: float = 3600.0,
        min_factor: float = 1.0,
        min_cost: float = 0.00002,
        false_alarms: float = 0.01,
    ) -> "ProfileWatch":
        """Return what changed over time, when, and what it goes with: ``wsc profile watch``.

        Times are as `regress` takes them.
        """
        from analysis.profiling.changes.detection import WatchCriteria
        from scenarios.files.options import time_given
        from scenarios.profiling.watch import WatchedTime, watch

        criteria = WatchCriteria(false_alarms, min_factor, min_cost)
        span = WatchedTime(time_given("--since", since), time_given("--until", until), bin_s)
        with _progress("reading profiles"):
            return watch(self.paths, event, criteria, span)


def _profiles(argument: str, given: object) -> tuple[Path, ...]:
    """Return where the profiles are that are compared with others."""
    from scenarios.runs import arguments

    return given.paths if isinstance(given, Profile) else arguments.refuse(argument, "a profile of wsc.profile", given)


@_judged
def profile(*paths: "str | Path | Run", drawn_from: _Count | None = None) -> Profile:
    """Return profiles: of profiled runs, or files that ``wsc profile import`` reads.

    Parameters
    ----------
    paths : folders of runs, or files that ``wsc profile import`` reads
    drawn_from : machines that those of the files were drawn from at random, one file each; with it shares of files
        have intervals, and `regress` takes them

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "stacks.folded"
    ...     _ = file.write_text("main;read 12\\nmain 4\\n")
    ...     profile(file).top().frame()["function"].tolist()
    ['read', 'main']
    """
    from scenarios.runs import arguments

    files = tuple(arguments.file("paths", path) for path in paths)
    if not files:
        arguments.refuse("paths", "one or more files, or runs", paths)
    if drawn_from is None:
        return Profile(files)
    import tempfile
    import weakref
    from shutil import rmtree

    from scenarios.profiling.files import import_files

    folder = tempfile.mkdtemp(prefix="wsc-profile-")
    with _progress() as tell:
        imported = import_files(files, Path(folder) / "profile", tell, drawn_from)
    profiled = Profile((imported.out,))
    weakref.finalize(profiled, rmtree, folder, ignore_errors=True)
    return profiled


@_judged
def affinity(
    table: "Table",
    *,
    method: Literal["lp", "anneal"] = "lp",
    sheets: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    where: str | None = None,
) -> "Assignment":
    """Return the best assignment of jobs to platforms: ``wsc affinity``.

    Parameters
    ----------
    table : a row a job and platform, or a profiled run
    sheets : YAML file of your own spec sheets, to be known beside the shipped ones
    columns, where : as of `service`

    Examples
    --------
    >>> import pandas as pd
    >>> pairs = {"job": ["crunch", "crunch", "scan", "scan"], "platform": ["old", "new"] * 2}
    >>> table = pd.DataFrame(pairs).assign(load=[0, 100, 100, 0], cpi=[1, 1, 1, 2], capacity=[200, 300] * 2)
    >>> affinity(table).frame()[["job", "platform"]].to_numpy().tolist()
    [['crunch', 'new'], ['scan', 'old']]
    """
    from analysis.profiling.affinity.table import NAMES
    from scenarios.files.recipes import unknown
    from scenarios.profiling.affinity import affinity as advised
    from scenarios.runs import arguments

    source = arguments.table("table", table)
    recipe = _recipe_of_other(source, columns, where, lambda name: unknown(name, NAMES))
    with _progress("assigning jobs"):
        return advised(source, method, platforms=None if sheets is None else Path(sheets), recipe=recipe)


def main() -> None:
    """Run the command `wsc`."""
    try:
        _unshadowed()
    except ImportError as error:
        sys.exit(str(error))
    from scenarios.commands.entry import main as entered

    entered()


def __getattr__(name: str) -> object:
    """Return a type, which is loaded when it is asked for, or the version."""
    if name == "__version__":
        return version("wsc-testbed")
    if name not in _TYPES:
        raise AttributeError(f"module 'wsc' has no attribute {name!r}")
    return getattr(import_module(_TYPES[name]), _NAMES.get(name, name))


def __dir__() -> list[str]:
    return sorted((*__all__, "__version__"))


def _unshadowed() -> None:
    """Raise an ImportError if somebody's own module has the name of one of our packages; the command ends with 2."""
    for package in _PACKAGES:
        spec = sys.modules[package].__spec__ if package in sys.modules else find_spec(package)
        ours = Path(__file__).resolve().parent / package / "__init__.py"
        found = None if spec is None or spec.origin is None else Path(spec.origin).resolve()
        if found != ours:
            where = f"wsc: {found or 'nothing'} stands in the way of our package {package} ({ours})"
            if Path(sys.argv[0]).name == "wsc":
                print(f"{where}: rename it, or take its folder out of PYTHONPATH", file=sys.stderr)
                raise SystemExit(2)
            raise ImportError(f"{where}: rename it, or start Python elsewhere")


def _scenario(reference: str | Path, seed: int | None, values: Mapping[str, object]) -> "AnyScenario":
    from scenarios.files.faults import FaultsError
    from scenarios.files.loader import Override
    from scenarios.files.loader import load as loaded
    from scenarios.files.own_platforms import written
    from scenarios.runs import arguments
    from scenarios.views.terminal import dumps

    texts = dict[str, str]()
    for name, value in (values if seed is None else {**values, "seed": seed}).items():
        try:
            texts[name] = dumps(written(value))
        except TypeError:
            arguments.refuse(name, "what a scenario file may hold: text, numbers, lists and maps", value)
    try:
        return loaded(str(reference), [Override(name.replace("__", "."), text, name) for name, text in texts.items()])
    except FaultsError as error:
        raise FaultsError(
            replace(fault, file="", line=0, column=0) if fault.file in texts else fault for fault in error.faults
        ) from None


def _recipe(function: Callable[..., object], columns: Columns, sources: "Sequence[Source]") -> "Recipe":
    """Return the recipe among a function's keyword arguments, of which there are no others, or beside its tables."""
    from analysis.tables.cells import recipe_beside
    from scenarios.files.recipes import recipe_of
    from scenarios.runs import arguments

    arguments.known_names(function, columns, Columns.__annotations__)
    return recipe_of(columns, recipe_beside(sources))


def _recipe_of_other(
    source: "Source", columns: Mapping[str, str] | None, where: str | None, wrong: Callable[[str], str]
) -> "Recipe":
    """Return the recipe of a table that is none of observations, or the one beside it."""
    from analysis.tables.cells import recipe_beside
    from scenarios.files.recipes import recipe_of

    return recipe_of({"columns": columns or {}, "where": where}, recipe_beside([source]), wrong)


def _guards(given: object) -> "Sequence[str | GuardFunction]":
    from scenarios.runs import arguments

    return cast("Sequence[str | GuardFunction]", arguments.parts("guards", given))


def _joined(by: str | Sequence[str]) -> str:
    return by if isinstance(by, str) else ",".join(by)


def _equal(where: Mapping[str, str] | None) -> tuple[str, ...]:
    return tuple(f"{key}={value}" for key, value in (where or {}).items())


@contextmanager
def _progress(what: str = "") -> "Generator[Progress]":
    """Yield what is called with the share done; a call that takes long shows it in a notebook or a terminal."""
    from scenarios.views.terminal import SOON_S, progress

    with progress(after_s=SOON_S) as tell:
        if what:
            tell(what, 0.0)
        yield tell


_unshadowed()

if __name__ == "__main__":
    main()
