"""``wsc monitor``: an experiment that may be looked at any time, from its observations so far."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from analysis.audit.about import About
from analysis.audit.case import Audit
from analysis.audit.guards import AT_THE_END
from analysis.effects.cells import JobMachineSums
from analysis.effects.estimand import RATE, ChangeKind, Estimand, Target
from analysis.effects.information import Redrawn, machine_levels, shares, without_effect
from analysis.effects.linearisation import Linearised, RelativeChange
from analysis.effects.methods import RECOMMENDED, for_design, method, unanswerable
from analysis.effects.observations import NO_FEATURE, Observations, exposure, without_rolled_back
from analysis.effects.sequential import LEAST_SPENT, Spending, price
from analysis.effects.sequential import monitor as intervals
from analysis.effects.study import Effect, EffectMethod, Study
from analysis.statistics import ROUNDING, NotEnoughDataError
from analysis.tables.cells import Source
from analysis.tables.recipe import AS_IT_IS, Recipe
from models.arrays import DAY_S, Floats
from models.errors import ArgumentError, InputError
from models.fleet.metrics import METRICS, MetricName
from scenarios.effects.effect import beside, no_verdict, quantity, verdict
from scenarios.effects.observations import Dates, experiment
from scenarios.effects.own_guards import GuardFunction, own_guards
from scenarios.files.faults import Fault, FaultsError
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import plural
from scenarios.views.section import Block, Says, Section, finding_lines, note_lines, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SECONDS = 60.0
"""Periods that lie at least so far apart are seconds, others are numbers of days."""

_NAMES: Mapping[Spending, str] = {"obrien-fleming": "O'Brien and Fleming", "pocock": "Pocock"}

_NOT_OF_QUANTILES = (
    "should be any-time or pocock for a quantile: obrien-fleming ruled zero out too often without a change"
)

Every: TypeAlias = Literal["period", "day"] | float
"""A look after each period, each day, or each so many units of the periods."""


class MonitorLook(NamedTuple):
    """What is estimated when an experiment is looked at."""

    place: int
    """1 is the first look."""
    until: float
    """Last period."""
    effect: Effect
    linearised: Linearised | None = None
    """The rows, if they are no relative change of a rate."""
    relative: RelativeChange | None = None
    """A relative change of what is no rate."""

    def row(self, share: float) -> dict[str, float]:
        """Return the look as `analysis.effects.sequential` takes it, with its share of the planned information.

        The error of a relative change is that which makes it as many errors as the arms are apart without a change.
        """
        effect, error = self.effect, self.effect.error
        if self.relative is not None and effect.change != 0.0 and self.relative.distance > 0.0:
            error = abs(effect.change) / self.relative.distance
        numbers = {"change": effect.change, "error": error, "freedom": effect.freedom}
        return {"period": self.until, "share": share} | numbers

    def without_feature(self, rows: pd.DataFrame, jobs: pd.DataFrame | None, target: Target) -> JobMachineSums:
        """Return the cells of the rows up to this look as if the feature did nothing."""
        if self.linearised is None:
            return without_effect(rows[rows["period"] <= self.until], jobs, self.effect.change, target)
        near, apart = (0.0, self.effect) if self.relative is None else (self.relative.near, self.relative.at)
        rows, unit = self.linearised.near_one(near)
        return without_effect(rows, jobs, apart.change / unit, target)


class LookedAt(NamedTuple):
    """What is looked at again and again, and how."""

    jobs: pd.DataFrame | None
    chosen: EffectMethod
    estimand: Estimand
    confidence: float

    def look(self, place: int, until: float, rows: pd.DataFrame) -> MonitorLook:
        """Return what the rows up to a look say.

        Raises
        ------
        NotEnoughDataError
            If they have no answer, or machines do not differ.
        """
        chosen, estimand = self.chosen, self.estimand
        if estimand.plain:
            study = Study.of(rows, self.jobs, staged="staged" in chosen.designs, target=estimand.target)
            look, least = MonitorLook(place, until, chosen.estimate(study, self.confidence)), ROUNDING
        else:
            linearised, least = Linearised.of(rows, self.jobs, estimand), 0.0
            relative = linearised.relative(chosen) if estimand.change == "relative" else None
            look = MonitorLook(place, until, linearised.estimate(chosen, self.confidence), linearised, relative)
        if not look.effect.error > least:
            raise NotEnoughDataError(1, 0, "job whose machines differ in value in an arm")
        return look


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MonitorAnswer(Conclusion):
    """An experiment's cumulative estimates, look by look."""

    effect: Effect
    """Of the last look."""
    looks: pd.DataFrame
    """period, change, error, freedom, share (of the planned information; above 1 past the horizon), low, high (of all
    looks together), fixed_low, fixed_high (of that look alone), p_value, zero_ruled_out; infinite where it says
    nothing."""
    planned: int
    """Looks until the planned horizon."""
    spending: Spending
    """How the error is spent over looks."""
    price: float
    """How many times as wide the interval is: of intervals at any time at the horizon, of others at the last look that
    has one; NaN if none has."""
    metric: MetricName | None
    """Of a run."""
    audit: Audit
    """Of the guards that need no end of the experiment."""
    dates: Dates
    """Of the periods."""
    notes: tuple[str, ...]
    estimand: Estimand = RATE
    """What is estimated."""

    def brief(self) -> str:
        """Return the verdict."""
        return self.verdict

    @property
    def trusted(self) -> bool:
        """Whether no finding is an error."""
        return not self.audit.errors

    @property
    def change(self) -> str:
        """On which side of zero the intervals of all looks lie, or open; the first look decides.

        gained or lost of a rate, rose or fell of other metrics.
        """
        decided = self.looks[self.looks["zero_ruled_out"]]
        if not len(decided):
            return "open"
        return self.estimand.outcomes[0 if decided["change"].iloc[0] > 0 else 1]

    @property
    def decided(self) -> float | None:
        """Period of the first look that rules zero out."""
        periods = self.looks.loc[self.looks["zero_ruled_out"], "period"]
        return float(periods.iloc[0]) if len(periods) else None

    @property
    def verdict(self) -> str:
        """The change in words, with the interval of all looks at the last that has one; none after an error."""
        bounded = self.looks[np.isfinite(self.looks[["low", "high"]]).all(axis=1)]
        if not len(bounded):
            errors = f"no verdict: fix {self.audit.codes} first; " if not self.trusted else "zero is not ruled out: "
            return f"{errors}no look has an interval yet"
        change, low, high = (float(bounded[name].iloc[-1]) for name in ("change", "low", "high"))
        if not self.trusted:
            return no_verdict(self.audit, change, low, high, self.estimand)
        if self.decided is None:
            return verdict(change, low, high, self.estimand)
        if low <= 0.0 <= high:
            up, down = self.estimand.directions
            amount = self._amount
            last = f"at the last look the interval holds it again, {amount(change)} ({amount(low)} to {amount(high)})"
            word = up if self.change == self.estimand.outcomes[0] else down
            return f"{word}: zero was ruled out in {self._decided_in}, and that stands; {last}"
        return f"{verdict(change, low, high, self.estimand)} since {self._decided_in}"

    def _amount(self, change: float) -> str:
        widths = (self.looks["fixed_high"] - self.looks["fixed_low"]) / 2
        return self.estimand.amount(change, margin=math.nan if self.estimand.plain else float(widths.min()))

    @property
    def _price_in_words(self) -> str:
        looks = plural(self.planned, "look")
        if self.spending == "any-time":
            wide = f"{self.price:.2f} times as wide as those for one look"
            return f"Intervals that hold at any time are {wide}, after {looks}."
        if math.isnan(self.price):
            return f"No error is spent yet of the {looks} planned."
        spent = f"error spent as by {_NAMES[self.spending]}"
        return (
            f"Intervals that hold at all of {looks} ({spent}) are {self.price:.2f} times as wide as those for "
            "one look, at the last that has one."
        )

    @property
    def _decided_in(self) -> str:
        """The period of the first look that rules zero out, in words."""
        return "" if self.decided is None else f"period {self.dates.named(self.decided)}"

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        effect = self.effect
        return {
            "kind": "monitor",
            "metric": self.metric,
            "estimator": effect.estimator,
            "design": effect.design,
            "machines": effect.machines,
            "controls": effect.controls,
            "planned": self.planned,
            "spending": self.spending,
            "least_p_value": 0.0 if self.spending == "any-time" else LEAST_SPENT,
            "metric_kind": self.estimand.name,
            "change_kind": self.estimand.change,
            "target": self.estimand.target,
            "looks": [{name: _plain(value) for name, value in row.items()} for row in self.looks.to_dict("records")],
            "change": self.change,
            "decided": self.decided,
            "trusted": self.trusted,
            "verdict": self.verdict,
            "price": _plain(self.price),
            **self.audit.payload(),
            "notes": list(self.notes),
        }

    def frame(self) -> pd.DataFrame:
        """Return the looks, a row each."""
        return self.looks

    def figure(self) -> "Figure":
        """Return the estimates look by look with both kinds of intervals."""
        from analysis.figures.effects.answers import draw_looks

        return draw_looks(self.looks, self.planned, unit=self.estimand.unit)

    def section(self) -> Section:
        """Return the looks as a table, in words whether there is a change, and what the guards and notes say."""
        return Section("", tuple(self._blocks()))

    def _p_value(self, value: float) -> str:
        """Return a p-value as text; of a spent error the least that is told is a bound."""
        least = self.spending != "any-time" and value < 1.001 * LEAST_SPENT
        return f"at most {LEAST_SPENT:g}" if least else f"{value:.2g}"

    def _blocks(self) -> Iterator[Block]:
        amount = self._amount
        rows = [
            (
                f"{row['period']:g}",
                f"{row['share']:.0%}" if row["share"] <= 1 else "past",
                amount(row["change"]),
                f"{amount(row['low'])} to {amount(row['high'])}" if math.isfinite(row["low"]) else "nothing yet",
                f"{amount(row['fixed_low'])} to {amount(row['fixed_high'])}",
                self._p_value(row["p_value"]),
            )
            for row in self.looks.to_dict("records")
        ]
        of_all = "at any time" if self.spending == "any-time" else "at all looks"
        titles = ("until", "information", "change", of_all, "at this look alone", f"p {of_all}")
        yield table(titles, rows, words=0)
        yield Says(self.verdict, "strong" if self.trusted else "")
        if not self.estimand.plain:
            yield Says(f"estimated: {quantity(self.estimand)}")
        if self.metric is not None:
            yield Says(f"measured: {METRICS[self.metric].words} ({self.metric})")
        yield Says(self._price_in_words)
        yield from finding_lines(beside(self.effect.estimator, self.audit.findings))
        yield from note_lines(self.notes)


