"""`wsc profile regress`: what became more expensive from one profile to the next, and what the change goes with."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from scenarios.files.faults import Fault, FaultsError
from scenarios.files.options import number, one_of, share, time_since
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.section import Says, Section, Table, note_lines
from scenarios.views.tables import of_rows

if TYPE_CHECKING:
    import pandas as pd

    from analysis.profiling.database import Database
    from analysis.profiling.regressions.comparison import Adjustment, AlarmCriteria, CostComparison
    from analysis.profiling.regressions.reading import ReadSide

ADJUSTMENTS: tuple["Adjustment", ...] = ("holm", "benjamini-hochberg", "benjamini-yekutieli")
"""Corrections for the number of functions."""
least_growth = partial(number, least=1.0, most=64.0)
"""Reads `AlarmCriteria.min_factor`."""
least_cost = partial(share, zero=True)
"""Reads `AlarmCriteria.min_cost`."""
_TOO_FEW_FUNCTIONS = (
    "no application has six functions, so that growth of one cannot be told from a drift of all: wsc profile diff "
    "compares their shares, wsc profile watch also each with its own days"
)
adjustment = partial(one_of, known=ADJUSTMENTS)
"""Reads `AlarmCriteria.adjustment`."""


@dataclass(frozen=True, slots=True)
class Detectable:
    """By what factor functions of some size must grow to be reported."""

    share: float
    """Of all events."""
    functions: int
    factor: float | None
    """None: they would not be reported, even if they grew by `Regression.most_factor`."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Regression(Conclusion):
    """The functions that became more expensive, and what could have been found."""

    event: str
    criteria: "AlarmCriteria"
    samples_before: int
    samples_after: int
    alarms: "pd.DataFrame"
    """The columns of `regressions.comparison.alarms`, the clearest first."""
    improvements: "pd.DataFrame"
    """The same of functions that became cheaper."""
    detectable: tuple[Detectable, ...]
    probability: float
    """With which growth by `Detectable.factor` is reported."""
    most_factor: float
    notes: tuple[str, ...] = ()

    def brief(self) -> str:
        """Return how many functions became more expensive."""
        return self.verdict()

    def frame(self) -> "pd.DataFrame":
        """Return the alarms, then the improvements, whose cost is negative."""
        import pandas as pd

        return pd.concat([self.alarms, self.improvements], ignore_index=True) if len(self.improvements) else self.alarms

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        return {
            "kind": "profile regress",
            "event": self.event,
            "criteria": asdict(self.criteria),
            "samples": {"before": self.samples_before, "after": self.samples_after},
            "alarms": self.alarms.to_dict("records"),
            "improvements": self.improvements.to_dict("records"),
            "probability": self.probability,
            "most_factor": self.most_factor,
            "detectable": [asdict(size) for size in self.detectable],
            "notes": list(self.notes),
        }

    def section(self) -> Section:
        """Return the alarms, the clearest first, what could have been found, and the improvements."""
        samples = f"{self.samples_before:,} samples before, {self.samples_after:,} after"
        blocks: list[Says | Table] = [Says(f"{samples}: {self.verdict()}"), Says(self.could_find())]
        blocks += [_table(self.alarms)] if len(self.alarms) else []
        blocks.append(Says(self.cheaper()))
        blocks += [_table(self.improvements)] if len(self.improvements) else []
        return Section("", (*blocks, *note_lines(self.notes)))

    def verdict(self) -> str:
        """Return in words how many functions became more expensive, by what criteria."""
        alarms, criteria = len(self.alarms), self.criteria
        count = f"{alarms} function{'s' * (alarms != 1)} became" if alarms else "no function is shown to be"
        rate = f"{100 * criteria.false_alarms:.3g}%"
        bound = "chance of any false alarm" if criteria.adjustment == "holm" else "share of false alarms among all"
        return f"{count} more expensive by over {100 * (criteria.min_factor - 1):.3g}% ({bound}: {rate})"

    def cheaper(self) -> str:
        """Return in words how many functions became cheaper, by the same criteria."""
        count, least = len(self.improvements), self.criteria.min_factor
        functions = f"{count} function{'s' * (count != 1)} became" if count else "no function is shown to be"
        return f"{functions} cheaper by over {100 * (1 - 1 / least):.3g}%"

    def could_find(self) -> str:
        """Return in words by how much functions of some sizes must grow to be reported."""
        sizes, event = self.detectable, self.event
        if not sizes:
            return f"no function has {100 * self.criteria.min_cost:.3g}% of {event}, so none could be reported"
        # Rounded up, so that growth by what is said suffices.
        factors = [(size.share, math.ceil(size.factor * 10 - 1e-9) / 10) for size in sizes if size.factor]
        finite = [(f"{100 * share:.2g}%", f"{factor:g} ×") for share, factor in factors]
        never = " or ".join(f"{100 * size.share:.2g}%" for size in sizes if not size.factor)
        most, known = f"{self.most_factor:g} ×", f"(with {self.probability:.0%} probability)"
        if not finite:
            return (
                f"on these machines a function of {never} of {event} is not reported even if it grows by {most} {known}"
            )
        parts = [f"a function of {finite[0][0]} of {event} must grow by {finite[0][1]}"]
        parts += [f"one of {size} by {factor}" for size, factor in finite[1:]]
        rest = f"; one of {never} is not reported even if it grows by {most}" if never else ""
        return f"on these machines {', '.join(parts)} to be reported {known}{rest}"


