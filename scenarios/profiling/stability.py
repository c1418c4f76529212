"""How stable a fleet's profile is from day to day: ``wsc profile stability``."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import interval, number
from scenarios.views.section import Says, Section, Table, says, table

if TYPE_CHECKING:
    from analysis.profiling.database import Database
    from analysis.profiling.query import Query

_COUNTED = ("cycles", "instructions")


@dataclass(frozen=True, slots=True)
class WholeProfile:
    """What a profile of all days is worth."""

    samples: int
    clusters: int
    effective_samples: float
    """Independent samples that are as good; NaN with one cluster."""
    design_effect: float
    weighting_effect: float
    entropy: float
    entropy_error: float
    entries: int
    constant: float
    """Distance of n independent samples to the truth times √n."""

    def lines(self, unit: str) -> tuple[str, str]:
        """Return in words how spread out it is, and what it is worth if that is known."""
        spread = f"{self.samples:,} samples of {self.entries:,} entries, entropy {self.entropy:.3f}"
        if not math.isfinite(self.design_effect):
            return f"{spread}{_error(self.entropy_error)} {unit}", ""
        return (
            f"{spread}{_error(self.entropy_error)} {unit}",
            f"  as good as {self.effective_samples:,.0f} independent samples (design effect {self.design_effect:.1f}, "
            f"{self.clusters:,} clusters); n independent samples are {self.constant:.2f}/√n from the truth",
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stability(Conclusion):
    """How each day's profile differs from others, beside what sampling alone would make of it."""

    event: str
    by: tuple[str, ...]
    k: int | None
    """Largest entries that distances count; none: all."""
    unit: str
    """Of entropy: nats or bits."""
    days: pd.DataFrame
    """The columns of `analysis.profiling.stability.periods`, cpi, cpi_low, cpi_high; one row a day."""
    whole: WholeProfile

    def frame(self) -> pd.DataFrame:
        """Return the days."""
        return self.days

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        whole = asdict(self.whole)
        if self.whole.clusters < 2:
            whole = {name: value for name, value in whole.items() if name not in _OF_SEVERAL}
        return {
            "kind": "profile stability",
            "event": self.event,
            "by": list(self.by),
            "k": self.k,
            "unit": self.unit,
            "days": self.days.to_dict("records"),
            "whole": whole,
        }

    def section(self) -> Section:
        """Return each day's entropy, distances and cycles per instruction, and what the whole profile is worth."""
        spread, worth = self.whole.lines(self.unit)
        return Section("", (Says(f"{self.event} by {', '.join(self.by)}: {spread}"), *says(worth), self._table()))

    def _table(self) -> Table:
        counted = "all entries" if self.k is None else f"the {self.k} largest entries"
        return table(
            ("day", "samples", "entropy", "to the day before", "to the mean", "design effect", "CPI", "95% interval"),
            [_cells(row) for row in self.days.to_dict("records")],
            numbers=(True,) * 8,
            spare=("design effect", "samples"),
            caption=f"distances: over {counted}, in brackets the distance that sampling alone would give; ±: one "
            "standard error",
        )


_OF_SEVERAL = ("effective_samples", "design_effect", "weighting_effect")


def stability(
    folders: Sequence[Path],
    by: Sequence[str] = ("application",),
    event: str | None = None,
    k: int | None = 20,
    *,
    bits: bool = False,
    cluster: str = "visit",
) -> Stability:
    """Return entropy, distances and cycles per instruction of each day's profile, with what sampling alone makes.

    Parameters
    ----------
    folders : profile directories
    by : dimensions whose values are the profile's entries
    event : what is counted; none: cycles, or the first event of a profile that has no cycles
    k : distances count the k largest entries; None: all
    bits : entropy in bits and not in nats
    cluster : what was drawn at random: ``"visit"``, or ``"machine"`` where the same machines are looked at again

    Raises
    ------
    ProfileError
        If a folder is no profile.
    QueryError
        If a dimension or the event is unknown, or there are no samples.

    Examples
    --------
    >>> stability([Path("nowhere")])
    Traceback (most recent call last):
    analysis.profiling.storage.ProfileError: nowhere: is no folder
    """
    from analysis.profiling.database import Database
    from analysis.profiling.fleet_samples import of_fleet
    from analysis.profiling.query import QueryError, dimension, event_or_default, unknown
    from analysis.profiling.stability import periods

    own = tuple(dimension(name) for name in by)
    wrong = sorted({"day", "date", "visit", dimension(cluster)} & set(own))
    if wrong or (k is not None and k < 1):
        faults = [f"by: days are compared, so {name} cannot be an entry" for name in wrong]
        raise QueryError("\n".join(faults or [f"k: should be at least 1, got {k}"]))
    with Database(folders) as database:
        event, events = event_or_default(database.events(), event), database.events()
        if event not in events:
            raise QueryError(f"--event: {unknown('event', event, events)}")
        clustered = by_day(database, of_fleet(database, event, (*own, "day")), cluster)
        if not len(clustered):
            raise QueryError(f"the event {event} has no samples")
        days = periods(clustered, cluster=cluster, k=k, bits=bits)
        days = days.merge(_cpi_by_day(database, cluster), on="day", how="left")
    whole = _whole(clustered.drop(columns="day"), cluster, bits)
    return Stability(event, own, k, "bits" if bits else "nats", days, whole)


