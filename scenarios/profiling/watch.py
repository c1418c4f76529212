"""`wsc profile watch`: what changed in a profile over time, when, by how much, and what the change goes with."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from models.arrays import DAY_S
from scenarios.files.faults import Fault, FaultsError, shown
from scenarios.files.options import time_since, time_text, typed
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import plural
from scenarios.views.section import Says, Section, Table, note_lines, says
from scenarios.views.tables import of_rows

if TYPE_CHECKING:
    import pandas as pd

    from analysis.profiling.changes.detection import DetectableGrowth, HiddenGrowth, Kind, WatchCriteria
    from analysis.profiling.changes.reading import WatchSpan
    from analysis.profiling.changes.series import Clock, CountSeries
    from analysis.profiling.changes.watching import WatchedSeries, WatchFinding
    from analysis.profiling.database import Database
    from models.arrays import Floats

_SIZES, _LARGER = (0.0001, 0.001, 0.01), (0.03, 0.1, 0.3)
_KINDS: "tuple[Kind, ...]" = ("growth", "improvement", "transient", "shift")
_LISTED = 3
_KNOWN_TIME = "if you know when to look, `wsc profile regress --at TIME` may find smaller changes"
LARGEST_FACTOR = 64.0
"""Largest growth that is tried."""


@dataclass(frozen=True, slots=True)
class WatchedTime:
    """The time that is looked at, before it is known from when a profile's times count."""

    since: float | None = None
    """Seconds since the beginning, or a point in time."""
    until: float | None = None
    width_s: float = 3600.0

    def span(self, origin_s: float | None) -> "WatchSpan":
        """Return it in seconds since the beginning, which is at `origin_s` seconds since 1970, or nowhere."""
        from analysis.profiling.changes.reading import WatchSpan

        since_s = time_since("--since", self.since, origin_s)
        return WatchSpan(since_s, time_since("--until", self.until, origin_s), self.width_s)


@dataclass(frozen=True, slots=True)
class NamedCause:
    """A value of a dimension that a change goes with."""

    dimension: str
    value: str
    application: str
    """Whose revision it is; empty for others."""
    explained: float
    """How much of the change it explains: drop in deviance over the dispersion."""

    def words(self) -> str:
        """Return it in words."""
        owner = f" of {self.application}" if self.dimension == "revision" and self.application else ""
        return f"{self.dimension} {self.value}{owner}".strip()


@dataclass(frozen=True, slots=True)
class CourseStep:
    """What a function cost in a step of time, over what it would have cost had nothing changed."""

    start_s: float
    ratio: float | None
    """None: nothing was sampled of anything."""
    low: float | None
    high: float | None
    """Ends of the 95% interval."""


