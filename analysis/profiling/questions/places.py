"""Questions about where things run: what is left on old hardware, and who suffers beside whom."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import ndtri, stdtrit

from analysis.profiling.fleet_samples import mean_frequency, of_fleet, on_visits, visits_of_fleet
from analysis.profiling.metrics import cpi
from analysis.profiling.query import Profile, QueryError, unknown
from analysis.profiling.questions.corunners import check_threads
from analysis.profiling.questions.question import ranked
from analysis.profiling.shelf import give_back_memory
from models.arrays import Floats, Ints

_Row = tuple[str, str, int, int, int, int, float, float]
_COUNTS = ["machines_beside", "machines_apart", "visits_beside", "visits_apart"]
_MEASURED = ["application", "beside", *_COUNTS, "effect", "standard_error"]
_COLUMNS = [
    "application", "beside", "advice", "effect", "shrunk", "low", "high", "ratio", *_COUNTS, "standard_error",
]  # fmt: skip
_LEAST_INFORMATION = 1e-6
"""Part of all weight that has to tell beside from apart without any one machine."""


def old_hardware(database: Profile, old: str = "", top: int = 20) -> pd.DataFrame:
    """Return the applications left on old platforms, and how many cycles an instruction takes there and elsewhere.

    Parameters
    ----------
    database : asked
    old : platforms, separated by commas; empty: the one that lost most of its share over the profile's days (the
        slowest, in time per instruction, where none lost any)
    top : rows

    Returns
    -------
    DataFrame
        application, platform (old), share_of_application (of its cycles), cpi, low, high, cpi_elsewhere,
        time_ratio (time per instruction here over elsewhere; above 1: it gains by moving), cycles.
    """
    cycles, instructions = (
        database.clustered(of_fleet(database, event, ("application", "platform")), "visit")
        for event in ("cycles", "instructions")
    )
    table = cpi(cycles, instructions, cluster="visit")
    frequency = mean_frequency(visits_of_fleet(database))
    table = table.assign(seconds=table["cycles"] / table["platform"].map(frequency))
    chosen = _old(database, old, table)
    left, elsewhere = table[table["platform"].isin(chosen)], table[~table["platform"].isin(chosen)]
    newer = elsewhere.groupby("application")[["cycles", "instructions", "seconds"]].sum()
    newer = newer[newer["instructions"] > 0].reindex(left["application"]).reset_index(drop=True)
    left = left.reset_index(drop=True)
    whole = left["application"].map(table.groupby("application")["cycles"].sum())
    answer = left.assign(
        share_of_application=left["cycles"] / whole,
        cpi_elsewhere=newer["cycles"] / newer["instructions"],
        time_ratio=left["seconds"] / left["instructions"] / (newer["seconds"] / newer["instructions"]),
    )
    columns = ["application", "platform", "share_of_application", "cpi", "low", "high", "cpi_elsewhere", "time_ratio"]
    return ranked(answer[[*columns, "cycles"]], "cycles", ["application", "platform"], top)


def _old(database: Profile, old: str, table: pd.DataFrame) -> list[str]:
    """Return the platforms meant, or the one that is being replaced."""
    known = sorted(table["platform"].unique())
    if old:
        wanted = [name.strip() for name in old.split(",")]
        wrong = [name for name in wanted if name not in known]
        if wrong:
            raise QueryError(
                "\n".join(f"old: no samples on {name[:60]}; there are {', '.join(known)}" for name in wrong)
            )
        return wanted
    days = database.query(of_fleet(database, "cycles", ("platform", "day")))
    middle = (float(days["day"].min()) + float(days["day"].max())) / 2
    sides = [days[days["day"] <= middle], days[days["day"] > middle]]
    shares = [side.groupby("platform")["value"].sum() / max(side["value"].sum(), 1) for side in sides]
    change = (shares[1].reindex(known).fillna(0.0) - shares[0].reindex(known).fillna(0.0)).sort_index()
    if len(sides[1]) and float(change.min()) < -0.01:
        return [str(change.idxmin())]
    total = table.groupby("platform")[["seconds", "instructions"]].sum()
    return [str((total["seconds"] / total["instructions"].clip(lower=1)).idxmax())]


def colocate(
    database: Profile,
    *,
    min_visits: int = 5,
    min_machines: int = 5,
    top: int = 20,
    threads: float = 4.0,
    application: str = "",
    beside: str = "",
) -> pd.DataFrame:
    """Return pairs of applications of which one takes more (or fewer) cycles per instruction beside the other.

    Visits of one application on one platform are compared with and without the other on the machine. Visits of one
    machine resemble each other, so the error is that of leaving out one machine at a time (the jackknife; Efron and
    Stein 1981), widened to Student's t of the machines. Effects are shrunk towards 0 by what chance alone would spread
    (empirical Bayes, Efron and Morris 1975), because the largest of many is otherwise too large. Machines differ in
    other ways too, so these are candidates to be tried, not effects of moving.

    Parameters
    ----------
    database : asked
    min_visits : visits of the application beside the other, and apart from it, at least
    min_machines : machines that these were of, beside and apart, at least
    top : rows
    threads : of predictions alone (`corunners.predicted_pairs`)
    application, beside : only these; empty: all

    Returns
    -------
    DataFrame
        application (that suffers), beside, advice (apart, together, or none where the interval holds 0), effect (on the
        logarithm of its CPI), shrunk, low, high (95%, of the shrunk effect), ratio (of CPI, shrunk), machines_beside,
        machines_apart, visits_beside, visits_apart, standard_error (of the effect); largest shrunk effect in either
        direction first.

    Raises
    ------
    QueryError
        If `threads` is not above 0, or there are no samples of an application of that name.
    """
    check_threads(threads)
    both = _with_instructions(database)
    processes = database.table("processes")[["visit", "application"]].drop_duplicates()
    names = sorted(name for name in both["application"].unique() if not name.startswith("["))
    wrong = [name for name in (application, beside) if name and name not in names]
    if wrong:
        raise QueryError("\n".join(unknown("application", name, names) for name in wrong))
    present = _present(processes, names)
    rows = [
        row for name, own in both.groupby("application") if name in names for row in _beside(own, present, min_visits)
    ]
    enough = [row for row in rows if min(row[2], row[3]) >= min_machines]
    return _shrunk(pd.DataFrame(enough, columns=_MEASURED), top, {"application": application, "beside": beside})


def _with_instructions(database: Profile) -> pd.DataFrame:
    """Return cycles, and instructions below them, of applications on visits, in order of platforms and machines."""
    keys, counted = ["application", "platform", "machine", "visit"], ["samples", "value"]
    cycles, instructions = (on_visits(database, event)[keys + counted] for event in ("cycles", "instructions"))
    give_back_memory()
    return cycles.merge(instructions, on=keys, suffixes=("", "_below")).sort_values(keys, ignore_index=True)


def _present(processes: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return whether each application was seen on each visit, by visit."""
    visit, visits = pd.factorize(processes["visit"], sort=True)
    place = pd.Index(names).get_indexer(pd.Index(processes["application"]))
    seen_on = np.zeros((len(visits), len(names)), dtype=np.bool_)
    seen_on[visit[place >= 0], place[place >= 0]] = True
    return pd.DataFrame({name: seen_on[:, at] for at, name in enumerate(names)}, index=visits)


