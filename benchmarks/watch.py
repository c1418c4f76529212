"""How often `wsc profile watch` finds planted changes, and how near it comes to what the counts can tell.

    python benchmarks/watch.py judge --worlds 200 --held-out     power, causes, refactorings, rivals on the same series
    python benchmarks/watch.py quiet --series 800000             false alarms of four healthy weeks
    python benchmarks/watch.py draw FOLDER --worlds 50           series and truth as files, for other tools
    python benchmarks/watch.py run FOLDER                        alarms of this detector, as a file
    python benchmarks/watch.py score FOLDER ALARMS.csv           any tool's alarms beside the truth

Worlds are of `tests.helpers.watched_fleets`. The chance of a false alarm is bounded over 800,000 series of four weeks,
however few are drawn. A change counts as found if its function is named as grown by data that end 24 hours after it
began. Beside it: the test that knows function and time (the likelihood ratio of the last day at the same dispersion),
at the same threshold; a threshold at 1.5 times the mean of seven days; and CUSUM of hourly shares against the same
hours before, allowance ½, at the level that bounds false alarms as much if hours were independent; and both at the
lowest level at which no other function of these worlds alarms.

Files: WORLD.parquet has world, function, the tags, bin and samples, for every function; function −1 is everything.
truth.csv has what was planted. ALARMS.csv has world, function, kind (growth, improvement, transient, shift), start
(bin), dimension and value of the cause named first.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.stats import norm

from analysis.profiling.changes.causes import explanations
from analysis.profiling.changes.detection import (
    Clearest,
    SeriesChange,
    WatchCriteria,
    changes,
    drifting,
    shifts,
)
from analysis.profiling.changes.parts import HALVES, PartChange, changes_in_parts, clearest_of_both, scanned_parts
from analysis.profiling.changes.scan import Geometry, Noise, lengths, scan, threshold
from analysis.profiling.changes.segments import by_hour
from analysis.profiling.changes.series import Clock, CountSeries, FleetPart
from analysis.profiling.changes.spread import Lasting
from models.arrays import Floats
from models.randomness import stream
from tests.helpers.machine_days import MachineDays
from tests.helpers.watched_fleets import (
    DIMENSIONS,
    HELD_OUT,
    HOURS,
    KINDS,
    WEEK,
    Design,
    Planted,
    WatchedFleet,
    machines_seen,
    machines_within,
)

TESTS = 800_000
WITHIN = 4_000
"""Series within platforms and data centres over which half of the chance of a false alarm is bounded."""
SLOTS = 100
FALSE_ALARMS = 0.01
_TAGS = ("application", "revision", "compiler", "kernel", "platform", "datacentre")
_STRATA = ("application", "platform", "datacentre")
_AHEAD = 14 * HOURS
_LASTING = 20
"""Functions of a chunk, the largest, by which the part of the variance that stays with machines is measured."""


def series_of(tags: pd.DataFrame, counts: Floats, design: Design) -> CountSeries:
    """Return the series of functions from (functions, C, T) counts; the noise is the design's, as declared.

    Measured from 1,000 machines and 14 days, a function's variance between machine-days has a relative error of 1%.
    """
    functions, _, bins = counts.shape
    stratum = tags.groupby(list(_STRATA), sort=True).ngroup().to_numpy(np.int64)
    strata = int(stratum.max()) + 1
    summed = np.zeros((functions, strata, bins))
    for cell, place in enumerate(stratum.tolist()):
        summed[:, place] += counts[:, cell]
    exposure = summed.sum(axis=0)
    variance = design.daily**2 + design.lasting**2
    days = bins / HOURS * design.machines
    machines = machines_seen(design, bins)
    week = WEEK * HOURS
    about = tags.assign(stratum=stratum).drop_duplicates("stratum").sort_values("stratum")[list(_STRATA)]
    return CountSeries(
        "cycles",
        Clock(0.0, 3600.0, bins),
        pd.Index([f"f{at}" for at in range(functions)]),
        about,
        csr_array(summed.reshape(functions, strata * bins)),
        exposure,
        np.ones(functions),
        exposure.sum(axis=0) / design.of_fleet,
        Noise(variance * summed.sum(axis=(1, 2)) / days, design.lasting**2 / variance),
        Geometry.of(machines, HOURS, HOURS),
        Geometry.of(machines, HOURS, week) if bins > week else None,
        geometry_of=cache(partial(Geometry.of, machines, HOURS, HOURS)),
        parts_of=tuple(_parts(about, summed.sum(axis=2), design, bins)),
    )


def _parts(about: pd.DataFrame, sizes: Floats, design: Design, bins: int) -> Iterator[FleetPart]:
    """Yield platforms and data centres if there are several; `sizes` are samples by function and stratum."""
    week, variance = WEEK * HOURS, design.daily**2 + design.lasting**2
    for tag in ("platform", "datacentre"):
        values = sorted(set(about[tag]))
        for value in values if len(values) > 1 else ():
            machines = machines_within(design, bins, tag, value)
            days = machines.sum() / HOURS * design.machines / SLOTS
            inside = sizes[:, (about[tag] == value).to_numpy()].sum(axis=1)
            weekly = partial(Geometry.of, machines, HOURS, week) if bins > week else lambda: None
            nothing, geometry_of = np.zeros(len(inside)), cache(partial(Geometry.of, machines, HOURS, HOURS))
            yield FleetPart(tag, value, variance * inside / days, nothing, len(machines), geometry_of, weekly)


@dataclass(frozen=True, slots=True)
class Alarm:
    """What a tool says of a function of a world."""

    world: int
    function: int
    kind: str
    start: int
    dimension: str = ""
    value: str = ""


def watched(world: int, tags: pd.DataFrame, counts: Floats, design: Design, *, within: bool = True) -> list[Alarm]:
    """Return the alarms of this detector; `within`: also of single platforms and data centres."""
    series, criteria = drifting(series_of(tags, counts, design)), WatchCriteria(FALSE_ALARMS)
    if not within:
        named = shifts(series, changes(series, criteria, TESTS))
        return [_alarm(world, tags, counts, series, change) for change in named]
    named = shifts(series, changes(series, criteria, HALVES * TESTS))
    scanned = scanned_parts(series, criteria)[0]
    in_parts = [
        PartChange(part, some, change)
        for part, some, local in changes_in_parts(series, criteria, scanned, named, HALVES * WITHIN)
        for change in local
    ]
    both = (own.change if isinstance(own, PartChange) else own for own in clearest_of_both(named, in_parts))
    return [_alarm(world, tags, counts, series, change) for change in both]


def _alarm(world: int, tags: pd.DataFrame, counts: Floats, series: CountSeries, change: SeriesChange) -> Alarm:
    bins, row = series.clock.bins, change.series
    end = bins if change.end is None else change.end
    outside = np.ones(bins)
    outside[change.start : end] = 0.0
    exposure = counts.sum(axis=0)
    expected = exposure.sum(axis=0)
    season = by_hour(counts[row].sum(axis=0), expected, series.clock.period, outside) / np.maximum(expected, 1e-300)
    causes = explanations(
        counts[row],
        exposure * season,
        tags,
        change.start,
        end,
        dispersion=series.noise.over_days(row),
        grew=change.log_factor > 0,
    )
    first = causes[0] if causes else None
    return Alarm(world, row, change.kind, change.start, first.dimension if first else "", first.value if first else "")


def known(fleet: WatchedFleet, counts: Floats, series: CountSeries) -> float:
    """Return the root of the test that knows function, time and seasons: the time since against all before."""
    row, start = fleet.planted.function, fleet.planted.start
    seen, mean = counts[row].sum(axis=0), fleet.usual[row].sum(axis=0)
    inside, before = float(mean[start:].sum()), float(mean[:start].sum())
    observed = float(seen.sum())
    expected = observed * inside / (inside + before)
    observed_after, observed_before = float(seen[start:].sum()), float(seen[:start].sum())
    deviance = 2.0 * (
        observed_after * math.log(observed_after / expected)
        + observed_before * math.log(observed_before / (observed - expected))
    )
    length = fleet.bins - start
    geometry = _last(series.geometry, length)
    part = np.array([[inside / (inside + before)]])
    noise = replace(series.noise.of(np.array([row])), drift=np.zeros(1), walk=np.zeros(1))
    dispersion = float(noise.dispersion(geometry, 0, part, part * before, HOURS)[0, 0])
    return math.copysign(math.sqrt(max(deviance, 0.0) / dispersion), observed_after - expected)


def _last(geometry: Geometry, length: int) -> Geometry:
    """Return the geometry of the window of about a length that ends last."""
    at = int(np.argmin(np.abs(np.array(geometry.lengths) - length)))
    parts = (array[at : at + 1, -1:] for array in (geometry.window, geometry.before, geometry.lasting))
    return Geometry((geometry.lengths[at],), *parts)


def over_week(counts: Floats) -> Floats:
    """Return (functions, T) shares of the last 24 hours over the mean of seven days before; 1 in the first eight."""
    by_function = counts.sum(axis=1)
    share = _rolled(by_function, HOURS) / np.maximum(_rolled(by_function.sum(axis=0)[None, :], HOURS), 1.0)
    ratio, first = np.ones_like(share), (WEEK + 1) * HOURS
    ratio[:, first:] = share[:, first:] / np.maximum(_rolled(share, WEEK * HOURS)[:, first - HOURS : -HOURS], 1e-300)
    return ratio


def _rolled(values: Floats, width: int) -> Floats:
    """Return (functions, T) means of the last bins."""
    total = np.cumsum(values, axis=1)
    total[:, width:] -= total[:, :-width].copy()
    return np.asarray(total / np.minimum(np.arange(1, values.shape[1] + 1), width))


def cusum(counts: Floats, allowance: float = 0.5) -> Floats:
    """Return (functions, T) CUSUM (Page 1954) of hourly shares, standardised by the same hours of at least seven days.

    Shares are standardised by mean and spread of the same hours of all days before.
    """
    by_function = counts.sum(axis=1)
    share = by_function / np.maximum(by_function.sum(axis=0), 1.0)
    functions, bins = share.shape
    days = -(-bins // HOURS)
    padded = np.full((functions, days * HOURS), np.nan)
    padded[:, :bins] = share
    table = padded.reshape(functions, days, HOURS)
    high, path = np.zeros(functions), np.zeros((functions, bins))
    for day in range(WEEK, days):
        mean = table[:, :day].mean(axis=1)
        spread = np.sqrt(((table[:, :day] - mean[:, None, :]) ** 2).sum(axis=(1, 2)) / (HOURS * (day - 1)))
        for hour in range(min(HOURS, bins - day * HOURS)):
            score = (table[:, day, hour] - mean[:, hour]) / np.maximum(spread, 1e-300) / math.sqrt(1.0 + 1.0 / day)
            high = np.maximum(high + score - allowance, 0.0)
            path[:, day * HOURS + hour] = high
    return path


@dataclass(frozen=True, slots=True)
class Judged:
    """What happened in a world."""

    planted: Planted
    alarms: tuple[Alarm, ...]
    fixed: float
    """Greatest ratio of the planted function's share to the mean of seven days, since it was planted."""
    cusum: float
    """Greatest CUSUM of it since then."""
    known: float
    """Root of the test that knows function and time; NaN where nothing was planted."""
    root: float
    """Greatest root of the planted function's windows that end last."""
    others_fixed: float
    """Greatest ratio of any other function at any time."""
    others_cusum: float