@dataclass(frozen=True, slots=True)
class WatchedChange:
    """A change of a function, or of a function with all that it calls."""

    function: str
    with_callees: bool
    """Whether it is of the function with all that it calls; none of these then changed enough by itself."""
    kind: "Kind"
    """growth, improvement, transient (it went away), shift (cost moved between functions)."""
    since_s: float
    until_s: float | None
    """When it went away; None: it did not."""
    reported_s: float
    """From when on the data told it."""
    factor: float | None
    """None: it came from nothing, or went to it, or nearly so."""
    low: float | None
    high: float | None
    """Ends of the factor's 95% interval."""
    cost: float
    """As a share of all events since; negative: it saves."""
    root: float
    """Signed root of the likelihood ratio of the clearest window: standard deviations from no change."""
    causes: tuple[NamedCause, ...] = ()
    """What it goes with, the best explanation first."""
    callers: tuple[str, ...] = ()
    """Callers that changed with it, by it."""
    partners: tuple[str, ...] = ()
    """Of a shift: functions from or to which cost moved."""
    course: tuple[CourseStep, ...] = ()
    """Over all time, in equal steps."""
    within: dict[str, str] = field(default_factory=dict)
    """Platform or data centre by its tag, if it is clearest there; factor and course are of it, the cost is not."""

    @classmethod
    def of(cls, finding: "WatchFinding", clock: "Clock") -> "WatchedChange":
        """Return a change in times and factors."""
        from analysis.profiling.changes.course import MOST_LOG

        change = finding.change
        half = 1.96 * change.error
        low, factor, high = (math.exp(min(change.log_factor + by, MOST_LOG)) for by in (-half, 0.0, half))
        return cls(
            finding.function,
            finding.subtree,
            change.kind,
            since_s=clock.start_s(change.start),
            until_s=None if change.end is None else clock.start_s(change.end),
            reported_s=clock.start_s(change.alarm),
            factor=None if change.nothing else factor,
            low=None if change.nothing else low,
            high=None if change.nothing else high,
            cost=change.cost,
            root=change.root,
            causes=tuple(
                NamedCause(cause.dimension, cause.value, cause.application, cause.explained)
                for cause in finding.explanations[:_LISTED]
            ),
            callers=finding.callers,
            partners=finding.partners,
            course=tuple(
                CourseStep(start_s, *(float(value) if math.isfinite(value) else None for value in values))
                for start_s, *values in finding.course.itertuples(index=False, name=None)
            ),
            within=dict([finding.within]) if finding.within else {},
        )

    def by(self) -> float | str:
        """Return the factor, or in words why there is none."""
        return self.factor or ("from nothing" if self.cost > 0 else "to nothing")

    def between(self) -> str:
        """Return the factor's interval in words; empty: it has none."""
        return "" if self.low is None or self.high is None else f"{self.low:.3g} to {self.high:.3g}"

    def where(self) -> str:
        """Return in words on which platform or in which data centre it is; empty: in the whole fleet.

        Where something else goes with it, or nothing is known to, it may be elsewhere, too.
        """
        for tag, value in self.within.items():
            alone = any((cause.dimension, cause.value) == (tag, value) for cause in self.causes[:1])
            return f"{'' if alone else 'clearest '}{'on' if tag == 'platform' else 'in'} {value}"
        return ""

    def goes_with(self) -> str:
        """Return what the change goes with, in words."""
        if self.kind == "shift":
            return f"{'from' if self.cost > 0 else 'to'} {', '.join(self.partners)}"
        return self.causes[0].words() if self.causes else ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ProfileWatch(Conclusion):
    """What changed over time, and what could have been found."""

    event: str
    paths_event: str
    """Whose call paths told of functions with all that they call; empty: none."""
    criteria: "WatchCriteria"
    samples: int
    functions: int
    subtrees: int
    bins: int
    width_s: float
    changes: tuple[WatchedChange, ...]
    """The clearest first."""
    detectable: "tuple[DetectableGrowth, ...]"
    probability: float
    """With which growth by `DetectableGrowth.factor` is found."""
    within: int = 0
    """Series of functions on one platform, or in one data centre, alone."""
    hidden: "HiddenGrowth | None" = None
    """What functions' drift hides; None: no drift was measured, or it may be chance."""
    lacking: str = ""
    """Why nothing could be compared; empty: something was."""
    notes: tuple[str, ...] = ()
    origin_s: float | None = None
    """From when times count, in seconds since 1970; none: a simulated run, or files that do not say it."""

    @property
    def alarms(self) -> tuple[WatchedChange, ...]:
        """The functions that became more expensive and still are."""
        return tuple(change for change in self.changes if change.kind == "growth")

    def brief(self) -> str:
        """Return how many functions became more expensive."""
        return self.verdict()

    def frame(self) -> "pd.DataFrame":
        """Return the changes, the clearest first, without their courses; of causes only the best.

        Where a change is clearest is in words, such as "platform skylake".
        """
        import pandas as pd

        rows = [
            asdict(change) | {"within": " ".join(word for tag in change.within.items() for word in tag)}
            for change in self.changes
        ]
        best = [change.causes[0] if change.causes else None for change in self.changes]
        names = [name for name in WatchedChange.__dataclass_fields__ if name not in {"causes", "course"}]
        return pd.DataFrame(rows, columns=names).assign(
            dimension=[cause.dimension if cause else "" for cause in best],
            value=[cause.value if cause else "" for cause in best],
            application=[cause.application if cause else "" for cause in best],
        )

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        return {
            "kind": "profile watch",
            "event": self.event,
            "paths_event": self.paths_event,
            "criteria": asdict(self.criteria),
            "samples": self.samples,
            "series": {"functions": self.functions, "subtrees": self.subtrees, "within": self.within},
            "bins": {"count": self.bins, "width_s": self.width_s},
            "changes": [asdict(change) for change in self.changes],
            "probability": self.probability,
            "detectable": [asdict(size) for size in self.detectable],
            "hidden": asdict(self.hidden) if self.hidden else None,
            "lacking": self.lacking,
            "notes": list(self.notes),
            **({} if self.origin_s is None else {"origin_s": self.origin_s}),
        }

    def section(self) -> Section:
        """Return what became more expensive, what could have been found, and what else changed."""
        blocks: list[Says | Table] = [Says(f"{self.scope()}: {self.verdict()}")]
        blocks += [] if self.lacking else [Says(self.could_find())]
        blocks += says(self.hides(), _KNOWN_TIME) if self.hides() and not self.lacking else []
        blocks += [_table(self.changes, self.origin_s)] if self.changes else []
        blocks += says(self.others())
        return Section("", (*blocks, *note_lines(self.notes)))

    def scope(self) -> str:
        """Return in words what was looked at."""
        subtrees = f" and {self.subtrees:,} callers with all that they call" if self.subtrees else ""
        width = typed("TIME", self.width_s)
        functions = plural(self.functions, "function")
        within = f", also {self.within:,} pairs of a function and a platform or data centre," if self.within else ""
        looked_at = f"{plural(self.samples, 'sample')}, {functions}{subtrees}{within}"
        return f"{looked_at} in {plural(self.bins, 'bin')} of {width}"

    def verdict(self) -> str:
        """Return in words how many functions became more expensive, and by what criteria."""
        if self.lacking:
            return f"nothing was compared: {self.lacking}"
        alarms, rate = len(self.alarms), f"{100 * self.criteria.false_alarms:.3g}%"
        count = f"{alarms} function{'s' * (alarms != 1)} became" if alarms else "no function is shown to have become"
        return f"{count} more expensive (chance of any false alarm, at any time: {rate})"

    def others(self) -> str:
        """Return in words what else changed."""
        counts = {kind: sum(change.kind == kind for change in self.changes) for kind in _KINDS[1:]}
        words = {
            "improvement": "became cheaper",
            "transient": "changed for a time only",
            "shift": "only passed cost to each other",
        }
        named = [f"{counts[kind]} {words[kind]}" for kind in _KINDS[1:] if counts[kind]]
        return f"of functions, {', '.join(named)}" if named else ""

    def could_find(self) -> str:
        """Return in words by how much functions of some sizes must grow to be found within a day."""
        if not self.detectable:
            sizes = ", ".join(f"{100 * size:.2g}%" for size in (*_SIZES, *_LARGER))
            return f"what could have been found is not known: no function has about {sizes} of {self.event}"
        parts: list[str] = []
        never: list[str] = []
        for size in self.detectable:
            name = f"{100 * size.share:.2g}%" + f" of {self.event}" * (not parts and not never)
            if size.factor is None:
                never.append(name)
            else:
                cost = 100.0 * size.share * (size.factor - 1.0)
                parts.append(f"of {name} by {_upwards(size.factor)} × ({cost:.2g} points)")
        missed = f"of {' or '.join(never)} not even by {LARGEST_FACTOR:g} ×" if never else ""
        within = "a day" if self.width_s <= DAY_S else typed("TIME", self.width_s)
        fleet = "in the whole fleet " if self.within else ""
        known = f"found within {within} with {self.probability:.0%} probability: growth {fleet}of a function "
        return known + ", ".join((*parts, *((missed,) if missed else ()))) + self._limit()

    def hides(self) -> str:
        """Return in words what functions' drift hides; nothing if no drift was measured, or it may be chance."""
        if self.hidden is None:
            return ""
        drifts = [f"{100.0 * drift:.2g}%" for drift in (self.hidden.least_drift, self.hidden.most_drift)]
        growths = [f"{100.0 * (factor - 1.0):.2g}%" for factor in (self.hidden.least, self.hidden.most)]
        drift, growth = (" to ".join(dict.fromkeys(ends)) for ends in (drifts, growths))
        steadiest = " (least for functions of many applications and samples)" if len(set(drifts)) > 1 else ""
        return (
            f"functions drift: a day differs from the days before by about {drift} beyond chance{steadiest}; "
            f"growth by less than {growth} within a day cannot be told from that"
        )

    def _limit(self) -> str:
        """Return in words what a test that knows function and time would find."""
        sizes = [size for size in self.detectable if size.factor and size.limit]
        if not sizes:
            return ""
        factors = ", ".join(f"{_upwards(size.limit)} ×" for size in sizes if size.limit)
        return f"; a test that knew function and time would find {factors}"


