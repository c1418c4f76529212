"""How to find a change of a given size in one's own fleet: `wsc design`."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from analysis.effects.assignment import COLUMNS, assigned
from analysis.effects.estimand import ChangeKind, Estimand
from analysis.effects.linearisation import past_near_one
from analysis.effects.methods import RECOMMENDED, method, unanswerable
from analysis.effects.past import Past
from analysis.effects.planning import DesignPlan, Wanted, fewest, forecast, ranked
from analysis.effects.rehearsals import Assumed, Rehearsal, by_domain, crossover, spans
from analysis.statistics import NotEnoughDataError
from analysis.tables.cells import Source, name_of
from analysis.tables.recipe import AS_IT_IS, Recipe
from models.arrays import HOUR_S
from models.errors import ArgumentError
from models.fleet.metrics import MetricName
from scenarios.effects.domains import DomainPrice, past_in_domains
from scenarios.effects.observations import POWER_DOMAIN, is_own, read_under
from scenarios.effects.recorded_past import in_words, recorded_past
from scenarios.effects.simulated_past import simulated, simulated_periods
from scenarios.files.faults import Fault, FaultsError, faults_in, shown
from scenarios.files.loader import load
from scenarios.files.schema import Scenario
from scenarios.runs.table_files import irreplaceable, write_table
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import plural
from scenarios.views.section import Block, Says, Section, note_lines, table
from scenarios.views.terminal import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ESTIMATORS = (RECOMMENDED, "cuped", "published")
_AFTERWARDS = {
    "balanced": "afterwards use wsc effect --estimator adjusted: the change is the same, but its interval does not use "
    "the balancing",
    "paired": "afterwards use wsc effect --estimator adjusted, which compares with all machines without the feature, "
    "not by pairs",
}
"""Designs whose own estimator would need to know how machines were drawn, which tables of results do not tell."""
_FEWEST_SHARES = 2
_LONGEST_S = 7200.0
"""Longest period of a crossover."""
_OF_KINDS = {
    "quantile": "how dense values are at the quantile is known from the whole past here, and from the machines drawn "
    "in an experiment, so few machines have less power than planned: p90 on 17 machines 77% in place of 97%",
    "proportion": "errors are those of the past's share of yes; where the feature brings it nearer to a half they are "
    "larger: from 24% to 46% on 11 machines a power of 97% was 81%",
}
"""What plans of such metrics leave out."""


@dataclass(frozen=True, slots=True)
class DesignQuestion:
    """What the experiment is to be able to do."""

    detect: float = 0.01
    """Relative change of the fleet to be seen."""
    power: float = 0.95
    confidence: float = 0.95
    days: float = 7.0
    """Days of the longer study, and of the time before it."""
    crossover: bool = False
    """Whether the feature can be switched on and off by the period."""
    spread: float | None = None
    """Standard deviation of the jobs' relative effects; twice the change if not said."""
    apart: float | None = None
    """Standard deviation of what a machine adds to effects on what it holds; a quarter of the jobs' if not said."""
    draws: int = 500
    seed: int = 1
    assign: Path | None = None
    """File for who gets the feature when, by the first design."""
    metric: MetricName | None = None
    """Of runs and of a scenario; that of the scenario if not said."""
    metric_kind: str = "rate"
    """rate, mean, proportion or ratio."""
    change: ChangeKind | None = None
    """relative or absolute; as `analysis.effects.estimand.Estimand.of` says if not said. All changes here are of it."""
    domain: str | None = None
    """Column of machines that disturb each other: domains are then drawn, not machines."""
    saturations: tuple[float, ...] = (0.0, 1.0)
    """Shares of a domain's machines that get the feature, to which domains are drawn."""

    @property
    def estimand(self) -> Estimand:
        """What the experiment estimates."""
        return Estimand.of(self.metric_kind, self.change)

    def amount(self, change: float) -> str:
        """Return the size of a change in its unit."""
        return self.estimand.amount(change, "")

    def per(self, unit: float) -> "DesignQuestion":
        """Return the question with all changes in a unit."""
        assumed = self.assumed
        return replace(self, detect=self.detect / unit, spread=assumed.spread / unit, apart=assumed.apart / unit)

    @property
    def wanted(self) -> Wanted:
        """What plans are made for."""
        return Wanted(self.detect, self.power, self.confidence, self.draws, self.seed)

    @property
    def assumed(self) -> Assumed:
        """What the feature is taken to be like."""
        spread = 2 * self.detect if self.spread is None else self.spread
        return Assumed(self.detect, spread, spread / 4 if self.apart is None else self.apart, self.seed)