def judged(world: int, what: str, design: Design, *, within: bool = True) -> Judged:
    """Return what this detector and its rivals say of a world; `within` as of `watched`."""
    fleet = WatchedFleet(world, what, design, hours_after=3 * HOURS if what == "transient" else HOURS)
    tags, counts = fleet.cells(fleet.counts())
    row, start = fleet.planted.function, fleet.planted.start
    series = series_of(tags, counts, design)
    alarms = watched(world, tags, counts, design, within=within)
    ratio, path = over_week(counts), cusum(counts)
    noise = series.noise.of(np.array([row]))
    expected = series.expected()[[row]]
    roots = [
        float(windows.root[0, -1])
        for windows in scan(series.counts()[[row]], expected, noise, series.geometry, day=HOURS, period=HOURS)
    ]
    others = np.setdiff1d(np.arange(len(counts)), [row, fleet.planted.partner])
    return Judged(
        fleet.planted,
        tuple(alarms),
        float(ratio[row, start:].max()),
        float(path[row, start:].max()),
        known(fleet, counts, series) if what in {"regression", "improvement"} else math.nan,
        max(roots, key=abs),
        float(ratio[others].max()),
        float(path[others].max()),
    )


def scored(truth: Sequence[Planted], alarms: Iterable[Alarm]) -> pd.DataFrame:
    """Return, by what was planted: worlds, how many were named, with the right cause first, and false alarms.

    Named are regressions as growth, improvements as such, transients as transient, if their start is said to be no more
    than a day too early; refactorings are false alarms if one of their functions is said to have grown. Of other
    functions every growth or improvement is false.
    """
    by_world: dict[int, list[Alarm]] = {}
    for alarm in alarms:
        by_world.setdefault(alarm.world, []).append(alarm)
    rows = []
    wanted = {"regression": "growth", "improvement": "improvement", "transient": "transient", "refactoring": "growth"}
    for planted in truth:
        own = by_world.get(planted.world, [])
        right = [
            one
            for one in own
            if one.function == planted.function
            and one.kind == wanted.get(planted.what, "growth")
            and one.start >= planted.start - HOURS
        ]
        moved = [one for one in own if one.function in {planted.function, planted.partner} and one.kind == "growth"]
        named = bool(moved if planted.what == "refactoring" else right)
        involved = {planted.function, planted.partner}
        rows.append(
            {
                "what": planted.what,
                "beside": bool(planted.beside),
                "named": named,
                "cause": bool(right) and (right[0].dimension, right[0].value) == (planted.dimension, planted.value),
                "others": sum(one.function not in involved and one.kind in {"growth", "improvement"} for one in own),
            }
        )
    table = pd.DataFrame(rows)
    sums = table.groupby("what").agg(
        worlds=("named", "size"),
        named=("named", "sum"),
        right_cause=("cause", "sum"),
        other_functions=("others", "sum"),
    )
    return sums.reindex([kind for kind in KINDS if kind in sums.index])