def monitor(
    sources: Sequence[Source],
    jobs: Source | None = None,
    *,
    every: Every = "period",
    planned: int | None = None,
    estimator: str = RECOMMENDED,
    confidence: float = 0.95,
    metric: MetricName | None = None,
    spending: Spending = "any-time",
    recipe: Recipe = AS_IT_IS,
    guards: Sequence[str | GuardFunction] = (),
    metric_kind: str = "rate",
    change: ChangeKind | None = None,
    target: Target | None = None,
) -> MonitorAnswer:
    """Return an experiment's cumulative estimates, look by look, with intervals that hold at all looks together.

    Parameters
    ----------
    sources : files of observations, taken together, or the folder of a run
    jobs : job, quota, instances of the whole fleet; jobs weigh as in the tables without it
    every : a look after each ``period``, each ``day``, or each so many units of the periods
    planned : looks until the planned horizon, for which the intervals are tuned; as many as there are if left out
    estimator : a name in `analysis.effects.methods`; a staged roll-out has its own in place of the recommended one
    confidence : 0..1, of all looks together
    metric : of a run; that of its scenario if not said
    spending : how the error is spent over looks: ``any-time`` for intervals that hold past the horizon, too, or
        ``obrien-fleming`` or ``pocock`` for narrower ones that hold up to it
    recipe : how columns of the tables become ours
    guards : of somebody's own, beside ours: functions, or where they are, such as ``mine.py:racks_alike``
    metric_kind : rate, mean, proportion, ratio or a quantile such as p90
    change, target : as of `scenarios.effects.effect.effect`

    Raises
    ------
    FaultsError
        If the table, an option or the experiment cannot be used.
    """
    method(estimator)
    estimand = Estimand.of(metric_kind, change, target)
    if estimand.metric_kind == "quantile" and spending == "obrien-fleming":
        raise FaultsError([Fault("", 0, 0, "spending", _NOT_OF_QUANTILES, spending)])
    own = own_guards(guards) if guards else ()
    read = experiment(sources, jobs, metric, recipe, estimand)
    audited = read.audit(About(), without=AT_THE_END, own=own)
    rows, left_out = read.observations.estimable()
    rows, rolled_back = without_rolled_back(rows)
    with read.faults():
        ends, design = _ends(rows, every), Observations.of(rows).design
        chosen = for_design(estimator, design)
        if wrong_kind := unanswerable(chosen, estimand, design):
            raise FaultsError([Fault("", 0, 0, "estimator", wrong_kind)])
        looked_at = LookedAt(read.jobs, chosen, estimand, confidence)
        effects, notes = _effects(rows, ends, looked_at)
        total, last = planned or len(ends), effects[-1].effect
        share = _shares(_of_machines(rows, read.jobs, estimand), ends, total, last.design)
        correlation, taken = _correlation(rows, effects, looked_at, spending)
    told = pd.DataFrame([look.row(float(share[look.place - 1])) for look in effects])
    looks = _with_ends(intervals(told, confidence, spending=spending, correlation=correlation), effects)
    looks = looks.rename(columns={"excluded": "zero_ruled_out"})
    notes += [*taken, *_of_the_plan(planned, len(ends), spending), *_of_the_confidence(confidence, spending)]
    return MonitorAnswer(
        effect=last,
        looks=looks,
        planned=total,
        spending=spending,
        price=_price(looks, confidence, spending),
        metric=read.metric,
        audit=audited,
        notes=(*read.notes, *left_out, *rolled_back, *read.not_looking(), *notes, *last.notes, *audited.silent),
        dates=read.dates,
        estimand=estimand,
    )