@dataclass(frozen=True, slots=True)
class PlannedDesign:
    """A design that was rehearsed, and why it stands where it does."""

    plan: DesignPlan
    why: str
    question: DesignQuestion

    @property
    def afterwards(self) -> str:
        """The estimator that `wsc effect` is to take of the result."""
        own = self.plan.rehearsal.estimator
        return RECOMMENDED if own in _AFTERWARDS or self.question.domain is not None else own

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be known of it."""
        own = self.plan.rehearsal.estimator
        return (*self.plan.rehearsal.notes, *([_AFTERWARDS[own]] if own in _AFTERWARDS else []))

    def payload(self) -> dict[str, object]:
        """Return it as JSON holds it."""
        plan, forecast = self.plan, self.plan.forecast
        return {
            "design": plan.rehearsal.design,
            "estimator": plan.rehearsal.estimator,
            "machines": forecast.machines if plan.enough else None,
            "machine_hours": plan.machine_hours if plan.enough else None,
            "margin": forecast.margin,
            "power": forecast.power,
            "power_error": forecast.power_error,
            "coverage": forecast.coverage,
            "coverage_error": forecast.coverage_error,
            "smallest": forecast.smallest,
            "tried": forecast.machines,
            "trusted": plan.trusted,
            "why": self.why,
            "afterwards": self.afterwards,
            "notes": list(self.notes),
        }

    def cells(self) -> tuple[str, ...]:
        """Return its row of the table for people."""
        plan, forecast = self.plan, self.plan.forecast
        return (
            plan.rehearsal.design,
            plan.rehearsal.estimator,
            f"{forecast.machines:,}" if plan.enough else f"{forecast.machines:,} too few",
            f"{plan.machine_hours:,.0f}" if plan.enough else "",
            f"±{self.question.amount(forecast.margin)}",
            f"{forecast.power:.1%} ±{forecast.power_error:.1%}",
            f"{forecast.coverage:.1%}",
            self.why,
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DesignAnswer(Conclusion):
    """The designs that would find a change, the cheapest that can be trusted first."""

    question: DesignQuestion
    period_s: float
    periods: int
    machines: int
    """Of the fleet."""
    designs: tuple[PlannedDesign, ...]
    smallest: float | None
    """Change that the best design sees that can be trusted, on as many machines as it may have; None if enough."""
    assigned: str | None
    """The design by which it is written who gets the feature; None if nothing was to be, or none finds the change."""
    notes: tuple[str, ...]
    domains: DomainPrice | None = None
    """Where domains are drawn: what that costs."""

    def brief(self) -> str:
        """Return the first design to take, or why there is none."""
        question = self.question
        if self.sufficient:
            best = self.designs[0].plan
            how, estimator = best.rehearsal.design, best.rehearsal.estimator
            how += "" if estimator in how else f", {estimator}"
            machines = plural(best.forecast.machines, "machine")
            return f"{machines} for a change of {question.amount(question.detect)} ({how})"
        if self.smallest is not None:
            detect = question.amount(question.detect)
            return f"the fleet is too small for a change of {detect}, it shows {self._shown}"
        return self._untrusted

    @property
    def _shown(self) -> str:
        """Return the smallest change that the fleet shows, as text."""
        return "none" if math.isinf(self.smallest or 0.0) else self.question.amount(self.smallest or 0.0)

    @property
    def _untrusted(self) -> str:
        """Return why there is no design to take."""
        if not self.designs:
            return "the fleet has too few machines for any design"
        return "no design has intervals that hold the truth as often as they claim"

    @property
    def sufficient(self) -> bool:
        """Whether the first design finds the change, and its intervals hold the truth as often as they claim."""
        return bool(self.designs) and self.designs[0].plan.trusted and self.designs[0].plan.enough

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        question = self.question
        written = None if self.assigned is None else {"file": str(question.assign), "design": self.assigned}
        return {
            "kind": "design",
            "metric_kind": question.estimand.name,
            "change_kind": question.estimand.change,
            "detect": question.detect,
            "power": question.power,
            "confidence": question.confidence,
            "spread": question.assumed.spread,
            "apart": question.assumed.apart,
            "period_s": self.period_s,
            "periods": self.periods,
            "machines": self.machines,
            "designs": [design.payload() for design in self.designs],
            "smallest": self.smallest,
            "assigned": written,
            **({} if self.domains is None else {"domains": self.domains.payload()}),
            "notes": list(self.notes),
        }

    def frame(self) -> pd.DataFrame:
        """Return the designs, a row each."""
        return pd.DataFrame([design.payload() for design in self.designs])

    def figure(self) -> "Figure":
        """Return the smallest change that each design sees, by machines."""
        from analysis.figures.effects.answers import draw_designs

        rows = [
            {
                "design": f"{plan.rehearsal.design}, {plan.rehearsal.estimator}",
                "machines": sized.machines,
                "smallest": sized.smallest,
                "trusted": plan.trusted,
            }
            for plan in (design.plan for design in self.designs)
            for sized in plan.tried
        ]
        return draw_designs(pd.DataFrame(rows), self.question.detect, unit=self.question.estimand.unit)

    def section(self) -> Section:
        """Return the designs as a table, the first to take on top."""
        return Section("", tuple(self._blocks()))

    def _blocks(self) -> Iterator[Block]:
        question = self.question
        yield Says(
            f"To see a change of {question.amount(question.detect)} in {question.power:.0%} of experiments, "
            f"in a fleet of {self.machines:,} machines:"
        )
        headings = ("design", "estimator", "machines", "machine-hours", "margin", "power", "coverage", "why")
        numbers = [heading not in {"design", "estimator", "why"} for heading in headings]
        yield table(headings, [design.cells() for design in self.designs], numbers=numbers, keys=2, spare=("margin",))
        if self.domains is not None:
            yield Says(self.domains.in_words())
        if self.smallest is not None:
            yield Says(f"The fleet is too small for that. The smallest change that it shows is {self._shown}.")
        elif not self.sufficient:
            yield Says(f"{self._untrusted[0].upper()}{self._untrusted[1:]}.")
        if not self.sufficient and self.question.assign is not None:
            yield Says(f"No machines are drawn, and {self.question.assign} is not written.", "strong")
        if self.assigned is not None:
            yield Says(f"Who gets the feature when, by {self.assigned}: {self.question.assign}")
        if self.sufficient:
            kind = "" if question.estimand.plain else f" --metric-kind {question.estimand.name}"
            kind += f" --change {question.change}" if question.change else ""
            kind += f" --domain {question.domain}" if question.domain else ""
            afterwards = self.designs[0].afterwards
            yield Says(f"After the first design's experiment: wsc effect … --estimator {afterwards}{kind}")
        yield from note_lines([*self.notes, *self._of_designs()])

    def _of_designs(self) -> Iterator[str]:
        """Yield each note once, after the designs that it is about."""
        about = dict[str, dict[str, None]]()
        for design in self.designs:
            for note in design.notes:
                about.setdefault(note, {})[str(design.plan.rehearsal.design)] = None
        yield from (f"{'; '.join(names)}: {note}" for note, names in about.items())


def design(
    sources: Sequence[Source],
    question: DesignQuestion,
    jobs: Source | None,
    tell: Progress,
    recipe: Recipe = AS_IT_IS,
) -> DesignAnswer:
    """Return the designs that would find a change, the cheapest that can be trusted first.

    Parameters
    ----------
    sources : tables of observations, or folders of runs, of a fleet without the feature; or one scenario
    question : what the experiment is to do
    jobs : job, quota, instances of the whole fleet; with tables alone
    tell : told what is being done and the share done
    recipe : how columns of the tables become ours

    Raises
    ------
    FaultsError
        With everything that is wrong with the tables, the scenario or what is asked.
    """
    estimand = question.estimand
    if wrong := list(_unplannable(question)):
        raise FaultsError(wrong)
    read = [path for path in (*sources, jobs) if isinstance(path, Path)]
    if question.assign is not None and (problem := irreplaceable(question.assign, read, COLUMNS)):
        raise FaultsError([Fault("", 0, 0, "assign", problem)])
    tables = [source for source in sources if not _is_scenario(source)]
    if not tables:
        if not estimand.plain:
            problem = "is of tables: what a scenario simulates is a rate, whose relative change is planned for"
            raise FaultsError([Fault("", 0, 0, "metric_kind", problem, question.metric_kind)])
        return _of_scenario([str(source) for source in sources], question, tell, recipe)
    missing = [Fault(name_of(source), 0, 0, "", "is not there") for source in sources if _is_scenario(source)]
    if missing:
        raise FaultsError(missing)
    try:
        read_as = read_under(recipe, question.domain, "domain", tables)
        past, notes = recorded_past(tables, jobs, question.metric, read_as, estimand=estimand)
    except FaultsError as error:
        raise FaultsError(map(_with_kind, error.faults)) from error
    if question.crossover and past.period_s > _LONGEST_S:
        problem = "needs periods of two hours or less"
        raise FaultsError([Fault("", 0, 0, "crossover", problem, f"periods of {past.period_s / HOUR_S:g} h")])
    unit = 1.0
    with faults_in(Path(name_of(tables[0]))):
        if not estimand.plain:
            try:
                near, unit = past_near_one(past.table, past.jobs, estimand)
            except ArgumentError as error:
                raise FaultsError([Fault("", 0, 0, error.argument, error.problem, error.got or "")]) from error
            except NotEnoughDataError as error:
                raise FaultsError([Fault("", 0, 0, "metric_kind", str(error), question.metric_kind)]) from error
            past = replace(past, table=near, target=estimand.target)
            notes += [_OF_KINDS[kind] for kind in [estimand.metric_kind] if kind in _OF_KINDS]
        if question.domain is not None:
            name = "domain" if is_own(question.domain, tables) else question.domain
            return _of_domains(past, question, name, tell, notes, unit=unit)
        rehearsals = list(_rehearsals(past, question.per(unit)))
        if question.crossover:
            rehearsals.append(crossover(past, question.per(unit).assumed))
    return _planned(past, rehearsals, question, tell, notes, unit=unit)


def _of_domains(
    past: Past, question: DesignQuestion, name: str, tell: Progress, notes: Sequence[str], *, unit: float = 1.0
) -> DesignAnswer:
    """Return the designs in which domains are drawn, and what they cost against machines drawn one by one.

    `name` is what the column is called in the table.
    """
    past = replace(past, table=past_in_domains(past.table, str(question.domain), name, question.saturations))
    per_unit = question.per(unit)
    lengths = sorted({1.0, question.days})
    drawn = [by_domain(past, days, per_unit.assumed, question.saturations) for days in lengths]
    answer = _planned(past, [of_length.saturated for of_length in drawn], question, tell, notes, unit=unit)
    if not answer.designs:
        return answer
    first = answer.designs[0].plan
    mine = next(of_length for of_length in drawn if of_length.saturated.design == first.rehearsal.design)
    machines = min(first.forecast.machines, mine.alone.most)
    alone = unit * forecast(mine.alone, machines, per_unit.wanted).margin
    price = DomainPrice(str(question.domain), mine.machines, mine.correlation, first.forecast.margin / alone)
    return replace(answer, domains=price)


def _with_kind(fault: Fault) -> Fault:
    """Return what is wrong with a value, and which kind of metric takes values that are 0 or negative."""
    if fault.field != "value" or fault.problem != "should be above 0":
        return fault
    return replace(fault, problem=f"{fault.problem}; if it is right, give --metric-kind mean (or proportion, or ratio)")


def _unplannable(question: DesignQuestion) -> Iterator[Fault]:
    """Yield what cannot be planned for such a metric."""
    estimand = question.estimand
    if question.domain is not None and question.crossover:
        yield Fault("", 0, 0, "crossover", "is left out beside --domain: domains keep what they are drawn to")
    shares = sorted(set(question.saturations))
    if question.domain is None and shares != [0.0, 1.0]:
        problem = "are shares of a domain's machines: domain should say which column has domains"
        yield Fault("", 0, 0, "saturations", problem)
    if len(shares) < len(question.saturations) or len(shares) < _FEWEST_SHARES or not 0 <= shares[0] < shares[-1] <= 1:
        problem = "should be two shares or more from 0 to 100%, no two alike, such as 0,100% or 0,50%,100%"
        yield Fault("", 0, 0, "saturations", problem, ", ".join(f"{share:g}" for share in question.saturations))
    if question.crossover and (estimand.target == "sums" or estimand.metric_kind == "quantile"):
        what = "quantile" if estimand.metric_kind == "quantile" else "ratio of sums"
        yield Fault("", 0, 0, "crossover", f"is not planned for a {what}; leave it out")
    for name in ("detect", "spread", "apart"):
        size = getattr(question, name)
        if estimand.unit and size is not None and not size < 1:
            yield Fault("", 0, 0, name, "should be a share between 0 and 1, such as 3% or 0.03", f"{size:g}")


def _is_scenario(source: Source) -> bool:
    """Return whether what was named is a scenario rather than a table: no file, or YAML."""
    return isinstance(source, Path) and not (source.exists() and source.suffix not in {".yaml", ".yml"})


def _of_scenario(sources: Sequence[str], question: DesignQuestion, tell: Progress, recipe: Recipe) -> DesignAnswer:
    if len(sources) != 1:
        raise FaultsError([Fault("SCENARIO", 0, 0, "", "only one may be given", shown(list(sources)))])
    world = load(sources[0])
    if not isinstance(world, Scenario):
        raise FaultsError([Fault(sources[0], 0, 0, "kind", "should be fleet", world.kind)])
    if recipe != AS_IT_IS:
        problem = "is a scenario, which is simulated as a whole: --column, --where, --period, --zone and --skip-bad are"
        raise FaultsError([Fault(sources[0], 0, 0, "", f"{problem} for tables")])
    tell("simulating", 0.0)
    metric = question.metric or world.analyses.wsmeter.metric
    past = simulated(world, max(2 * round(question.days), 2), metric)
    if question.domain is not None:
        with faults_in(Path(sources[0])):
            name = "domain" if question.domain == POWER_DOMAIN else question.domain
            return _of_domains(past, question, name, tell, [in_words(metric)])
    rehearsals = list(_rehearsals(past, question))
    if question.crossover:
        tell("simulating", 0.5)
        rehearsals.append(crossover(simulated_periods(world, metric=metric), question.assumed))
    tell("simulating", 1.0)
    notes = [
        "simulated without the feature, in epochs of an hour (of a quarter where the feature is switched)",
        in_words(metric),
    ]
    if world.cells > 1:
        notes.append(f"of the fleet's {world.cells} cells one is simulated, and the experiment takes place in one")
    return _planned(past, rehearsals, question, tell, notes)


def _rehearsals(past: Past, question: DesignQuestion) -> Iterator[Rehearsal]:
    lengths = sorted({1.0, question.days})
    estimators = [name for name in ESTIMATORS if not unanswerable(method(name), question.estimand, "concurrent")]
    for days in lengths:
        yield from spans(past, days, question.assumed, estimators)


def _planned(
    past: Past,
    rehearsals: Sequence[Rehearsal],
    question: DesignQuestion,
    tell: Progress,
    notes: Sequence[str],
    *,
    unit: float = 1.0,
) -> DesignAnswer:
    """Return what rehearsals say, whose changes are in a unit, and write who gets the feature if that is asked."""
    plans, impossible = _rehearsed(rehearsals, question.per(unit).wanted, tell)
    plans = [plan.times(unit) for plan in plans]
    best = next((plan for plan in plans if plan.trusted), None)
    written = _assigned(best, question)
    return DesignAnswer(
        question=question,
        period_s=past.period_s,
        periods=len(past.periods),
        machines=int(past.table["machine"].nunique()),
        designs=tuple(PlannedDesign(plan, _why(plan, best, question), question) for plan in plans),
        smallest=_smallest(plans, best),
        assigned=written,
        notes=(*notes, *impossible),
    )


def _rehearsed(rehearsals: Sequence[Rehearsal], wanted: Wanted, tell: Progress) -> tuple[list[DesignPlan], list[str]]:
    """Return the smallest size of each design, the first to take first, and which designs cannot be, and why."""
    plans, impossible = list[DesignPlan](), list[str]()
    for place, rehearsal in enumerate(rehearsals):
        tell("rehearsing designs", place / len(rehearsals))
        if rehearsal.most < rehearsal.least:
            impossible.append(f"{rehearsal.design}, {rehearsal.estimator}: the fleet has too few machines")
            continue
        try:
            plans.append(fewest(rehearsal, wanted))
        except NotEnoughDataError as error:
            impossible.append(f"{rehearsal.design}, {rehearsal.estimator}: {error}")
    tell("rehearsing designs", 1.0)
    return ranked(plans), impossible


def _smallest(plans: Sequence[DesignPlan], best: DesignPlan | None) -> float | None:
    """Return the smallest change that is seen where none of the designs that can be trusted sees the one asked for."""
    if best is None or best.enough:
        return None
    return min(plan.forecast.smallest for plan in plans if plan.trusted)


def _assigned(best: DesignPlan | None, question: DesignQuestion) -> str | None:
    """Write who gets the feature when; return the design, None if there is none to do it by."""
    if question.assign is None or best is None or not best.enough:
        return None
    write_table(assigned(best, question.seed), question.assign, "assign")
    return best.rehearsal.design


def _why(plan: DesignPlan, best: DesignPlan | None, question: DesignQuestion) -> str:
    """Return in words why a design stands where it does."""
    forecast = plan.forecast
    if not plan.trusted:
        return f"its {question.confidence:.0%} intervals hold the truth in only {forecast.coverage:.0%} of experiments"
    if not plan.enough:
        smallest = question.amount(forecast.smallest) if math.isfinite(forecast.smallest) else "nothing"
        return f"the fleet is too small: {forecast.machines:,} machines detect changes from {smallest} on"
    if best is None or plan is best:
        return "fewest machine-hours among the designs whose intervals hold the truth as often as they claim"
    hours = plan.machine_hours / best.machine_hours
    machines = forecast.machines / best.forecast.machines
    return f"{hours:.1f} times the machine-hours and {machines:.1f} times the machines of the first design"
