"""Many collectors look at the same fleet: how often are the intervals of its profile right?

Each draw is another collector: other machines at other times, other samples. The fleet is the one of the run, simulated
again for a group of collectors at once; samples are symbolised against a repository that holds every build, so that a
function's share can be held against the truth.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TypedDict

import numpy as np
import pandas as pd

from analysis.profiling.intervals import share_intervals
from analysis.profiling.metrics import core_seconds, cpi
from analysis.profiling.stability import clustered_entropy, entropy, manhattan
from analysis.statistics import NotEnoughDataError, normal_quantile, student_quantile
from models.arrays import Floats
from scenarios.files.schema import GWP, PROFILE, ProfileScenario
from scenarios.profiling.collectors import CollectorTables, Looks
from scenarios.profiling.profiled import FUNCTION, true_cpi, true_shares
from scenarios.runs.execution import obtain, reopen
from scenarios.runs.parts import computed_parts, folder_of
from scenarios.runs.rundir import Run, RunError
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import interval, share
from scenarios.views.section import Place, Says, Section, table
from scenarios.views.terminal import Progress

_PARTS = {"seed", "functions", "core_seconds", "cpi", "samples", "visits"}
_JUDGES = ("scipy", "pandas")
"""Libraries that decide what intervals say, beside those that decide a run."""
LEAST_DRAWS = 5
"""Draws from which a mean's interval over draws is told."""


class FunctionsDraw(TypedDict):
    """How right one collector was about the shares of the top functions."""

    covered: list[int]
    """1 or 0 of each, in order of their true shares; one that was never sampled is a miss."""
    naive: list[int]
    """The same of intervals that take samples for independent."""
    half_width: float
    """Mean of those sampled, relative."""
    design_effect: float
    manhattan: float
    manhattan_expected: float
    """What the intervals' errors would give."""
    entropy: float
    entropy_plain: float
    entropy_true: float


class CpiDraw(TypedDict):
    """How right one collector was about CPI of the top applications."""

    covered: list[int]
    """1 or 0 of each; one without an interval is a miss."""
    given: list[int]
    """Whether each has an interval, 1 or 0: it has none where it was seen on one visit alone."""
    error: float
    """Median."""


class SecondsDraw(TypedDict):
    """How right one collector was about core-seconds."""

    error: float
    covered: int
    """1 or 0; where there is no interval it is a miss."""
    given: int
    """Whether there is one, 1 or 0: there is none, and all else is NaN, where one visit alone answered."""
    half_width: float
    by_fleet_error: float


class CollectorDraw(TypedDict):
    """What is kept of one collector."""

    seed: int
    samples: int
    """Of cycles."""
    visits: int
    """That answered."""
    functions: FunctionsDraw
    cpi: CpiDraw
    core_seconds: SecondsDraw


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often intervals held the truth: the mean over collectors and its 95% interval; NaN of few collectors."""

    coverage: float
    coverage_low: float
    coverage_high: float

    def cells(self) -> tuple[str, str]:
        """Return it as text."""
        return share(self.coverage, 1), interval(self.coverage_low, self.coverage_high, ".1%")


@dataclass(frozen=True, slots=True)
class FunctionsJudged(Coverage):
    """How right the shares of the hottest functions were."""

    judged: int
    """Functions."""
    least_coverage: float
    """Of any single function."""
    naive_coverage: float
    """Of intervals that take samples for independent."""
    half_width: float
    """Relative."""
    design_effect: float
    manhattan: float
    manhattan_expected: float
    """What the intervals' errors would give."""
    entropy_bias: float
    """Nats."""
    entropy_plain_bias: float
    """Without correction."""


@dataclass(frozen=True, slots=True)
class CpiJudged(Coverage):
    """How right CPI of applications was."""

    given: float
    """Share that have an interval."""
    given_coverage: float
    """Of those."""
    error: float

    def lacking(self) -> str:
        """Return what is to be said of CPI without an interval; empty if each has one."""
        if self.given == 1.0:
            return ""
        return (
            f"{share(1.0 - self.given, 1)} of the CPI have no interval, as one visit alone saw the application, and "
            f"count as misses; of those that have one {share(self.given_coverage, 1)} hold the truth"
        )