def _upwards(factor: float) -> str:
    """Return a factor rounded up, so that growth by what is told suffices."""
    digits = 1 if factor >= 2 else 2 if factor >= 1.1 else 4
    return f"{math.ceil(factor * 10**digits - 1e-9) / 10**digits:g}"


def _table(changes: Iterable[WatchedChange], origin_s: float | None) -> Table:
    """Return changes with times, what they go with, factors and costs."""
    import pandas as pd

    rows = [
        {
            "function": f"{change.function}{' with callees' * change.with_callees}",
            "change": f"{change.kind} {change.where()}".strip(),
            "since": time_text(change.since_s, origin_s),
            "until": "the end" if change.until_s is None else time_text(change.until_s, origin_s),
            "goes_with": change.goes_with(),
            "factor": change.by(),
            "low": change.low,
            "high": change.high,
            "cost_share": change.cost,
        }
        for change in changes
    ]
    table = pd.DataFrame(rows)
    if table["until"].eq("the end").all():
        table = table.drop(columns="until")
    return of_rows(table, {"cost_share": "cost", "change": "change", "goes_with": "goes with"})


def watch(
    paths: Sequence[Path],
    event: str | None = None,
    criteria: "WatchCriteria | None" = None,
    span: "WatchedTime | None" = None,
) -> ProfileWatch:
    """Return what changed in a profile over time: what grew, what it goes with, and what could have been found.

    Parameters
    ----------
    paths : profile directories, files of other tools, folders of such files, or patterns of their names
    event : what is watched; none: cycles, or the first event of a profile that has no cycles
    criteria : when a change is worth an alarm
    span : time that is looked at, and in what steps

    Raises
    ------
    FaultsError
        If the event is unknown, no visit began in this time, or bins are too many or do not begin at the same hours.
    QueryError, ProfileError
        If the event has no samples in this time, or a folder is no profile.
    """
    from scenarios.profiling.query import opened

    notes: list[str] = []
    with opened(list(paths), notes) as database:
        answer = watch_database(database, event, criteria, (span or WatchedTime()).span(database.origin_s))
    return replace(answer, notes=(*dict.fromkeys(notes), *answer.notes))