def _table(rows: "pd.DataFrame") -> Table:
    """Return functions, what their changes go with, factors and costs."""
    columns = ["function", "goes_with", "factor", "low", "high", "cost"]
    goes_with = [_blamed(row) for row in rows.to_dict("records")]
    named = rows.assign(goes_with=goes_with).reindex(columns=columns).rename(columns={"cost": "cost_share"})
    return of_rows(named, {"cost_share": "cost"})


def _blamed(row: Mapping[Hashable, object]) -> str:
    """Return what a change goes with, in words."""
    owner = f" of {row['application']}" if row["dimension"] == "revision" and row["application"] else ""
    return f"{row['dimension']} {row['value']}{owner}".strip()


def regress(
    before: Path | Sequence[Path],
    after: Path | Sequence[Path] | None = None,
    at: float | None = None,
    event: str | None = None,
    criteria: "AlarmCriteria | None" = None,
) -> Regression:
    """Return the functions that became more expensive or cheaper from one profile to the next, and why.

    Parameters
    ----------
    before : profile directories, files of other tools, folders of such files, or patterns of their names
    after : the later ones; none: the same, which then needs a time
    at : visits before that time are `before`, those from then on `after`
    event : what is compared; none: cycles, or the first event of a profile that has no cycles
    criteria : when a change is worth an alarm

    Raises
    ------
    FaultsError
        If one profile is given and no time, or both sides hold the same visits.
    NotEnoughDataError
        If a side has samples of one machine alone.
    QueryError, ProfileError
        If a side has no samples of the event, or a folder is no profile.
    """
    from analysis.profiling.query import QueryError, event_or_default, unknown
    from analysis.profiling.regressions.comparison import AlarmCriteria
    from analysis.profiling.regressions.reading import CostReader, ReadSide
    from scenarios.profiling.query import opened

    if at is None and after is None:
        raise FaultsError([Fault("--at", 0, 0, "", "one run needs a time that parts before from after")])
    reader, sides = CostReader(told_apart=at is None), list[ReadSide]()
    notes: list[str] = []

    def add(database: "Database", side: str, named: str | None) -> str:
        events, at_s = database.events(), time_since("--at", at, database.origin_s)
        span_s = (at_s, None) if side == "after" else (None, at_s)
        known = event_or_default(events, named)
        if known not in events:
            raise QueryError(f"{side}: {unknown('event', known, events)}")
        sides.append(reader.add(database, known, span_s, later=side == "after"))
        if not sides[-1].samples:
            raise QueryError(f"{side}: the event {known} has no samples")
        return known

    earlier, *later = ([side] if isinstance(side, Path) else side for side in (before, after) if side is not None)
    with opened(earlier, notes) as database:
        if at is None and later and {*map(Path.resolve, earlier)} == {*map(Path.resolve, later[0])}:
            raise _shared("the very samples of RUN")
        compared = add(database, "before", event)
        if after is None:
            compared = add(database, "after", compared)
    for side in later:
        with opened(side, notes) as database:
            compared = add(database, "after", compared)
    if at is None:
        _refuse_shared(*sides)
    comparison = reader.comparison()
    regression = compare(compared, sides, comparison, criteria or AlarmCriteria())
    if comparison.few and not any(size.factor for size in regression.detectable):
        notes.append(_TOO_FEW_FUNCTIONS)
    return replace(regression, notes=tuple(dict.fromkeys(notes)))


def _refuse_shared(before: "ReadSide", after: "ReadSide") -> None:
    """Refuse two sides with visits in common, which are not independent and would look as if nothing had changed."""
    shared, machines, same = len(before.fingerprints() & after.fingerprints()), len(before.machines), before.same(after)
    if not (shared or same):
        return
    samples = "the very samples of RUN" if same else f"the very samples of {shared:,} of RUN's {machines:,} machines"
    raise _shared(samples)


def _shared(samples: str) -> FaultsError:
    """Return what is wrong with a later profile that holds samples of the earlier one."""
    cure = "give a profile of another time, or RUN alone and --at"
    return FaultsError(
        [Fault("LATER", 0, 0, "", f"holds {samples}: visits on both sides say nothing of a change; {cure}")]
    )


def compare(
    event: str, sides: "Sequence[ReadSide]", comparison: "CostComparison", criteria: "AlarmCriteria"
) -> Regression:
    """Return the alarms between two sides, and what could have been found.

    Parameters
    ----------
    event : generic event
    sides : before and after
    comparison : of both
    criteria : when a change is worth an alarm
    """
    from analysis.profiling.regressions.comparison import PROBABILITY
    from analysis.profiling.regressions.detection import FACTORS

    sizes = comparison.detectable(criteria)
    detectable = (
        Detectable(float(share), int(functions), float(factor) if math.isfinite(factor) else None)
        for share, functions, factor in zip(sizes["share"], sizes["functions"], sizes["factor"], strict=True)
    )
    before, after = sides
    return Regression(
        event,
        criteria,
        samples_before=before.samples,
        samples_after=after.samples,
        alarms=comparison.alarms(criteria),
        improvements=comparison.improvements(criteria),
        detectable=tuple(detectable),
        probability=PROBABILITY,
        most_factor=float(FACTORS[-1]),
    )