def _correlation(
    rows: pd.DataFrame, effects: Sequence[MonitorLook], looked_at: LookedAt, spending: Spending
) -> tuple[Floats | None, list[str]]:
    """Return how the looks' estimates go together, by redrawing machines, or a note where that is not looked at."""
    chosen, design = looked_at.chosen, effects[-1].effect.design
    if spending == "any-time" or len(effects) == 1:
        return None, []
    if design != "concurrent" or chosen.needs:
        return None, [f"increments of a {design} study's estimates by {chosen.name} are taken to be independent"]
    redrawn = Redrawn(chosen)
    for look in effects:
        without = look.without_feature(rows, looked_at.jobs, looked_at.estimand.target)
        redrawn.look(without, look.effect.machines)
    return redrawn.correlation(), []


def _of_the_plan(planned: int | None, looks: int, spending: Spending) -> Iterator[str]:
    """Yield what is to be known where looks were not planned, or are more than were."""
    if planned is None:
        yield (
            f"as many looks are planned as the table has, {looks}; "
            "plan their number before the first look, by --planned"
        )
    elif planned < looks:
        beyond = (
            "intervals hold past the horizon, too, but are wider than if it had been planned so far"
            if spending == "any-time"
            else "all error is spent at the horizon, so that later looks say nothing"
        )
        yield f"there are {looks} looks, more than the {planned} planned: {beyond}"