@dataclass(frozen=True, slots=True)
class SecondsJudged(Coverage):
    """How right core-seconds were, held against the fleet's monitor."""

    given: float
    """Share of the collectors that have an interval; all else but coverage is of those."""
    given_coverage: float
    """Of those."""
    half_width: float
    error: float
    """Root mean square."""
    bias: float
    by_fleet_bias: float
    """With one frequency for all."""

    def lacking(self) -> str:
        """Return what is to be said of collectors without core-seconds; empty if each has them."""
        if self.given == 1.0:
            return ""
        return (
            f"{share(1.0 - self.given, 1)} of the collectors have no core-seconds, as one visit alone answered, and "
            f"count as misses; of those that have them {share(self.given_coverage, 1)} hold the truth"
        )


@dataclass(frozen=True, slots=True)
class Collectors:
    """What many collectors of one fleet say of the intervals."""

    draws: int
    samples: float
    """Of cycles, mean."""
    visits: float
    """That answered, mean."""
    functions: FunctionsJudged
    cpi: CpiJudged
    core_seconds: SecondsJudged


@dataclass(frozen=True, slots=True, repr=False)
class CollectorsJudged(Conclusion):
    """How often intervals held the truth, over many collectors of one fleet: the answer of ``wsc validate``."""

    run: Path
    scenario: str
    seed: int
    confidence: float
    """Of the intervals that are judged."""
    judged: Collectors

    def brief(self) -> str:
        """Return how often intervals held the truth."""
        shares = ", ".join(f"{row.of} {row.coverage:.1%}" for row in self.frame().itertuples())
        return f"{self.confidence:.0%} intervals held the truth: {shares}"

    def frame(self) -> pd.DataFrame:
        """Return coverage, coverage_low, coverage_high of functions, cpi and core_seconds."""
        parts = {"functions": self.judged.functions, "cpi": self.judged.cpi, "core_seconds": self.judged.core_seconds}
        names = ("coverage", "coverage_low", "coverage_high")
        return pd.DataFrame([{"of": of} | {name: getattr(part, name) for name in names} for of, part in parts.items()])

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        head = {"kind": "profile", "run": str(self.run), "scenario": self.scenario, "seed": self.seed}
        return head | {"confidence": self.confidence} | asdict(self.judged)

    def section(self) -> Section:
        """Return how often intervals held the truth."""
        judged, functions, seconds = self.judged, self.judged.functions, self.judged.core_seconds
        rows = (
            (f"shares of the top {functions.judged} functions", *functions.cells()),
            ("CPI of applications", *judged.cpi.cells()),
            ("core-seconds", *seconds.cells()),
        )
        lines = (
            f"half-width of a share: {functions.half_width:.1%} of it, at a design effect of "
            f"{functions.design_effect:.1f}; least coverage of a function {functions.least_coverage:.0%}",
            f"intervals that take samples for independent hold the truth in {functions.naive_coverage:.1%}",
            f"Manhattan distance to the truth {functions.manhattan:.4f}, by the intervals "
            f"{functions.manhattan_expected:.4f}",
            f"bias of entropy {functions.entropy_bias:+.4f} nats, without correction "
            f"{functions.entropy_plain_bias:+.4f}",
            f"error of CPI {judged.cpi.error:.1%}; of core-seconds {seconds.error:.2%} (bias {seconds.bias:+.2%}, "
            f"with one frequency for all {seconds.by_fleet_bias:+.2%})",
            *filter(None, [judged.cpi.lacking(), seconds.lacking()]),
        )
        return Section(
            "",
            (
                Says(
                    f"{self.scenario} (seed {self.seed}): {judged.draws} collectors of one fleet, on average "
                    f"{judged.visits:,.0f} visits that answered and {judged.samples:,.0f} samples of cycles"
                ),
                table(("", "hold the truth", "95% interval"), rows, f"{self.confidence:.0%} intervals"),
                *(Says(f"  {line}") for line in lines),
                Place(f"  run: {self.run}"),
            ),
        )


