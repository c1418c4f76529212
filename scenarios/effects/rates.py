"""What a machine of one platform is worth in machines of another, for each job and the fleet's mix: `wsc rates`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis.crossplatform.last_level import log_rates
from analysis.economics import Believed, costs_of_work
from analysis.effects.conditions import conditions_of
from analysis.effects.rates import FILLED, MEASURED, POOLED, PlatformRates, PlatformRows
from analysis.statistics import ROUNDING, NotEnoughDataError
from analysis.tables.cells import Source, name_of
from analysis.tables.recipe import AS_IT_IS, Recipe
from models.arrays import Floats
from models.fleet.metrics import METRICS, MetricName
from models.platforms import PLATFORMS, Platform
from scenarios.effects.observations import Experiment, experiment
from scenarios.files.faults import Fault, FaultsError, faults_in
from scenarios.files.own_platforms import read_platforms
from scenarios.files.prices import priced
from scenarios.files.schema import SCENARIO
from scenarios.runs.rundir import open_run
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.economics import cost_blocks
from scenarios.views.numbers import closest, interval, listed, number, plural, share
from scenarios.views.section import Block, Says, Section, note_lines, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST_MACHINES = 4
MACHINES_BESIDE = 8
"""Of a platform, and of another beside one with fewer, so that what machines have in common is not the platform's."""
_FEWEST = 2
"""Platforms that can be compared."""
_NAMED = 10
"""Jobs that the text names, those with most quota."""
_CAPTION = (
    "rates are per unit of CPU time; the plain ratio is that of means over all rows; value counts as work: the more, "
    "the better"
)
_SOURCES: Mapping[str, str] = {MEASURED: "", POOLED: "drawn to other jobs", FILLED: "not seen on both"}