def _share(count: float, total: int) -> str:
    rate = count / total
    error = math.sqrt(max(rate * (1.0 - rate), 1.0 / total * (1 - 1.0 / total) if total > 1 else 0.0) / total)
    return f"{rate:.1%} ± {error:.1%}"


def judge(asked: argparse.Namespace) -> None:
    """Print power, causes, false alarms, and rivals on the same series."""
    design = Design(
        cost=asked.cost,
        least=asked.least,
        most=asked.most,
        functions=asked.functions,
        walk=asked.walk,
        slope=asked.slope,
        dimensions=tuple(asked.dimensions),
    )
    first = HELD_OUT if asked.held_out else 0
    truth: list[Planted] = []
    alarms: list[Alarm] = []
    results: list[Judged] = []
    for number, what in enumerate(kind for kind in asked.kinds for _ in range(asked.worlds)):
        result = judged(first + number, what, design, within=not asked.fleet_alone)
        results.append(result)
        truth.append(result.planted)
        alarms += result.alarms
    print(scored(truth, alarms).to_string())
    bound = threshold(TESTS, len(lengths(28 * HOURS, HOURS)) * 28 * HOURS, FALSE_ALARMS)
    for what in ("regression", "improvement"):
        own = [result for result in results if result.planted.what == what]
        if own:
            sign = 1.0 if what == "regression" else -1.0
            limit, ours = (np.array([sign * getattr(one, name) for one in own]) for name in ("known", "root"))
            ratio = ours / limit
            print(
                f"{what}: the test that knows function and time, same threshold {bound:.2f}: "
                f"{_share(float((limit > bound).sum()), len(own))}, alone at {FALSE_ALARMS:.0%}: "
                f"{_share(float((limit > norm.isf(FALSE_ALARMS)).sum()), len(own))}; root over its root: "
                f"median {np.median(ratio):.3f}, 10% below {np.quantile(ratio, 0.1):.3f}, "
                f"sums {ours.sum() / limit.sum():.3f}"
            )
    with_other = [one for one in results if one.planted.beside and one.planted.what == "regression"]
    if with_other:
        right = scored([one.planted for one in with_other], [alarm for one in with_other for alarm in one.alarms])
        print(f"regressions with another release on the same day: {right.to_dict('records')[0]}")
    _print_rivals(results)