def _beside(own: pd.DataFrame, present: pd.DataFrame, min_visits: int) -> list[_Row]:
    """Return one row for each other application; `own` is in order of platforms and machines."""
    name = str(own["application"].iloc[0])
    log = np.log(own["value"].to_numpy(np.float64) / own["value_below"].to_numpy(np.float64))
    weight = 1.0 / (1.0 / own["samples"].to_numpy(np.float64) + 1.0 / own["samples_below"].to_numpy(np.float64))
    weight = np.minimum(weight, np.median(weight))
    machine, platform = (pd.factorize(own[key], sort=True)[0].astype(np.int64) for key in ("machine", "platform"))
    start = np.flatnonzero((np.diff(machine, prepend=-1) != 0) | (np.diff(platform, prepend=-1) != 0))
    at = present.index.get_indexer(pd.Index(own["visit"]))
    seen_on = present.to_numpy()[at] & (at >= 0)[:, None]
    on_visits = seen_on.sum(axis=0)
    others = np.flatnonzero(np.minimum(on_visits, log.size - on_visits) >= max(1, min_visits))
    others = others[present.columns[others] != name]
    x = seen_on[:, others].astype(np.float64)
    rows, total, sums = (np.add.reduceat(by, start) for by in (np.ones(log.size), weight, weight * log))
    visits, shares, products = (
        np.add.reduceat(by[:, None] * x, start) for by in (np.ones(log.size), weight, weight * log)
    )
    pairs = []
    for at, other in enumerate(present.columns[others]):
        beside, count = visits[:, at], int(visits[:, at].sum())
        cells = _PlatformSums(
            machine[start], platform[start], np.array([rows, total, shares[:, at], sums, products[:, at]])
        )
        effect, error = _difference(cells)
        if np.isfinite(effect) and error > 0:
            machines = [int(np.count_nonzero(np.bincount(cells.machine, side))) for side in (beside, rows - beside)]
            pairs.append((name, str(other), machines[0], machines[1], count, log.size - count, effect, error))
    return pairs