def watch_database(
    database: "Database",
    event: str | None = None,
    criteria: "WatchCriteria | None" = None,
    span: "WatchSpan | None" = None,
) -> ProfileWatch:
    """Return the same of a profile that is open.

    Parameters
    ----------
    database : asked
    event, criteria, span : as `watch` takes them

    Raises
    ------
    FaultsError, QueryError
        As `watch`.
    """
    from analysis.profiling.changes.detection import PROBABILITY, WatchCriteria, hidden_by_drift
    from analysis.profiling.changes.reading import WatchSpan
    from analysis.profiling.changes.watching import watch as watched_of
    from analysis.profiling.fleet_samples import visits_of_fleet
    from analysis.profiling.query import event_or_default, unknown
    from analysis.profiling.symbolise import UNKNOWN

    criteria, span = criteria or WatchCriteria(), span or WatchSpan()
    events = database.events()
    event = event_or_default(events, event)
    faults = [] if event in events else [Fault("", 0, 0, "event", unknown("event", event, events))]
    faults += span_faults(span, visits_of_fleet(database)["start_s"].to_numpy("float64"), database.origin_s)
    if faults:
        raise FaultsError(faults)
    watched = watched_of(database, event, criteria, span)
    series = watched.series
    changed = [WatchedChange.of(finding, series.clock) for finding in watched.findings]
    return ProfileWatch(
        event,
        watched.paths_event,
        criteria,
        samples=round(float(series.everything.sum())),
        functions=len(series.functions),
        subtrees=0 if watched.subtrees is None else len(watched.subtrees.functions),
        bins=series.clock.bins,
        width_s=series.clock.width_s,
        changes=tuple(change for change in changed if change.function != UNKNOWN),
        detectable=tuple(_growth(series, criteria, watched.tests)),
        within=sum(len(part.functions) for part in watched.parts),
        hidden=hidden_by_drift(series, criteria, watched.tests),
        probability=PROBABILITY,
        lacking=_lacking(series),
        notes=(*_without_symbols(changed, database.origin_s), *_limits(watched, event)),
        origin_s=database.origin_s,
    )


def _growth(series: "CountSeries", criteria: "WatchCriteria", tests: int) -> "Sequence[DetectableGrowth]":
    """Return what could have been found of functions of the usual sizes, or of larger ones where there are none."""
    from analysis.profiling.changes.detection import detectable

    usual = detectable(series, criteria, tests, _SIZES)
    return usual or detectable(series, criteria, tests, _LARGER)