def validate(scenario: ProfileScenario, out: Path, force: bool, progress: Progress) -> CollectorsJudged:
    """Return what `wsc validate` says: how often intervals held the truth, over many collectors of one fleet.

    Draws that were judged before by this very code are read; what was interrupted goes on where it stopped.

    Parameters
    ----------
    scenario : the fleet, and how many collectors look at it
    out : folder of all runs
    force : simulate and judge again what is there
    progress : told what is being done and the share done

    Raises
    ------
    RunError
        If the scenario records no truth, so that there is nothing to be right about.
    """
    if not scenario.recording.truth:
        raise RunError(f"{scenario.name}: there is no truth to validate against, recording.truth is false")
    run = obtain(scenario, out, force, progress)
    seeds = range(scenario.analyses.profiling.draws)
    judge = partial(judged, scenario, run.path)
    what = "judging collectors"
    draws = computed_parts(seeds, judge, place(scenario, out), _PARTS, progress, force=force, what=what)
    confidence = scenario.analyses.profiling.confidence
    return CollectorsJudged(run.path, scenario.name, scenario.seed, confidence, summary(draws))


def place(scenario: ProfileScenario, out: Path) -> Path:
    """Return the folder of a scenario's judged collectors: same question and same code, same place."""
    question = asdict(scenario.world) | asdict(scenario.analyses.profiling) | {"draws": 0}
    return folder_of(out, f"collectors-{scenario.name}", question, _JUDGES)


def judged(scenario: ProfileScenario, run: Path, seed: int) -> CollectorDraw:
    """Return how right one collector was.

    Parameters
    ----------
    scenario : the fleet and the settings of the analysis
    run : the run that has the truth
    seed : of the collector
    """
    settings, recorded = scenario.analyses.profiling, reopen(run)[1]
    look = _looks(PROFILE.dump_json(scenario).decode()).look(seed)
    answered = look.visits[look.visits["status"] == "ok"]
    if answered.empty:
        raise RunError(
            f"{scenario.name}: no visit of collector {seed} answered, so it has no profile to judge: visit more often "
            "(profiling.collector.one_in, round_s), or let fewer visits fail (failure_share, outage_s)"
        )
    return {
        "seed": seed,
        "samples": int(look.functions["samples"].sum()),
        "visits": len(answered),
        "functions": _functions(look.functions, true_shares(recorded, FUNCTION), settings),
        "cpi": _cpi(look, recorded, settings),
        "core_seconds": _seconds(look, recorded.table("monitor"), scenario),
    }


@lru_cache(maxsize=1)
def _looks(text: str) -> Looks:
    """Return the collectors of a scenario's fleet, made once in each process."""
    return Looks.of(PROFILE.validate_json(text).world)


def _functions(clustered: pd.DataFrame, true: pd.DataFrame, settings: GWP) -> FunctionsDraw:
    """Return how right the shares of functions are, those with the most cycles first."""
    intervals = share_intervals(clustered, cluster="visit", confidence=settings.confidence)
    both = true.merge(intervals, "left", list(FUNCTION)).fillna({"share": 0.0})
    both = both.sort_values("true", ascending=False, kind="stable").head(settings.top_functions)
    # A function that was never seen has no interval: that is a miss, as NaN compares false.
    covered = (both["low"] <= both["true"]) & (both["true"] <= both["high"])
    alone = np.sqrt(both["share"] * (1.0 - both["share"]) / max(float(clustered["samples"].sum()), 1.0))
    naive = (both["share"] - both["true"]).abs() <= normal_quantile(0.5 + settings.confidence / 2) * alone
    every = intervals.merge(true, "outer", list(FUNCTION)).fillna({"share": 0.0, "true": 0.0, "standard_error": 0.0})
    spread = clustered_entropy(clustered, cluster="visit")
    return {
        "covered": covered.astype(int).tolist(),
        "naive": naive.astype(int).tolist(),
        "half_width": float(((both["high"] - both["low"]) / 2 / both["true"]).mean()),
        "design_effect": float(both["design_effect"].median()),
        "manhattan": manhattan(every["true"], every["share"]),
        "manhattan_expected": math.sqrt(2 / math.pi) * float(every["standard_error"].sum()),
        "entropy": spread.value,
        "entropy_plain": spread.plain,
        "entropy_true": entropy(true["true"].to_numpy(np.float64), correction="none"),
    }