@dataclass(frozen=True, slots=True)
class RatesQuestion:
    """How platforms are to be compared."""

    against: str | None = None
    """The platform in whose machines others are told; that of most machines if not said."""
    metric: MetricName | None = None
    """Of runs; that of their scenario if not said."""
    confidence: float = 0.95
    cluster: str = "machine"
    """Column of what counts as independent."""
    platforms: Path | None = None
    """YAML file of own spec sheets."""
    prices: Source | None = None
    """What machines, their power and its carbon cost: `analysis.economics.FIELDS`."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RatesAnswer(Conclusion):
    """What machines of each platform are worth in machines of one of them."""

    question: RatesQuestion
    rates: PlatformRates
    threads: Mapping[str, float]
    """Hardware threads of a machine by platform; none where they are not known of all."""
    conditions: tuple[str, ...]
    """Names of what rates are adjusted for."""
    predicted: bool
    """Whether a model from counters and spec sheets says what to expect of a job that was not seen on both."""
    metric: MetricName | None
    costs: pd.DataFrame | None
    """Of work, by platform, as `analysis.economics.costs_of_work`; None without prices."""
    notes: tuple[str, ...]

    @property
    def reference(self) -> str:
        """The platform in whose machines others are told."""
        return self.rates.reference

    def brief(self) -> str:
        """Return what a machine, or a hardware thread, of the first platform is worth."""
        row = self.frame().iloc[0]
        ends = interval(row["worth_low"], row["worth_high"], ".3f")
        return f"one {self._unit} of {row['platform']} is worth {row['worth']:.3f} of {self.reference} ({ends})"

    def frame(self) -> pd.DataFrame:
        """Return a row a platform.

        Returns
        -------
        pd.DataFrame
            platform, rate (per CPU second) with low and high, worth (of a machine; of a hardware thread where `threads`
            is empty) with worth_low and worth_high, threads_ratio, and more.
        """
        fleet = self.rates.fleet
        times = np.array([self._threads_ratio(name) for name in fleet["platform"]])
        return fleet.assign(
            worth=fleet["rate"] * times, worth_low=fleet["low"] * times, worth_high=fleet["high"] * times,
            threads_ratio=times,
        )  # fmt: skip

    def jobs(self) -> pd.DataFrame:
        """Return a row a job and platform, those with most quota first: rate per CPU second, interval, source."""
        return self.rates.jobs.sort_values(
            ["quota_share", "job"], ascending=[False, True], kind="stable", ignore_index=True
        )

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        return {
            "kind": "rates",
            "reference": self.reference,
            "confidence": self.question.confidence,
            "metric": self.metric,
            "cluster": self.question.cluster,
            "adjusted_for": list(self.conditions),
            "threads": dict(self.threads),
            "platforms": self.frame().to_dict("records"),
            "jobs": self.jobs().to_dict("records"),
            "costs": None if self.costs is None else self.costs.to_dict("records"),
            "notes": list(self.notes),
        }

    def figure(self) -> "Figure":
        """Return the rates of the fleet's mix beside plain ratios of means, and those of the jobs with most quota."""
        from analysis.figures.effects.answers import draw_rates

        return draw_rates(self.rates.fleet, self.jobs().head(_NAMED * len(self.rates.fleet)), self.reference)

    def section(self) -> Section:
        """Return the worth of each platform's machines, and the rates of the largest jobs."""
        return Section("", tuple(self._blocks()))

    @property
    def _unit(self) -> str:
        return "machine" if self.threads else "hardware thread"

    def _threads_ratio(self, platform: str) -> float:
        return threads_ratio(self.threads, platform, self.reference)

    def _blocks(self) -> Iterator[Block]:
        fleet = self.frame()
        for row in fleet.to_dict("records"):
            more = f"{row['threads_ratio']:.4g} times the" if row["threads_ratio"] != 1.0 else "as many"
            threads = f", with {more} hardware threads" if self.threads else ""
            yield Says(
                f"one {self._unit} of {row['platform']} is worth {row['worth']:.3f} {self._unit}s of {self.reference} "
                f"({interval(row['worth_low'], row['worth_high'], '.3f')}){threads}",
                "strong",
            )
        adjusted = f"; adjusted for {', '.join(self.conditions)}" if self.conditions else ""
        yield Says(
            f"jobs compared with themselves, weighted by quota{adjusted}; {self.question.confidence:.0%} intervals, "
            f"{self.question.cluster}s are the clusters"
        )
        if self.metric is not None:
            yield Says(f"measured: {METRICS[self.metric].words} ({self.metric})")
        headings = ("platform", "machines", "rate", "interval", "plain ratio", "jobs on both", "their quota")
        rows = [
            (
                str(row["platform"]),
                f"{row['machines']:,}",
                number(row["rate"], ".3f"),
                interval(row["low"], row["high"], ".3f"),
                number(row["naive"], ".3f"),
                f"{row['jobs']:,}",
                share(row["seen"], 1),
            )
            for row in fleet.to_dict("records")
        ]
        yield table(headings, rows, caption=_CAPTION)
        if self.costs is not None:
            yield from cost_blocks(self.costs, self.reference)
        yield self._of_jobs()
        yield from note_lines(self.notes)

    def _of_jobs(self) -> Block:
        jobs = self.jobs()
        several = len(self.rates.fleet) > 1
        rows = [
            (
                str(row["job"]),
                *([str(row["platform"])] if several else []),
                share(row["quota_share"], 1),
                f"{row['machines']:,} and {row['reference_machines']:,}",
                number(row["rate"], ".3f"),
                interval(row["low"], row["high"], ".3f"),
                _SOURCES[row["source"]],
            )
            for row in jobs.head(_NAMED).to_dict("records")
        ]
        headings = ("job", *(["platform"] if several else []), "quota", "machines", "rate", "interval", "")
        more = len(jobs) - len(rows)
        caption = f"{plural(more, 'more row')}: --json, or wsc.rates(…).jobs()" if more > 0 else ""
        return table(headings, rows, words=1 + several, keys=1 + several, caption=caption)


def threads_ratio(threads: Mapping[str, float], platform: str, reference: str) -> float:
    """Return how many times the hardware threads of a reference a machine has; 1 where they are not known."""
    return threads[platform] / threads[reference] if threads else 1.0


