"""Questions about where things run: what is left on old hardware, and who suffers beside whom."""

import numpy as np
import pandas as pd
from scipy.stats import norm

from analysis.profiling.asking import mean_frequency, of_fleet, ranked, visits_of_fleet
from analysis.profiling.held import Profile
from analysis.profiling.metrics import cpi
from analysis.profiling.query import QueryError
from analysis.statistics import Bools, Floats

_NONE = pd.DataFrame(
    columns=["application", "beside", "visits_beside", "visits_apart", "effect", "standard_error", "shrunk"]
)


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

    Examples
    --------
    >>> from analysis.profiling.held import Held
    >>> rows = {"application": "a", "platform": ["p", "p", "q", "q"], "visit": range(4), "day": 0, "samples": 9}
    >>> cycles = pd.DataFrame(rows).assign(event="cycles", value=[300, 300, 100, 100])
    >>> both = pd.concat([cycles, cycles.assign(event="instructions", value=100)], ignore_index=True)
    >>> visits = pd.DataFrame({"collection": "all", "platform": ["p", "q"], "frequency_hz": [3.0, 2.0], "weight": 1})
    >>> found = old_hardware(Held(both, {"visits": visits}))
    >>> found[["platform", "cpi", "cpi_elsewhere", "time_ratio"]].values.tolist()
    [['p', 3.0, 1.0, 2.0]]
    """
    cycles, instructions = (
        database.clustered(of_fleet(database, event, ("application", "platform")), "visit")
        for event in ("cycles", "instructions")
    )
    found = cpi(cycles, instructions, cluster="visit")
    frequency = mean_frequency(visits_of_fleet(database))
    found = found.assign(seconds=found["cycles"] / found["platform"].map(frequency))
    chosen = _old(database, old, found)
    left, elsewhere = found[found["platform"].isin(chosen)], found[~found["platform"].isin(chosen)]
    newer = elsewhere.groupby("application")[["cycles", "instructions", "seconds"]].sum()
    newer = newer[newer["instructions"] > 0].reindex(left["application"]).reset_index(drop=True)
    left = left.reset_index(drop=True)
    whole = left["application"].map(found.groupby("application")["cycles"].sum())
    answer = left.assign(
        share_of_application=left["cycles"] / whole,
        cpi_elsewhere=newer["cycles"] / newer["instructions"],
        time_ratio=left["seconds"] / left["instructions"] / (newer["seconds"] / newer["instructions"]),
    )
    columns = ["application", "platform", "share_of_application", "cpi", "low", "high", "cpi_elsewhere", "time_ratio"]
    return ranked(answer[[*columns, "cycles"]], "cycles", ["application", "platform"], top)


def _old(database: Profile, old: str, found: pd.DataFrame) -> list[str]:
    """Return the platforms meant, or the one that is being replaced."""
    known = sorted(found["platform"].unique())
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
    total = found.groupby("platform")[["seconds", "instructions"]].sum()
    return [str((total["seconds"] / total["instructions"].clip(lower=1)).idxmax())]


def colocate(database: Profile, min_visits: int = 5, top: int = 20) -> pd.DataFrame:
    """Return pairs of applications of which one takes more (or fewer) cycles per instruction beside the other.

    Visits of one application on one platform are compared with and without the other on the machine. Effects are shrunk
    towards 0 by what chance alone would spread (empirical Bayes, Efron and Morris 1975), because the largest of
    many is otherwise too large. Machines differ in other ways too, so these are candidates to be tried, not effects of
    moving.

    Parameters
    ----------
    database : asked
    min_visits : visits of the application beside the other, and apart from it, at least
    top : rows

    Returns
    -------
    DataFrame
        application (that suffers), beside, visits_beside, visits_apart, effect (on the logarithm of its CPI),
        standard_error, shrunk, low, high (95%, of the shrunk effect), ratio (of CPI, shrunk); largest effect in either
        direction first.

    Examples
    --------
    >>> from analysis.profiling.held import Held
    >>> rows = {"event": "cycles", "application": "a", "platform": "p", "visit": range(4), "samples": 99}
    >>> cycles = pd.DataFrame(rows).assign(value=[200, 200, 100, 101])
    >>> both = pd.concat([cycles, cycles.assign(event="instructions", value=100)], ignore_index=True)
    >>> processes = pd.DataFrame({"visit": [0, 1, 2, 3, 0, 1], "application": ["a"] * 4 + ["b"] * 2})
    >>> named = both.assign(application="b")
    >>> held = Held(pd.concat([both, named[named["visit"] < 2]]), {"processes": processes})
    >>> colocate(held, min_visits=2)[["application", "beside", "visits_beside"]].values.tolist()
    [['a', 'b', 2]]
    """
    cycles, instructions = (
        database.query(of_fleet(database, event, ("application", "platform", "visit")))
        for event in ("cycles", "instructions")
    )
    processes = database.table("processes")[["visit", "application"]].drop_duplicates()
    both = cycles.merge(instructions, on=["application", "platform", "visit"], suffixes=("", "_below"))
    names = sorted(name for name in both["application"].unique() if not name.startswith("["))
    present = pd.crosstab(processes["visit"], processes["application"]).reindex(columns=names, fill_value=0) > 0
    rows = [row for name in names for row in _beside(both[both["application"] == name], present, name, min_visits)]
    pairs = pd.DataFrame(rows, columns=_NONE.columns[:6]) if rows else _NONE[_NONE.columns[:6]]
    return _shrunk(pairs, top)


def _beside(
    own: pd.DataFrame, present: pd.DataFrame, name: str, min_visits: int
) -> list[tuple[str, str, int, int, float, float]]:
    """Return one row for each other application: the weighted difference of log CPI within platforms."""
    log = np.log(own["value"].to_numpy(np.float64) / own["value_below"].to_numpy(np.float64))
    weight = 1.0 / (1.0 / own["samples"].to_numpy(np.float64) + 1.0 / own["samples_below"].to_numpy(np.float64))
    platform = pd.factorize(own["platform"], sort=True)[0].astype(np.int64)
    beside = present.reindex(own["visit"]).fillna(value=False).to_numpy(dtype=bool)
    made = []
    for at, other in enumerate(present.columns):
        has = beside[:, at]
        if other == name or min(has.sum(), (~has).sum()) < min_visits:
            continue
        effect, error = _difference(log, np.minimum(weight, np.median(weight)), has, platform)
        if np.isfinite(effect) and error > 0:
            made.append((name, str(other), int(has.sum()), int((~has).sum()), effect, error))
    return made


def _difference(log: Floats, weight: Floats, has: Bools, platform: "np.ndarray") -> tuple[float, float]:
    """Return the difference of log CPI with its robust standard error, each platform with a level of its own."""
    level = np.bincount(platform, weight * log) / np.bincount(platform, weight)
    share = np.bincount(platform, weight * has) / np.bincount(platform, weight)
    x, y = has - share[platform], log - level[platform]
    information = float(np.sum(weight * x**2))
    if not information > 1e-12:
        return float("nan"), float("nan")
    effect = float(np.sum(weight * x * y)) / information
    freedom = max(len(log) - len(level) - 1, 1)
    residual = (y - effect * x) * np.sqrt(len(log) / freedom)
    return effect, float(np.sqrt(np.sum((weight * x * residual) ** 2))) / information


def _shrunk(pairs: pd.DataFrame, top: int) -> pd.DataFrame:
    effect, variance = pairs["effect"].to_numpy(np.float64), pairs["standard_error"].to_numpy(np.float64) ** 2
    spread = _spread(effect, variance) if len(pairs) > 1 else 0.0
    keep = spread / (spread + variance) if spread > 0 else np.zeros(len(pairs))
    shrunk = keep * effect
    half = norm.ppf(0.975) * np.sqrt(keep * variance)
    answer = pairs.assign(
        shrunk=shrunk, low=shrunk - half, high=shrunk + half, ratio=np.exp(shrunk), size=np.abs(shrunk)
    )
    return ranked(answer, "size", ["application", "beside"], top).drop(columns="size")


def _spread(effect: Floats, variance: Floats) -> float:
    """Return the variance of true effects about 0 (method of moments, weighted by precision)."""
    weight = 1.0 / variance
    return max(float(np.sum(weight * (effect**2 - variance)) / np.sum(weight)), 0.0)