@dataclass(frozen=True, slots=True, eq=False)
class _PlatformSums:
    """Sums over the visits of each machine on each platform: arrays (C,), or (5, C)."""

    machine: Ints
    platform: Ints
    sums: Floats
    """Visits, and weighted sums of 1, x (1 beside the other, 0 apart), y and x y."""


def _difference(cells: _PlatformSums) -> tuple[float, float]:
    """Return the difference of y, each platform with a level of its own, and its error by leaving out machines.

    Both are NaN where the difference rests on one machine alone.
    """
    machine, platform, sums = cells.machine, cells.platform, cells.sums
    whole = np.array([np.bincount(platform, part) for part in sums], dtype=np.float64)
    information, product = _within(whole)
    less_information, less_product = _within(whole[:, platform] - sums)
    left = information.sum() + np.bincount(machine, less_information - information[platform])
    if not left.min() > _LEAST_INFORMATION * float(sums[1].sum()):
        return float("nan"), float("nan")
    effect = float(product.sum() / information.sum())
    without = (product.sum() + np.bincount(machine, less_product - product[platform])) / left
    error = np.sqrt((without.size - 1) / without.size * np.sum((without - effect) ** 2))
    return effect, float(error)


def _within(sums: Floats) -> tuple[Floats, Floats]:
    """Return weighted sums of squares of x and of products of x and y about their means; x is 0 or 1."""
    visits, weight, x, y, product = sums
    known = visits > 0
    some = np.where(known, weight, 1.0)
    return np.where(known, x - x * x / some, 0.0), np.where(known, product - x * y / some, 0.0)


def _shrunk(pairs: pd.DataFrame, top: int, only: Mapping[str, str]) -> pd.DataFrame:
    """Return the largest shrunk effects, of some applications alone where a name is given; all count for shrinking."""
    machines = pairs[["machines_beside", "machines_apart"]].min(axis=1).to_numpy(np.float64)
    wider = stdtrit(np.maximum(machines - 1, 1), 0.975) / ndtri(0.975)
    effect, variance = pairs["effect"].to_numpy(np.float64), (pairs["standard_error"].to_numpy(np.float64) * wider) ** 2
    spread = _spread(effect, variance) if len(pairs) > 1 else 0.0
    keep = spread / (spread + variance) if spread > 0 else np.zeros(len(pairs))
    shrunk = keep * effect
    half = ndtri(0.975) * np.sqrt(keep * variance)
    low, high = shrunk - half, shrunk + half
    advice = np.select([low > 0, high < 0], ["apart", "together"], "none")
    answer = pairs.assign(advice=advice, shrunk=shrunk, low=low, high=high, ratio=np.exp(shrunk), size=np.abs(shrunk))
    for column, name in only.items():
        answer = answer[answer[column] == name] if name else answer
    return ranked(answer[[*_COLUMNS, "size"]], "size", ["application", "beside"], top).drop(columns="size")


def _spread(effect: Floats, variance: Floats) -> float:
    """Return the variance of true effects about 0 (method of moments, weighted by precision)."""
    weight = 1.0 / variance
    return max(float(np.sum(weight * (effect**2 - variance)) / np.sum(weight)), 0.0)
