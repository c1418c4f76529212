"""Questions about code: what is shared, what a change would save, who calls it, who waits, who allocates."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.profiling.fleet_samples import mean_frequency, of_fleet, span_s, visits_of_fleet
from analysis.profiling.intervals import intervals_of
from analysis.profiling.query import Profile, QueryError
from analysis.profiling.questions.question import ranked, shares
from models.arrays import DAY_S

_YEAR_S = 365 * DAY_S
_CORE_TIME = ("cpu", "cpu_time")
"""Events that are time of processors."""
_SECONDS = {"nanoseconds": 1e-9, "microseconds": 1e-6, "milliseconds": 1e-3, "seconds": 1.0}
_NONE_SHARED = "function: name one; no function is shared between applications"


def shared(database: Profile, by: str = "function", event: str = "cycles", top: int = 20) -> pd.DataFrame:
    """Return the hottest code that several applications run, beside its largest share in any single one.

    Parameters
    ----------
    database : asked
    by : ``"function"`` or ``"image"``
    event : what is counted
    top : rows

    Returns
    -------
    DataFrame
        the key, share (of all), low, high, applications, largest_share_in_one, largest_in (the application).
    """
    if by not in ("function", "image"):
        raise QueryError(f"by: should be function or image, got {by[:60]}")
    parts = database.query(of_fleet(database, event, (by, "application")))
    within = parts.assign(within=parts["value"] / parts.groupby("application")["value"].transform("sum"))
    highest = within.sort_values(["within", "application"], ascending=[False, True], kind="stable").groupby(by).first()
    counted = parts.groupby(by)["application"].nunique()
    largest = parts.assign(value=parts["value"].astype(np.float64)).groupby(by)["value"].sum()[counted > 1]
    largest = largest.sort_values(ascending=False, kind="stable")
    names = largest[largest >= largest.iloc[:top].min()].index.tolist()
    if not names:
        return pd.DataFrame(columns=[by, "share", "low", "high", "applications", "largest_share_in_one", "largest_in"])
    share = intervals_of(database, of_fleet(database, event, (by,)), pd.DataFrame({by: names}))
    table = share[[by, "share", "low", "high"]].assign(
        applications=share[by].map(counted),
        largest_share_in_one=share[by].map(highest["within"]),
        largest_in=share[by].map(highest["application"]),
    )
    return ranked(table[table["applications"] > 1], "share", [by], top)


def savings(
    database: Profile,
    function: str = "",
    change: float = 0.01,
    *,
    event: str = "cycles",
    price_per_core_hour: float = 0.03,
    top: int = 20,
) -> pd.DataFrame:
    """Return the events, core-hours and money that a cheaper function would save (Ren et al. 2010, "Profile uses").

    A change of a share c of a function's cycles saves just these: share × c of the fleet.

    Parameters
    ----------
    database : asked
    function : name; empty: the hottest shared functions
    change : part of the function's cycles that is saved, 0..1
    event : what is saved; core-hours follow from cycles and from processor time alone
    price_per_core_hour : of a busy hardware thread, in any currency
    top : rows

    Returns
    -------
    DataFrame
        function, share, low, high, cycles_saved (of another event in its unit: cpu_saved_s), core_hours_saved
        (over the profile's days), core_hours_per_year, money_per_year, money_per_year_low, money_per_year_high; NaN:
        unknown, as core-hours are where no clock was measured, and intervals where no collector drew the visits.
    """
    if not 0 < change <= 1:
        raise QueryError(f"change: should be a share above 0 and up to 1, got {change:g}")
    if not price_per_core_hour >= 0:
        raise QueryError(f"price_per_core_hour: should not be negative, got {price_per_core_hour:g}")
    visits = visits_of_fleet(database)
    names = [function] if function else shared(database, event=event, top=top)["function"].tolist()
    if not names:
        raise QueryError(_NONE_SHARED)
    wanted = pd.DataFrame({"function": names})
    share = intervals_of(database, of_fleet(database, event, ("function",)), wanted).head(top)
    if not len(share):
        raise QueryError(f'function: no samples of "{function[:60]}"')
    platforms = database.query(of_fleet(database, event, ("function", "platform")))
    spent, unit = _with_unit(event, database.units().get(event, ""))
    value = platforms["value"].astype(np.float64) * unit
    total = float(value.sum())
    per_s = 1.0 if event in _CORE_TIME and unit != 1.0 else np.nan
    core_s = value / (platforms["platform"].map(mean_frequency(visits)) if event == "cycles" else per_s)
    hours = share["function"].map(core_s.groupby(platforms["function"]).sum(skipna=False)) * change / 3600
    yearly = hours * _YEAR_S / max(span_s(visits), DAY_S)
    money = yearly * price_per_core_hour
    return (
        share[["function", "share", "low", "high"]]
        .assign(
            **{f"{event}_saved{spent.removeprefix(event) * (unit != 1.0)}": share["share"] * total * change},
            core_hours_saved=hours,
            core_hours_per_year=yearly,
            money_per_year=money,
            money_per_year_low=money * share["low"] / share["share"],
            money_per_year_high=money * share["high"] / share["share"],
        )
        .reset_index(drop=True)
    )


def deprecated(database: Profile, function: str = "", event: str = "cpu_time", top: int = 20) -> pd.DataFrame:
    """Return who calls code that is to be deprecated, by application; rare callers may be missed.

    Parameters
    ----------
    database : asked
    function : the code; empty: the hottest shared function
    event : one with stacks, such as ``"cpu_time"``
    top : rows

    Returns
    -------
    DataFrame
        function, application, caller, samples, what is spent (named after the event, with its unit: cpu_time_s), share
        (of all that is spent under the function).
    """
    name = function or _hottest(database, event)
    callers = database.callers(name, of_fleet(database, event, ("application",)))
    spent, unit = _with_unit(event, database.units().get(event, ""))
    answer = callers.assign(function=name, share=shares(callers["value"]))
    answer[spent] = callers["value"] if unit == 1.0 else callers["value"].astype(np.float64) * unit
    columns = ["function", "application", "caller", "samples", spent, "share"]
    return ranked(answer[columns], "share", ["application", "caller"], top)


def _with_unit(event: str, counts: str) -> tuple[str, float]:
    """Return the name of a column of an event's values with its unit, and by what they are multiplied."""
    if counts == "nanoseconds":
        return f"{event}_s", 1e-9
    if counts == "bytes" and not event.endswith("_bytes"):
        return f"{event}_bytes", 1.0
    return ("value" if event == "samples" else event), 1.0


def _hottest(database: Profile, event: str) -> str:
    table = shared(database, event="cycles" if "cycles" in database.events() else event, top=1)
    if not len(table):
        raise QueryError(_NONE_SHARED)
    return str(table["function"].iloc[0])


def instruction_class(
    database: Profile, by: str = "application", trait: str = "floating_point", top: int = 20
) -> pd.DataFrame:
    """Return how many of the instructions belong to a class, from the disassembled code of what was sampled.

    Parameters
    ----------
    database : asked; needs the table function_traits
    by : dimension
    trait : column of function_traits: the class's share in a function's code
    top : rows after that of the whole fleet, ``[all]``

    Returns
    -------
    DataFrame
        the dimension, instructions, class_instructions, share (of the row's instructions), known (share of them in
        functions whose code is known).
    """
    traits = database.table("function_traits")
    if trait not in traits.columns or trait in ("image", "function"):
        raise QueryError(f"trait: no such instruction class, got {trait[:60]}")
    keys = [name for name in ("image", "function") if name != by]
    rows = database.query(of_fleet(database, "instructions", (by, *keys)))
    joined = rows.merge(traits[["image", "function", trait]], on=["image", "function"], how="left")
    value = joined["value"].astype(np.float64)
    parts = pd.DataFrame(
        {
            by: joined[by].astype(str),
            "instructions": value,
            "class_instructions": value * joined[trait].fillna(0.0),
            "known": value.where(joined[trait].notna(), 0.0),
        }
    )
    ranking = ranked(parts.groupby(by, as_index=False).sum(), "class_instructions", [by], top)
    whole = parts.drop(columns=by).sum().to_frame().T.assign(**{by: "[all]"})
    table = pd.concat([whole, ranking], ignore_index=True)[[by, "instructions", "class_instructions", "known"]]
    some = table["instructions"].clip(lower=1.0)
    return table.assign(share=table["class_instructions"] / some, known=table["known"] / some)


def locks(database: Profile, event: str = "lock_wait", top: int = 20) -> pd.DataFrame:
    """Return the most contended locks: where most time is waited.

    Parameters
    ----------
    database : asked
    event : time waited for locks, nanoseconds or another unit of time
    top : rows

    Returns
    -------
    DataFrame
        application, function, samples, waited_s (of the fleet), share.
    """
    what = "time that is waited, such as lock_wait or delay"
    if event in _CORE_TIME:
        raise QueryError(f"event: should be {what}, got {event}, which is time of processors")
    rows = database.query(of_fleet(database, event, ("application", "function")))
    unit = _SECONDS[_counting(database, event, tuple(_SECONDS), what)]
    answer = rows.assign(waited_s=rows["value"].astype(np.float64) * unit)
    return ranked(
        answer[["application", "function", "samples", "waited_s", "share"]],
        "waited_s",
        ["application", "function"],
        top,
    )


def _counting(database: Profile, event: str, units: Sequence[str], what: str) -> str:
    """Return what an event counts, refused unless it is one of some units."""
    unit = database.units().get(event, "events")
    if unit not in units:
        raise QueryError(f"event: should be {what}, got {event}, which counts {unit}")
    return unit


def memory(database: Profile, by: str = "application", event: str = "heap_bytes", top: int = 20) -> pd.DataFrame:
    """Return who holds most live heap memory, on average over time, or who allocated most.

    Parameters
    ----------
    database : asked
    by : dimension: ``"application"``, or ``"function"`` for where it was allocated
    event : live heap, bytes; or what was allocated in all, freed or not, such as ``"alloc_space"``
    top : rows

    Returns
    -------
    DataFrame
        the dimension, samples, mean_bytes (of the fleet at any time; where visits have no length, as heaps of other
        tools, the mean over each machine's), share. Of what was allocated, allocated_bytes in place of mean_bytes: the
        sum over all that was profiled.
    """
    rows = database.query(of_fleet(database, event, (by,)))
    _counting(database, event, ("bytes",), "memory in bytes, such as heap_bytes or inuse_space")
    visits = visits_of_fleet(database)
    weight = float((visits["weight"] * visits["length_s"]).sum()) / max(float(visits["weight"].sum()), 1.0)
    shown = weight / max(span_s(visits), weight) if weight else visits["machine"].nunique() / max(len(visits), 1)
    name, scale = ("allocated_bytes", 1.0) if event.startswith("alloc") else ("mean_bytes", shown)
    answer = rows.assign(**{name: rows["value"].astype(np.float64) * scale})
    return ranked(answer[[by, "samples", name, "share"]], name, [by], top)