def by_day(database: "Database", query: "Query", cluster: str) -> pd.DataFrame:
    """Return what every cluster has of a query's rows.

    Parameters
    ----------
    database, query, cluster : as of `Database.clustered`, with the day among the query's dimensions

    Raises
    ------
    QueryError
        As `Database.clustered` does; if there are too many rows, with what to ask for.
    """
    from analysis.profiling.query import QueryError, TooManyRowsError

    try:
        return database.clustered(query, cluster)
    except TooManyRowsError as error:
        names = ", ".join(name for name in query.by if name != "day")
        many = str(error).partition(";")[0].removeprefix("the answer would have ")
        cure = "group by fewer values, such as application, image or platform"
        raise QueryError(f"by: {names}, {cluster} by {cluster}, takes {many}; {cure}") from None


def _cpi_by_day(database: "Database", cluster: str) -> pd.DataFrame:
    """Return day, cpi, cpi_low, cpi_high; no rows where an event was not sampled."""
    from analysis.profiling.fleet_samples import of_fleet
    from analysis.profiling.metrics import cpi

    columns = {"cpi": "cpi", "low": "cpi_low", "high": "cpi_high"}
    if not set(_COUNTED) <= set(database.events()):
        return pd.DataFrame(
            {"day": pd.Series(dtype="int64"), **dict.fromkeys(columns.values(), pd.Series(dtype=float))}
        )
    cycles, instructions = (database.clustered(of_fleet(database, event, ("day",)), cluster) for event in _COUNTED)
    ratios = cpi(cycles, instructions, cluster=cluster).rename(columns=columns)
    return ratios[["day", *columns.values()]]


def _whole(clustered: pd.DataFrame, cluster: str, bits: bool) -> WholeProfile:
    from analysis.profiling.intervals import ClusteredProfile, ProfileTotals, design
    from analysis.profiling.stability import clustered_entropy, expected_distance
    from analysis.statistics import NotEnoughDataError

    entropy = clustered_entropy(clustered, cluster=cluster, bits=bits)
    try:
        worth = design(clustered, cluster=cluster)
    except NotEnoughDataError:
        worth = ProfileTotals(entropy.samples, 1, math.nan, math.nan, math.nan)
    return WholeProfile(
        **asdict(worth),
        entropy=entropy.value,
        entropy_error=entropy.standard_error,
        entries=entropy.entries,
        constant=expected_distance(ClusteredProfile.of(clustered, cluster).shares, 1.0),
    )


def _cells(row: Mapping[Hashable, float]) -> tuple[str, ...]:
    """Return a day's row of the table as text."""
    return (
        str(row["day"]),
        f"{row['samples']:,}",
        f"{row['entropy']:.3f}{_error(row['entropy_error'])}",
        _distance(row["previous"], row["previous_expected"]),
        _distance(row["mean"], row["mean_expected"]),
        number(row["design_effect"], ".1f"),
        number(row["cpi"], ".3f"),
        interval(row["cpi_low"], row["cpi_high"], ".3f"),
    )


def _error(value: float) -> str:
    return f" ± {value:.3f}" if math.isfinite(value) else ""


def _distance(distance: float, expected: float) -> str:
    return f"{number(distance, '.4f')}{f' ({expected:.4f})' if math.isfinite(expected) else ''}"