def span_faults(span: "WatchSpan", start_s: "Floats", origin_s: float | None = None) -> "Iterator[Fault]":
    """Yield what is wrong with the time that is looked at.

    Parameters
    ----------
    span : time that is looked at
    start_s : when visits began
    origin_s : from when times count, in seconds since 1970; None: unknown
    """
    from analysis.profiling.changes.series import MOST_BINS, Clock, least_width_s, repeats_daily

    def fault(argument: str, problem: str, value_s: float) -> Fault:
        text = typed("TIME", value_s) if argument == "bin_s" else time_text(value_s, origin_s)
        return Fault("", 0, 0, argument, problem, shown(text))

    if not len(start_s):
        return
    since_s, until_s, width_s = span.since_s, span.until_s, span.width_s
    first, last = (time_text(float(end), origin_s) for end in (start_s.min(), start_s.max()))
    if since_s is not None and since_s > start_s.max():
        yield fault("since", f"should be at most {last}, when the last visit began", since_s)
    if until_s is not None and since_s is not None and until_s <= since_s:
        yield fault("until", f"should be after since, {time_text(since_s, origin_s)}", until_s)
    elif until_s is not None and until_s <= start_s.min():
        yield fault("until", f"should be after {first}, when the first visit began", until_s)
    inside = start_s[span.holds(start_s)]
    if not repeats_daily(width_s):
        yield fault("bin_s", "should divide a day, such as 1h, 90min or 6h, or be a number of days", width_s)
    elif len(inside) and Clock.count(inside, width_s) > MOST_BINS:
        least = typed("TIME", least_width_s(inside))
        yield fault("bin_s", f"should be at least {least}, so that there are at most {MOST_BINS:,} bins", width_s)


def _lacking(series: "CountSeries") -> str:
    """Return in words why nothing could be compared; nothing if something was."""
    from analysis.profiling.changes.detection import comparable
    from analysis.profiling.changes.reading import MIN_SAMPLES
    from analysis.profiling.changes.series import LEAST_MACHINES

    sampled = int((series.everything > 0).sum())
    if sampled < 2:
        bins = "one bin" if series.clock.bins == 1 else f"one of {series.clock.bins:,} bins has samples"
        return f"{bins}; at least two are needed"
    if not comparable(series):
        return "no two days have samples at the same hours"
    if not len(series.functions):
        return f"no function has {MIN_SAMPLES} samples"
    if series.side_by_side < LEAST_MACHINES:
        reason = f"no application was sampled on more than {plural(series.side_by_side, 'machine')} on one day"
        return f"{reason}, so nobody can tell how much machines differ by chance; at least {LEAST_MACHINES} are needed"
    return ""


def _without_symbols(changes: Iterable[WatchedChange], origin_s: float | None) -> Iterator[str]:
    """Yield how samples without symbols changed: these are of no function, but show that a build's are missing."""
    from analysis.profiling.symbolise import UNKNOWN

    for change in changes:
        if change.function == UNKNOWN and not change.with_callees:
            when = f"from {time_text(change.since_s, origin_s)} on"
            cause = f", {change.causes[0].words()}" if change.causes else ""
            many = change.by() if change.factor is None else f"{change.factor:.2g} × as many"
            yield f"samples without symbols: {many} {when}{cause}; their functions are unknown"


def _limits(watched: "WatchedSeries", event: str) -> Iterable[str]:
    """Yield what the data cannot tell."""
    clock = watched.series.clock
    if clock.width_s >= DAY_S and clock.bins > 1:
        width = "as wide as a day" if clock.width_s == DAY_S else "wider than a day"
        yield f"bins are {width}: hours of the day are not compared"
    elif clock.period == 1 and clock.bins > 1:
        yield "less than two days: hours of the day cannot be told from changes"
    if watched.series.weekly is None and clock.width_s <= DAY_S and clock.bins > clock.day:
        yield "less than eight days: days of the week cannot be told from changes"
    series = watched.series
    values = [series.strata[part].nunique() for part in ("platform", "datacentre")]
    beyond = sum(count for count in values if count > 1) - len(series.parts_of)
    if beyond > 0:
        yield f"platforms and data centres that are too many to be watched by themselves: {beyond:,}"
    if watched.left_out:
        fewer = f"{watched.left_out:,} of the functions with fewer samples on one platform or in one data centre"
        yield f"{fewer} are not watched there by themselves"
    if not watched.paths_event:
        yield "no call paths: callers with all that they call are not watched"
    elif watched.paths_event != event:
        yield f"call paths are those of {watched.paths_event}: {event} has none"