def rates(
    sources: Sequence[Source],
    question: RatesQuestion,
    jobs: Source | None = None,
    recipe: Recipe = AS_IT_IS,
) -> RatesAnswer:
    """Return what machines of each platform are worth in machines of one of them.

    Parameters
    ----------
    sources : tables of observations with the column platform, or folders of runs
    question : how platforms are compared
    jobs : job, quota of the whole fleet; without it jobs weigh as in the tables
    recipe : how columns of the tables become ours

    Raises
    ------
    FaultsError
        With everything that is wrong with the tables or what is asked.
    """
    read = experiment(sources, jobs, question.metric, recipe, study=False)
    rows, notes = _usable(read, sources)
    sheets = _sheets(sources, question)
    source = str(read.source)
    reference = _checked(rows, question, source)
    prices = None if question.prices is None else priced(question.prices, sorted(rows["platform"].unique()))
    with faults_in(read.source):
        threads, of_threads = _threads(rows, sheets)
        if prices is not None and not threads:
            problem = "are of whole machines: they need the column vcpus, hardware threads of a machine"
            raise FaultsError([Fault("", 0, 0, "prices", problem, of_threads[0])])
        rows = rows.assign(vcpus=rows["platform"].map(threads)) if threads and "vcpus" not in rows else rows
        conditions = conditions_of(rows)
        coded = PlatformRows.of(rows, read.jobs, conditions.table, question.cluster)
        predicted = _predicted(coded, rows, sheets, reference)
        try:
            answer = PlatformRates.of(coded, reference, predicted, question.confidence)
        except NotEnoughDataError as error:
            raise FaultsError([Fault(source, 0, 0, "platform", str(error))]) from None
    costs = None
    if prices is not None:
        costs = costs_of_work(prices, _believed(answer, threads), reference, question.confidence)
    if read.jobs is None:
        notes.append("no table of jobs: jobs weigh as in the tables")
    notes += _few(rows)
    return RatesAnswer(
        question,
        answer,
        threads,
        tuple(conditions.table.columns),
        bool(predicted),
        read.metric,
        costs,
        (*read.notes, *notes, *of_threads, *conditions.notes, *_unseen(answer, bool(predicted))),
    )


def _few(rows: pd.DataFrame) -> list[str]:
    """Return what is to be said of platforms with so few machines that these cannot be told from the platform.

    Examples
    --------
    >>> _few(pd.DataFrame({"platform": ["old", "new", "new"], "machine": [1, 2, 3]}))[0].partition(":")[0]
    'platforms with few machines, new (2), old (1)'
    """
    machines = rows.groupby("platform", sort=True)["machine"].nunique()
    few = machines[machines < MACHINES_BESIDE]
    if len(few) < 2 or few.min() >= LEAST_MACHINES:
        return []
    named = listed([f"{name} ({count})" for name, count in few.items()])
    return [
        f"platforms with few machines, {named}: what the machines of one have in common counts as the platform's, and "
        f"intervals of fewer than {LEAST_MACHINES} beside fewer than {MACHINES_BESIDE} hold too seldom; of one beside "
        "one they say nothing of machines"
    ]


def _believed(answer: PlatformRates, threads: Mapping[str, float]) -> Believed:
    """Return what machines are worth, the reference first."""
    fleet = answer.fleet
    times = np.array([threads_ratio(threads, name, answer.reference) for name in fleet["platform"]])
    worth, low, high = (np.append(1.0, fleet[name].to_numpy(np.float64) * times) for name in ("rate", "low", "high"))
    covariance = np.zeros((len(times) + 1, len(times) + 1))
    covariance[1:, 1:] = answer.covariance
    return Believed((answer.reference, *fleet["platform"]), worth, low, high, covariance)