def _of_the_confidence(confidence: float, spending: Spending) -> Iterator[str]:
    """Yield that boundaries of a very small error are not known."""
    if spending != "any-time" and 1.0 - confidence < 0.999 * LEAST_SPENT:
        yield (
            f"how far looks must lie from zero is known up to a confidence of {1 - LEAST_SPENT:.1%} where an error is "
            "spent; these intervals may hold less often than is said: take any-time"
        )


def _shares(rows: pd.DataFrame, ends: Floats, planned: int, design: str) -> Floats:
    """Return each look's share of the planned information, or looks where levels of machines tell nothing of it."""
    if design != "concurrent":
        return np.arange(1, len(ends) + 1) / planned
    periods = np.unique(rows["period"].to_numpy(dtype=np.float64))
    past = int((periods < rows.loc[rows["treated"] > 0, "period"].min()).sum())
    return shares(machine_levels(rows), past, (np.searchsorted(periods, ends, "right") - past).tolist(), planned)


def _of_machines(rows: pd.DataFrame, jobs: pd.DataFrame | None, estimand: Estimand) -> pd.DataFrame:
    """Return the rows of which levels of machines tell what each look adds: of a ratio of sums by their exposure."""
    if not estimand.plain:
        rows = Linearised.of(rows, jobs, estimand).near_one()[0]
    return rows.assign(weight=exposure(rows)) if estimand.target == "sums" else rows