def _print_rivals(results: Sequence[Judged]) -> None:
    """Print how many regressions the rivals find, with thresholds as they are used and with such that none is false."""
    own = [result for result in results if result.planted.what == "regression"]
    page = math.log(2.0 * TESTS * 4 * WEEK * HOURS / FALSE_ALARMS)
    for name, usual in (("fixed", 1.5), ("cusum", page)):
        others = [getattr(result, f"others_{name}") for result in results]
        false = sum(value > usual for value in others)
        for what, level in (("as used", usual), ("at no false alarm in these worlds", max(others))):
            if own:
                share = _share(sum(getattr(result, name) > level for result in own), len(own))
                print(f"{name}, {what}, above {level:.3g}: regressions named {share}; worlds with a false one {false}")
                false = 0


def quiet(asked: argparse.Namespace) -> None:
    """Print false alarms of healthy series of four weeks, drawn machine by machine in chunks; noise is measured."""
    design, days = Design(), 28
    bins = days * HOURS
    geometry = Geometry.of(machines_seen(design, bins), HOURS, HOURS)
    weekly = Geometry.of(machines_seen(design, bins), HOURS, WEEK * HOURS)
    bound = threshold(asked.series, len(geometry.lengths) * bins, FALSE_ALARMS)
    greatest, alarms, scanned, seasonal, ratios = 0.0, 0, 0, 0, list[Floats]()
    for first in range(asked.first, asked.last or asked.series, asked.chunk):
        rng = stream(asked.seed, f"quiet series from {first} on")
        fleet = _Healthy.drawn(rng, min(asked.chunk, asked.series - first), design, days)
        counts, expected, noise = fleet.counts, fleet.expected, fleet.noise
        peaks = Clearest.of(scan(counts, expected, noise, geometry, day=HOURS, period=HOURS), bound, len(counts))
        rows = np.flatnonzero(peaks.changed)
        if len(rows):
            few = _quiet_series(counts[rows], expected[rows], noise.of(rows), geometry, weekly)
            named = changes(few, WatchCriteria(FALSE_ALARMS), asked.series)
            alarms += sum(change.kind in {"growth", "improvement"} for change in named)
            seasonal += len(rows) - len(named)
            for change in named:
                print(f"  series {first + rows[change.series]}: {change}")
        greatest = max(greatest, float(np.abs(peaks.root[~peaks.changed]).max(initial=0.0)))
        scanned += len(counts)
        ratios.append((1.0 + noise.excess + noise.clumps) / (1.0 + fleet.excess))
        print(f"{scanned:,} series: {alarms} false alarms, greatest {greatest:.2f}", file=sys.stderr, flush=True)
    low, middle, high = np.quantile(np.concatenate(ratios), [0.001, 0.5, 0.999])
    print(
        f"{scanned:,} series × {bins} hours ({days // WEEK} weeks): {alarms} functions named; threshold {bound:.2f}, "
        f"greatest other root {greatest:.2f}; {seasonal} looked at again and explained by days of the week or too small"
    )
    print(f"measured dispersion over the drawn one: median {middle:.4f}, of 998 in 1,000 from {low:.3f} to {high:.3f}")