def _usable(read: Experiment, sources: Sequence[Source]) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows that count, each on the platform that its machine was, and notes."""
    rows, notes = read.observations.estimable()
    if rows.empty:
        raise FaultsError([Fault(str(read.source), 0, 0, "value", "no row has a value and a weight above 0")])
    if "platform" not in rows:
        problem = "column is missing: --column platform=EXPRESSION makes it of yours"
        raise FaultsError([Fault(str(read.source), 0, 0, "platform", problem)])
    becomes = dict[str, Mapping[str, str]]()
    for source in sources:
        if isinstance(source, Path) and source.is_dir() and open_run(source).manifest.get("kind") != "profile":
            feature = open_run(source).world(SCENARIO).feature
            if feature is not None and feature.platforms:
                becomes[name_of(source)] = feature.platforms
    treated = rows["treated"].to_numpy() == 1
    rows = rows.assign(platform=rows["platform"].astype(str))
    for name in ("instructions", "llc_misses"):
        if name in rows and not np.isfinite(rows[name]).all():
            notes.append(
                f"{name}: {(~np.isfinite(rows[name])).sum():,} cells are no numbers, so the column is not used"
            )
            rows = rows.drop(columns=name)
    for file, platforms in becomes.items():
        here = treated & (rows["file"] == file).to_numpy()
        rows.loc[here, "platform"] = rows.loc[here, "platform"].replace(dict(platforms))
        treated &= ~here
    if treated.any():
        notes.append(f"{treated.sum():,} rows with a feature are left out")
        rows = rows[~treated].reset_index(drop=True)
    return rows, notes


def _sheets(sources: Sequence[Source], question: RatesQuestion) -> Mapping[str, Platform]:
    """Return the spec sheets that are known, those of runs among them."""
    known = dict(PLATFORMS) if question.platforms is None else read_platforms(question.platforms)
    for source in sources:
        if isinstance(source, Path) and source.is_dir():
            known |= open_run(source).sheets
    return known


def _checked(rows: pd.DataFrame, question: RatesQuestion, source: str) -> str:
    """Return the reference platform; refuse everything that cannot be compared, all at once."""
    faults = list[Fault]()
    machines = rows.groupby("platform")["machine"].nunique().sort_values(ascending=False, kind="stable")
    if len(machines) < _FEWEST:
        faults.append(Fault(source, 0, 0, "platform", "two platforms are needed", ", ".join(machines.index) or "none"))
    problem = "a machine should have one platform in a period"
    faults += _differing(rows, ["machine", "period"], "platform", problem, source)
    if "vcpus" in rows:
        faults += _differing(rows, ["platform"], "vcpus", "machines of one platform should have as many", source)
    if question.against is not None and question.against not in machines:
        problem = f"no machine is of platform {question.against} ({closest(question.against, machines.index)})"
        faults.append(Fault("", 0, 0, "against", problem))
    if question.cluster not in rows:
        faults.append(Fault(source, 0, 0, "cluster", f"no column {question.cluster}"))
    if faults:
        raise FaultsError(faults)
    return question.against or str(machines.index[0])


def _differing(rows: pd.DataFrame, keys: list[str], column: str, problem: str, source: str) -> Iterator[Fault]:
    """Yield a fault if a column has several values, or none, where keys are the same; the first such place in words."""
    values = rows.groupby(keys)[column].agg(["nunique", "count", "size"])
    wrong = values.index[(values["nunique"] != 1) | (values["count"] < values["size"])]
    if len(wrong):
        first = wrong[0] if isinstance(wrong[0], tuple) else wrong[:1]
        where = ", ".join(f"{key} {value}" for key, value in zip(keys, first, strict=True))
        more = f" and {len(wrong) - 1:,} more" if len(wrong) > 1 else ""
        yield Fault(source, 0, 0, column, problem, f"not so of {where}{more}")


def _threads(rows: pd.DataFrame, sheets: Mapping[str, Platform]) -> tuple[Mapping[str, float], tuple[str, ...]]:
    """Return hardware threads of a machine by platform: of the column vcpus, else of spec sheets; and a note."""
    names = [str(name) for name in sorted(rows["platform"].unique())]
    if "vcpus" in rows:
        first = rows.groupby("platform")["vcpus"].first()
        return {name: float(first[name]) for name in names}, ()
    if all(name in sheets for name in names):
        return {name: float(sheets[name].vcpus) for name in names}, ()
    unknown = ", ".join(name for name in names if name not in sheets)
    why = f"no column vcpus, and no spec sheet of {unknown}: what a whole machine is worth is not known"
    return {}, (why,)


def _predicted(
    coded: PlatformRows, rows: pd.DataFrame, sheets: Mapping[str, Platform], reference: str
) -> dict[str, Floats]:
    """Return (J,) log rates that counters and spec sheets say, by platform; none without instructions and misses."""
    clock = next((name for name in ("mean_frequency_hz", "clock_hz") if name in rows), None)
    if not {"instructions", "llc_misses", "cpu_s"} <= {*rows} or clock is None:
        return {}
    names = [str(name) for name in coded.platforms]
    if any(name not in sheets for name in names):
        return {}
    count, cells = len(names), len(coded.jobs) * len(names)
    columns = {
        "instructions": rows["instructions"], "misses": rows["llc_misses"], "cpu_s": rows["cpu_s"],
        "cycles": rows["cpu_s"] * rows[clock],
    }  # fmt: skip
    sums = {
        name: np.bincount(coded.cell, column.to_numpy(np.float64), cells).reshape(-1, count)
        for name, column in columns.items()
    }
    clocks = sums["cycles"].sum(axis=0) / sums["cpu_s"].sum(axis=0)
    at = names.index(reference)
    known = (sums["instructions"] > 0) & (sums["cycles"] > 0)
    predicted = dict[str, Floats]()
    for target, name in enumerate(names):
        if target == at:
            continue
        of_origin = np.zeros(known.shape)
        for other, here in enumerate(names):  # from wherever the job ran, to both platforms
            instructions = np.where(known[:, other], sums["instructions"][:, other], 1.0)
            cpi = np.where(known[:, other], sums["cycles"][:, other], 1.0) / instructions
            misses = np.where(known[:, other], sums["misses"][:, other], 0.0) / instructions
            to = [log_rates(sheets[here], sheets[there], (clocks[other], clocks[place]), cpi, misses)
                  for place, there in ((target, name), (at, reference))]  # fmt: skip
            of_origin[:, other] = to[0] - to[1]
        predicted[name] = _from_all_origins(of_origin, np.where(known, sums["cpu_s"], 0.0))
    return predicted


def _from_all_origins(log: Floats, weight: Floats) -> Floats:
    """Return (J,) means of predictions (J, P) from the platforms that a job ran on.

    The model errs on one platform otherwise than on another. So predictions from each are shifted by what they differ
    on average from the means of the jobs that ran on several: jobs that ran on one alone are told as these are.
    """
    total = weight.sum(axis=1)
    mean = (log * weight).sum(axis=1) / np.where(total > 0, total, 1.0)
    several = (weight > 0) & ((weight > 0).sum(axis=1) > 1)[:, None]
    shift = ((mean[:, None] - log) * several).sum(axis=0) / np.maximum(several.sum(axis=0), 1)
    mean = ((log + shift) * weight).sum(axis=1) / np.where(total > 0, total, 1.0)
    return np.asarray(np.where(total > 0, mean, float(mean @ total) / float(total.sum())))


_FEW_JOBS = 8
"""Jobs seen on both platforms up to which a spread that is not found may well be there."""


def _unseen(answer: PlatformRates, predicted: bool) -> Iterator[str]:
    """Yield of each platform how much of the quota is filled in, by what, and where few jobs are alike."""
    by = "their counters and spec sheets say, corrected by jobs seen on both" if predicted else "jobs seen on both do"
    for row in answer.fleet.to_dict("records"):
        if row["seen"] < 1.0 - ROUNDING:
            yield (
                f"{row['platform']}: jobs with {1 - row['seen']:.1%} of the quota were not seen on both platforms in "
                f"one period; they are filled in by what {by}"
            )
            if row["spread"] == 0 and 1 < row["jobs"] <= _FEW_JOBS:
                yield (
                    f"{row['platform']}: the {row['jobs']} jobs seen on both are as alike as their errors let expect, "
                    "which so few may be by chance: where other jobs differ, intervals are too narrow; with five such "
                    "jobs they held the truth in 82% (jobs not seen) and 90% (fleet) of simulated cases"
                )