def _with_ends(looks: pd.DataFrame, effects: Sequence[MonitorLook]) -> pd.DataFrame:
    """Return looks of which relative changes of what is no rate have the intervals of all that no look refutes."""
    if effects[0].relative is None:
        return looks
    for low, high in (("low", "high"), ("fixed_low", "fixed_high")):
        widths = ((looks[high] - looks["change"]) / looks["error"]).tolist()
        ends = [
            look.relative.ends(width) if look.relative is not None and math.isfinite(width) else (-math.inf, math.inf)
            for look, width in zip(effects, widths, strict=True)
        ]
        looks = looks.assign(**{low: [end[0] for end in ends], high: [end[1] for end in ends]})
    return looks.assign(error=[look.effect.error for look in effects])


def _price(looks: pd.DataFrame, confidence: float, spending: Spending) -> float:
    if spending == "any-time":
        first = looks.iloc[0]
        return price(float(first["freedom"]), confidence, float(first["share"]))
    width = ((looks["high"] - looks["low"]) / (looks["fixed_high"] - looks["fixed_low"])).to_numpy(dtype=np.float64)
    bounded = width[np.isfinite(width)]
    return float(bounded[-1]) if len(bounded) else math.nan


def _ends(table: pd.DataFrame, every: Every) -> Floats:
    """Return the last period of each look, from the first with the feature on."""
    periods = np.unique(table["period"].to_numpy(dtype=np.float64))
    study: Floats = periods[periods >= table.loc[table["treated"] > 0, "period"].min()]
    if not len(study):
        raise InputError(NO_FEATURE)
    if every == "period":
        return study
    look = np.floor((study - study[0]) / (_day(periods) if every == "day" else every) + 1e-9)
    ends: Floats = study[np.r_[look[1:] != look[:-1], True]]
    return ends


def _day(periods: Floats) -> float:
    return DAY_S if len(periods) > 1 and float(np.diff(periods).min()) >= _SECONDS else 1.0


def _effects(table: pd.DataFrame, ends: Floats, looked_at: LookedAt) -> tuple[list[MonitorLook], list[str]]:
    """Return each look that has an estimate, and which looks have none.

    Raises
    ------
    NotEnoughDataError, ArgumentError
        If no look has an estimate, or if changes are relative to a level that is 0 at the last one.
    """
    looks, notes, refused = list[MonitorLook](), list[str](), None
    for place, end in enumerate(ends.tolist(), start=1):
        try:
            looks.append(looked_at.look(place, end, table[table["period"] <= end]))
        except (NotEnoughDataError, ArgumentError) as error:
            notes.append(f"no estimate until {end:g}: {error}")
            refused = error
        else:
            refused = None
    if refused is not None and (not looks or isinstance(refused, ArgumentError)):
        raise refused
    design = looks[-1].effect.design
    early = [f"{look.until:g}" for look in looks if look.effect.design != design]
    if early:
        notes.append(f"looks of another design were left out: {', '.join(early)}")
    return [look for look in looks if look.effect.design == design], notes


def _plain(value: float | bool) -> float | bool | None:
    return value if math.isfinite(value) else None