@dataclass(frozen=True, slots=True, eq=False)
class _Healthy:
    """Healthy functions with machines' factors, seasons and weekends: F series of T hours."""

    counts: Floats
    """(F, T)"""
    expected: Floats
    """(F, T)"""
    noise: Noise
    """Measured from the functions' counts on machines and days, as the watch does."""
    excess: Floats
    """(F,) as it was drawn: dispersion of a machine-day's count beyond 1."""

    @classmethod
    def drawn(cls, rng: np.random.Generator, count: int, design: Design, days: int) -> Self:
        """Draw so many functions."""
        hours = np.arange(days * HOURS)
        share = np.exp(rng.uniform(np.log(1e-7), np.log(1e-3), count))
        weekend = np.where((hours // HOURS) % WEEK >= WEEK - 2, 1.0, 0.0)
        phase = np.exp(np.cumsum(rng.normal(0.0, 0.07, days)))[hours // HOURS]
        load = (1.0 - 0.2 * weekend) * (1.0 + 0.4 * np.sin(hours * 2 * np.pi / HOURS)) * phase / phase.mean()
        expected = share[:, None] * load * design.machines * design.samples_a_day / HOURS
        swing = rng.uniform(0.0, 0.1, count) * (rng.random(count) < 0.4)
        season = 1.0 + swing[:, None] * np.sin(hours * 2 * np.pi / HOURS + rng.uniform(0, 2 * np.pi, (count, 1)))
        season *= np.exp(weekend * (rng.normal(0.0, 0.05, count) * (rng.random(count) < 0.2))[:, None])
        hourly = (expected * season).reshape(count, days, HOURS)
        daily = hourly.sum(axis=2)
        few = np.argsort(-share, kind="stable")[:_LASTING]
        seen = MachineDays.drawn(rng, daily / design.machines, design, few)
        # Within a machine's day hours are independent samples, so the fleet's are, given its days.
        parts = hourly / daily[:, :, None]
        counts = np.stack([rng.multinomial(seen.totals[:, day].astype(int), parts[:, day]) for day in range(days)], 1)
        lasting = Lasting([seen.strays(few, design)]).share()
        noise = seen.spread(design, load.reshape(days, HOURS).sum(axis=1)).noise(np.arange(count), lasting)
        mean = (daily**2).sum(axis=1) / daily.sum(axis=1) / design.machines
        excess = (design.daily**2 + design.lasting**2) * mean
        return cls(counts.reshape(count, -1).astype(np.float64), expected, noise, excess)


def _quiet_series(counts: Floats, expected: Floats, noise: Noise, geometry: Geometry, weekly: Geometry) -> CountSeries:
    """Return the series of a few functions, each compared with what is expected of it."""
    bins, rows = counts.shape[1], np.arange(len(counts))
    load = expected[0] / expected[0].sum()
    rest = load * 1e12
    table = np.concatenate([counts, rest[None, :]])
    return CountSeries(
        "cycles",
        Clock(0.0, 3600.0, bins),
        pd.Index([f"f{row}" for row in (*rows.tolist(), -1)]),
        pd.DataFrame({"application": ["a"], "platform": ["p"], "datacentre": ["d"]}),
        csr_array(table),
        table.sum(axis=0)[None, :],
        np.ones(len(table)),
        np.full(bins, Design().machines * Design().samples_a_day / HOURS),
        Noise(np.append(noise.excess, 0.0), noise.lasting),
        geometry,
        weekly,
    )


def draw(asked: argparse.Namespace) -> None:
    """Write series and truth."""
    asked.folder.mkdir(parents=True, exist_ok=True)
    truth = []
    for number in range(asked.worlds):
        what = KINDS[number % len(KINDS)]
        fleet = WatchedFleet(asked.first + number, what, hours_after=3 * HOURS if what == "transient" else HOURS)
        tags, counts = fleet.cells(fleet.counts())
        function, cell, at = np.nonzero(counts)
        rows = tags.iloc[cell].reset_index(drop=True).astype("category")
        rows = rows.assign(world=fleet.world, function=function, bin=at, samples=counts[function, cell, at].astype(int))
        rows.to_parquet(asked.folder / f"{fleet.world}.parquet", compression="zstd", index=False)
        truth.append(asdict(fleet.planted))
    pd.DataFrame(truth).to_csv(asked.folder / "truth.csv", index=False)


def files_of(folder: Path) -> Iterator[tuple[int, pd.DataFrame, Floats]]:
    """Yield world, tags and (functions, C, T) counts of each file."""
    for file in sorted(folder.glob("*.parquet")):
        rows = pd.read_parquet(file)
        tags = rows[list(_TAGS)].astype(str)
        code = tags.groupby(list(_TAGS), sort=True).ngroup().to_numpy(np.int64)
        counts = np.zeros((int(rows["function"].max()) + 1, int(code.max()) + 1, int(rows["bin"].max()) + 1))
        counts[rows["function"], code, rows["bin"]] = rows["samples"]
        first = tags.assign(code=code).drop_duplicates("code").sort_values("code").drop(columns="code")
        yield int(rows["world"].iloc[0]), first.reset_index(drop=True), counts


def truth_of(folder: Path) -> list[Planted]:
    """Return what was planted in the worlds of a folder."""
    rows = pd.read_csv(folder / "truth.csv", keep_default_na=False).to_dict("records")
    return [Planted(**{str(name): value for name, value in row.items()}) for row in rows]


def run(asked: argparse.Namespace) -> None:
    """Write the alarms of this detector."""
    alarms = [
        alarm for world, tags, counts in files_of(asked.folder) for alarm in watched(world, tags, counts, Design())
    ]
    table = pd.DataFrame([asdict(alarm) for alarm in alarms], columns=list(Alarm.__dataclass_fields__))
    table.to_csv(asked.folder / "alarms.csv", index=False)


def score(asked: argparse.Namespace) -> None:
    """Print a tool's alarms beside the truth."""
    truth, columns = truth_of(asked.folder), list(Alarm.__dataclass_fields__)
    try:
        rows = pd.read_csv(asked.alarms, keep_default_na=False, usecols=columns).to_dict("records")
    except pd.errors.EmptyDataError:
        rows = []
    except (OSError, ValueError) as error:
        raise SystemExit(f"{asked.alarms}: should be a table with columns {', '.join(columns)}: {error}") from None
    table = scored(truth, [Alarm(**{str(name): value for name, value in row.items()}) for row in rows])
    print(json.dumps(table.to_dict("index")) if asked.json else table.to_string())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    judging = commands.add_parser("judge", help=judge.__doc__)
    judging.add_argument("--worlds", type=int, default=100, help="of each kind")
    judging.add_argument("--held-out", action="store_true", help=f"worlds from {HELD_OUT:,} on")
    judging.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    judging.add_argument("--cost", type=float, default=Design().cost)
    judging.add_argument("--least", type=float, default=Design().least)
    judging.add_argument("--most", type=float, default=Design().most)
    judging.add_argument("--functions", type=int, default=Design().functions)
    judging.add_argument("--walk", type=float, default=Design().walk, help="daily steps of functions' costs: their sd")
    judging.add_argument(
        "--slope", type=float, default=Design().slope, help="daily change of each: sd between functions"
    )
    judging.add_argument("--dimensions", nargs="+", default=list(DIMENSIONS), choices=DIMENSIONS, help="of changes")
    judging.add_argument("--fleet-alone", action="store_true", help="platforms and data centres are not scanned")
    judging.set_defaults(run=judge)
    calm = commands.add_parser("quiet", help=quiet.__doc__)
    calm.add_argument("--series", type=int, default=20_000)
    calm.add_argument("--chunk", type=int, default=2_000)
    calm.add_argument("--first", type=int, default=0, help="series from which on they are drawn, a multiple of a chunk")
    calm.add_argument("--last", type=int, default=0, help="series before which drawing ends; 0: at the last")
    calm.add_argument("--seed", type=int, default=0)
    calm.set_defaults(run=quiet)
    drawing = commands.add_parser("draw", help=draw.__doc__)
    drawing.add_argument("folder", type=Path)
    drawing.add_argument("--worlds", type=int, default=10)
    drawing.add_argument("--first", type=int, default=0)
    drawing.set_defaults(run=draw)
    running = commands.add_parser("run", help=run.__doc__)
    running.add_argument("folder", type=Path)
    running.set_defaults(run=run)
    scoring = commands.add_parser("score", help=score.__doc__)
    scoring.add_argument("folder", type=Path)
    scoring.add_argument("alarms", type=Path)
    scoring.add_argument("--json", action="store_true")
    scoring.set_defaults(run=score)
    asked = parser.parse_args(arguments)
    asked.run(asked)


if __name__ == "__main__":
    main()
