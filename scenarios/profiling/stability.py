"""How stable a fleet's profile is from day to day: ``wsc profile stability``."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from analysis.profiling.database import Database

_COUNTED = ("cycles", "instructions")


def stability(
    folders: Sequence[Path],
    by: Sequence[str] = ("application",),
    event: str = "cycles",
    k: int | None = 20,
    *,
    bits: bool = False,
    cluster: str = "visit",
) -> dict[str, Any]:
    """Return entropy, distances and cycles per instruction of each day's profile, with what sampling alone makes.

    Parameters
    ----------
    folders : profile directories
    by : dimensions whose values are the profile's entries
    event : what is counted
    k : distances count the k largest entries; None: all
    bits : entropy in bits and not in nats
    cluster : what was drawn at random: ``"visit"``, or ``"machine"`` where the same machines are looked at again

    Returns
    -------
    dict
        kind, event, by, k, unit, days (a list with the columns of `stability.periods` and cpi, cpi_low, cpi_high),
        whole (samples, clusters, effective_samples, design_effect, weighting_effect, entropy, entropy_error, entries,
        constant: the distance of n independent samples to the truth times √n).

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
    from analysis.profiling.query import QueryError, dimension
    from analysis.profiling.stability import periods

    own = tuple(dimension(name) for name in by)
    wrong = sorted({"day", "visit", dimension(cluster)} & set(own))
    if wrong or (k is not None and k < 1):
        faults = [f"by: days are compared, so {name} cannot be an entry" for name in wrong]
        raise QueryError("\n".join(faults or [f"k: should be at least 1, got {k}"]))
    with Database(folders) as database:
        clustered = database.clustered(of_fleet(database, event, (*own, "day")), cluster)
        if not len(clustered):
            raise QueryError(f"the event {event} has no samples")
        days = periods(clustered, cluster=cluster, k=k, bits=bits)
        days = days.merge(_cpi_by_day(database, cluster), on="day", how="left")
    return {
        "kind": "profile stability",
        "event": event,
        "by": list(own),
        "k": k,
        "unit": "bits" if bits else "nats",
        "days": days.to_dict("records"),
        "whole": _whole(clustered.drop(columns="day"), cluster, bits),
    }


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
    found = cpi(cycles, instructions, cluster=cluster).rename(columns=columns)
    return found[["day", *columns.values()]]


def _whole(clustered: pd.DataFrame, cluster: str, bits: bool) -> dict[str, Any]:
    from analysis.profiling.intervals import Clusters, design
    from analysis.profiling.stability import clustered_entropy, expected_distance
    from analysis.statistics import NotEnoughDataError

    found = clustered_entropy(clustered, cluster=cluster, bits=bits)
    try:
        worth: dict[str, Any] = asdict(design(clustered, cluster=cluster))
    except NotEnoughDataError:
        worth = {"samples": found.samples, "clusters": 1}
    return {
        **worth,
        "entropy": found.value,
        "entropy_error": found.standard_error,
        "entries": found.entries,
        "constant": expected_distance(Clusters.of(clustered, cluster).shares, 1.0),
    }


def show_stability(payload: Mapping[str, Any], console: Console) -> None:
    """Print each day's entropy, distances and cycles per instruction, and what the whole profile is worth.

    Examples
    --------
    >>> whole = {"samples": 10, "clusters": 1, "entropy": 0.5, "entropy_error": float("nan"), "entries": 2}
    >>> shown = {"event": "cycles", "by": ["function"], "k": 20, "unit": "nats", "days": [], "whole": whole}
    >>> show_stability(shown, Console(width=90))  # doctest: +ELLIPSIS
    cycles by function: 10 samples of 2 entries, entropy 0.500 nats
    ...
    """
    _show_whole(payload, console)
    counted = "all entries" if payload["k"] is None else f"the {payload['k']} largest entries"
    table = Table(
        box=SIMPLE_HEAD,
        padding=0,
        caption=f"Distances are of {counted}; in brackets what sampling alone would make of them; ± is one standard "
        "error, the range of CPI 95%",
    )
    for heading in ("day", "samples", "entropy", "to the day before", "to the mean", "design effect", "CPI", ""):
        table.add_column(heading, justify="right", no_wrap=heading != "design effect")
    for row in payload["days"]:
        table.add_row(*_cells(row))
    console.print(table)


def _show_whole(payload: Mapping[str, Any], console: Console) -> None:
    whole = payload["whole"]
    console.print(
        f"{payload['event']} by {', '.join(payload['by'])}: {whole['samples']:,} samples of {whole['entries']:,} "
        f"entries, entropy {whole['entropy']:.3f}{_error(whole['entropy_error'])} {payload['unit']}",
        soft_wrap=True,
    )
    if math.isfinite(whole.get("design_effect", math.nan)):
        console.print(
            f"  as good as {whole['effective_samples']:,.0f} independent samples (design effect "
            f"{whole['design_effect']:.1f}, {whole['clusters']:,} clusters); n independent samples are "
            f"{whole['constant']:.2f}/√n from the truth",
            soft_wrap=True,
        )


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a day's row of the table as text."""
    return (
        str(row["day"]),
        f"{row['samples']:,}",
        f"{row['entropy']:.3f}{_error(row['entropy_error'])}",
        _distance(row, "previous"),
        _distance(row, "mean"),
        _number(row["design_effect"], ".1f"),
        _number(row["cpi"], ".3f"),
        f"{row['cpi_low']:.3f}–{row['cpi_high']:.3f}" if math.isfinite(row["cpi_low"]) else "",
    )


def _error(value: float) -> str:
    return f" ± {value:.3f}" if math.isfinite(value) else ""


def _distance(row: Mapping[str, Any], name: str) -> str:
    expected = row[f"{name}_expected"]
    if not math.isfinite(row[name]):
        return ""
    return f"{row[name]:.4f} ({expected:.4f})" if math.isfinite(expected) else f"{row[name]:.4f}"


def _number(value: float, form: str) -> str:
    return format(value, form) if math.isfinite(value) else ""