def _cpi(look: CollectorTables, run: Run, settings: GWP) -> CpiDraw:
    """Return how right CPI is of the applications with the most cycles."""
    ratios = cpi(look.cycles, look.instructions, cluster="visit", confidence=settings.confidence)
    both = ratios.merge(true_cpi(run), "inner", "application").head(settings.top)
    inside = (both["low"] <= both["cpi_true"]) & (both["cpi_true"] <= both["high"])
    errors = (both["cpi"] / both["cpi_true"] - 1.0).abs()
    given = both["low"].notna().astype(int).tolist()
    return {"covered": inside.astype(int).tolist(), "given": given, "error": float(errors.median())}


def _seconds(look: CollectorTables, monitor: pd.DataFrame, scenario: ProfileScenario) -> SecondsDraw:
    """Return how right core-seconds are, held against the fleet's monitor."""
    try:
        estimate = core_seconds(
            look.visits,
            look.of_visits,
            monitor,
            confidence=scenario.analyses.profiling.confidence,
            machine_epochs=scenario.fleet.machines * scenario.epochs,
        )
    except NotEnoughDataError:
        return {"error": math.nan, "covered": 0, "given": 0, "half_width": math.nan, "by_fleet_error": math.nan}
    return {
        "error": estimate.core_s / estimate.monitor_s - 1.0,
        "covered": int(estimate.low <= estimate.monitor_s <= estimate.high),
        "given": 1,
        "half_width": (estimate.high - estimate.low) / 2 / estimate.core_s,
        "by_fleet_error": estimate.by_fleet_s / estimate.monitor_s - 1.0,
    }


def summary(draws: Sequence[CollectorDraw]) -> Collectors:
    """Return what many collectors say of the intervals.

    Parameters
    ----------
    draws : one at least, as `judged` returns them
    """
    functions, ratios, seconds = (
        pd.DataFrame([draw[part] for draw in draws]) for part in ("functions", "cpi", "core_seconds")
    )
    flags = np.array(functions["covered"].tolist(), np.float64)
    return Collectors(
        len(draws),
        samples=float(np.mean([draw["samples"] for draw in draws])),
        visits=float(np.mean([draw["visits"] for draw in draws])),
        functions=FunctionsJudged(
            *_between(flags.mean(axis=1)),
            judged=flags.shape[1],
            least_coverage=float(flags.mean(axis=0).min()),
            naive_coverage=float(np.mean(functions["naive"].tolist())),
            half_width=float(functions["half_width"].mean()),
            design_effect=float(functions["design_effect"].mean()),
            manhattan=float(functions["manhattan"].mean()),
            manhattan_expected=float(functions["manhattan_expected"].mean()),
            entropy_bias=float((functions["entropy"] - functions["entropy_true"]).mean()),
            entropy_plain_bias=float((functions["entropy_plain"] - functions["entropy_true"]).mean()),
        ),
        cpi=CpiJudged(
            *_between(np.array([np.mean(covered) for covered in ratios["covered"]])),
            given=float(np.concatenate(ratios["given"].tolist()).mean()),
            given_coverage=sum(map(sum, ratios["covered"])) / max(sum(map(sum, ratios["given"])), 1),
            error=float(ratios["error"].mean()),
        ),
        core_seconds=SecondsJudged(
            *_between(seconds["covered"].to_numpy(np.float64)),
            given=float(seconds["given"].mean()),
            given_coverage=float(seconds["covered"].sum()) / max(float(seconds["given"].sum()), 1.0),
            half_width=float(seconds["half_width"].mean()),
            error=math.sqrt(float((seconds["error"] ** 2).mean())),
            bias=float(seconds["error"].mean()),
            by_fleet_bias=float(seconds["by_fleet_error"].mean()),
        ),
    )


def _between(draws: Floats) -> tuple[float, float, float]:
    """Return the mean over draws and its 95% interval (Student's); NaN of fewer than `LEAST_DRAWS`."""
    mean, half = float(draws.mean()), math.nan
    if draws.size >= LEAST_DRAWS:
        half = float(student_quantile(0.975, draws.size - 1)) * float(draws.std(ddof=1)) / math.sqrt(draws.size)
    return mean, max(mean - half, 0.0), min(mean + half, 1.0)
