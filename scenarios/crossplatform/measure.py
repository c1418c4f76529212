"""A cross-platform run is measured: what methods predicted of platforms that they never saw, beside what happened."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.crossplatform.prediction import draw_errors
from scenarios.crossplatform.trial import JudgedWorld, Tables, TargetErrors, judge
from scenarios.crossplatform.worlds import BEST, MethodScores, WorldsSummary, place, summary, worlds
from scenarios.files.schema import ServiceScenario
from scenarios.runs.conclusions import kept_conclusion
from scenarios.runs.disk import save
from scenarios.runs.rundir import Draft, Run
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import listed, plural
from scenarios.views.section import Block, Place, Says, Section, Table, says, table
from scenarios.views.terminal import Progress

_NEEDED = ("service_counts", "service_log", "service_cpu")
_TRUTH = ("truth_service", "truth_throughput")
_TABLES = (*_NEEDED, "benchmarks", *_TRUTH)
_HEADINGS = {"cycle_scalar": "cycle scalar", "cycle_mix": "cycle mix"}
_UNKNOWN = "errors of predictions and losses of choices are unknown"
_CAPTION = (
    "median errors of service and response time; coverage and half-width (±) of 90% intervals of service time; wrong: "
    "how often the best platform for throughput per watt is not the one chosen, and what that loses"
)
_OF_WORLDS = (
    "90%: so many targets err less; coverage with its own 95% interval over worlds; beaten: how often by testbed"
)


def simulate(scenario: ServiceScenario, draft: Draft, _out: Path, progress: Progress) -> Mapping[str, int]:
    """Write the tables of a service into a draft, and return how much there is of what."""
    from sim.services.run import record

    outcome = record(scenario.world, draft.path, progress)
    draft.add(*outcome.tables)
    return outcome.counts


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PredictedRun(Conclusion):
    """What methods predicted in one world, beside what happened: ``wsc run`` of a cross-platform scenario."""

    kind: str
    run: Path
    scenario: str
    counts: Mapping[str, int]
    origin: str
    """The platform that is predicted from."""
    world: JudgedWorld
    figures: tuple[Path, ...]

    def brief(self) -> str:
        """Return the median error of the service time by each method."""
        errors = pd.DataFrame(self.world["methods"]).groupby("method", sort=False)["service_error"].median()
        return f"error of service time from {self.origin}: " + listed(
            f"{name} {_percent(of)}" for name, of in errors.items()
        )

    def figure(self) -> Figure:
        """Return the error of every method on every target."""
        drawn = _errors(self.world["methods"])
        return Conclusion.figure(self) if drawn is None else drawn

    def section(self) -> Section:
        """Return the error of every method on every target, and what the platforms really did."""
        counts, world = self.counts, self.world
        whose = f"{self.scenario} (seed {world['seed']})"
        measured = (
            f"{counts['requests']:,} requests in {counts['intervals']:,} intervals on {counts['platforms']} platforms"
        )
        blocks = [
            Says(f"{whose}: {measured}"),
            Says(f"  predicted from {self.origin}; {_outside(world['outside_hull'])}"),
            *self.tables(),
            *_notes(world["notes"]),
            Place(f"  tables and figures: {self.run}"),
        ]
        return Section("", tuple(blocks))

    def tables(self) -> Iterator[Block]:
        """Yield errors by target and by method; without the truth, how wide the intervals of methods are."""
        rows = self.world["methods"]
        if any(math.isfinite(row["service_error"]) for row in rows):
            busy = {row["platform"]: row["utilisation"] for row in self.world["platforms"]}
            yield target_table([(row["method"], row["target"], row["service_error"]) for row in rows], busy)
            yield _method_table(self.world)
            return
        known = pd.DataFrame(rows, columns=["method", "half_width"]).dropna()
        widths = known.groupby("method", sort=False)["half_width"].median().items()
        text = ", ".join(f"{name} {_percent(width)}" for name, width in widths)
        yield from says(f"  half-width of 90% intervals of service time: {text}" if text else "")

    def payload(self) -> Payload:
        """Return the run, and how every method did in its world."""
        return {
            "kind": self.kind,
            "run": str(self.run),
            "scenario": self.scenario,
            "counts": self.counts,
            "from": self.origin,
            **self.world,
            "figures": [str(file) for file in self.figures],
        }

    def frame(self) -> pd.DataFrame:
        """Return a row a method and target."""
        return pd.DataFrame(self.world["methods"])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ValidatedWorlds(Conclusion):
    """How every method did over many worlds: ``wsc validate`` of a cross-platform scenario."""

    kind: str
    folder: Path
    scenario: str
    seed: int
    """Of the first world."""
    origin: str
    """The platform that is predicted from."""
    worlds: WorldsSummary

    def brief(self) -> str:
        """Return the error of the service time by each method."""
        errors = [f"{row['method']} {_percent(row['service_error'])}" for row in self.worlds["methods"]]
        return f"error of service time in {plural(self.worlds['worlds'], 'world')}: {listed(errors)}"

    def section(self) -> Section:
        """Return the errors of every method over worlds and targets, and how often the best is the best."""
        worlds = self.worlds
        count = f"{worlds['worlds']} world{'s' * (worlds['worlds'] > 1)}"
        whose = f"{self.scenario} (seeds from {self.seed})"
        blocks: tuple[Block, ...] = (
            Says(f"{whose}: {count}, predicted from {self.origin}; {_outside(worlds['outside_hull'])}"),
            *self.tables(),
            *says(f"  {self.wins()}" if self.wins() else ""),
            *_notes(worlds["notes"]),
            Place(f"  worlds: {self.folder}"),
        )
        return Section("", blocks)

    def tables(self) -> Iterator[Table]:
        """Yield errors by target, and what the worlds say of each method."""
        busy = {row["platform"]: row["utilisation"] for row in self.worlds["platforms"]}
        yield target_table(
            [(row["method"], row["target"], row["service_error"]) for row in self.worlds["targets"]], busy
        )
        yield _world_table(self.worlds["methods"])

    def wins(self) -> str:
        """Return how often the best method errs less than all its rivals, and than each; nothing if unknown."""
        best = self.worlds["best"]
        if not best["rivals"] or not math.isfinite(best["beats_every_rival"]):
            return ""
        between = f" ({best['low']:.0%} to {best['high']:.0%})" if math.isfinite(best["low"]) else ""
        rivals = ", ".join(
            f"{won['rival']} {won['share']:.0%}" + (f" ±{100 * won['se']:.1f}" if math.isfinite(won["se"]) else "")
            for won in best["beats"]
        )
        return (
            f"{best['method']} errs less than all of {', '.join(best['rivals'])} in {best['beats_every_rival']:.0%}"
            f"{between} of the pairs of world and platform without a log, than each in {best['beats_each_rival']:.0%} "
            f"at least: {rivals} (± standard error over worlds)"
        )

    def payload(self) -> Payload:
        """Return the scenario, and what its worlds say of the methods."""
        head = {"kind": self.kind, "run": str(self.folder), "scenario": self.scenario, "seed": self.seed}
        return {**head, "from": self.origin, **self.worlds}

    def frame(self) -> pd.DataFrame:
        """Return a row a method."""
        return pd.DataFrame(self.worlds["methods"])


@kept_conclusion
def measure(scenario: ServiceScenario, run: Run, _out: Path, progress: Progress) -> PredictedRun:
    """Return what `wsc run` says of a cross-platform run that is there; without its ``truth_`` tables errors are NaN.

    The picture goes into the run's directory.

    Raises
    ------
    RunError
        If another table is not there, or one cannot be read.
    """
    progress("predicting", 0.0)
    world = judge(tables_of(run), scenario)
    missing = [name for name in _TRUTH if not run.has(name)]
    if missing:
        world["notes"] = [*world["notes"], f"the truth is not there (no {' and no '.join(missing)}): {_UNKNOWN}"]
    drawn = _errors(world["methods"])
    figures = () if drawn is None else tuple(save(drawn, run.path / "errors"))
    return PredictedRun(
        scenario.kind, run.path, scenario.name, run.manifest["counts"], scenario.calibration, world, figures
    )


def validate(scenario: ServiceScenario, out: Path, force: bool, progress: Progress) -> ValidatedWorlds:
    """Return what `wsc validate` says: how every method did over many worlds."""
    summed = summary(worlds(scenario, out, force, progress))
    return ValidatedWorlds(
        scenario.kind, place(scenario, out), scenario.name, scenario.seed, scenario.calibration, summed
    )


def tables_of(run: Run) -> Tables:
    """Return the tables of a run that predictions and their judges need; the truth as far as it is there."""
    return {name: run.table(name) for name in _TABLES if name in _NEEDED or run.has(name)}


def numbers(answer: PredictedRun) -> Iterator[tuple[str, float]]:
    """Yield a run in a line of numbers, each with its name."""
    rows = [row for row in answer.world["methods"] if row["method"] == BEST]
    errors, coverages = [row["service_error"] for row in rows], [row["coverage"] for row in rows]
    for name, values in (("error of service time", errors), ("intervals that hold", coverages)):
        known = sorted(value for value in values if math.isfinite(value))
        yield name, known[len(known) // 2] if known else math.nan


def _outside(share: float) -> str:
    return f"{share:.0%} of the mixes, as counts by type, lie outside those of the calibration"


def _notes(notes: Sequence[str]) -> Iterator[Says]:
    yield from (Says(f"  note: {note}") for note in notes)


def target_table(errors: Sequence[tuple[str, str, float]], busy: Mapping[str, float]) -> Table:
    """Return the error of service time by target and method, beside how busy the target was.

    Parameters
    ----------
    errors : method, target, error
    busy : utilisation by platform, as far as it is known
    """
    methods = list(dict.fromkeys(method for method, _, _ in errors))
    cells = {(target, method): error for method, target, error in errors}
    rows = [
        (
            target,
            _percent(busy[target]) if target in busy else "",
            *(_percent(cells.get((target, name), math.nan)) for name in methods),
        )
        for target in dict.fromkeys(target for _, target, _ in errors)
    ]
    headings = ("target", "busy", *(_HEADINGS.get(name, name) for name in methods))
    return table(headings, rows, title="median error of service time")


def _method_table(world: JudgedWorld) -> Table:
    methods, choices = pd.DataFrame(world["methods"]), {row["method"]: row for row in world["choices"]}
    rows = []
    for name, own in methods.groupby("method", sort=False):
        chose = choices[str(name)]
        values = (
            own["service_error"].median(),
            own["response_error"].median(),
            own["coverage"].mean(),
            own["half_width"].median(),
            chose["wrong"],
            chose["loss"],
        )
        rows.append((str(name), *map(_percent, values)))
    headings = ("method", "service", "response", "coverage", "±", "wrong", "loss")
    return table(headings, rows, title="medians over targets", caption=_CAPTION)


def _world_table(methods: Sequence[MethodScores]) -> Table:
    rows = [
        (
            row["method"],
            *map(_percent, (row["service_error"], row["service_error_p90"], row["response_error"])),
            _between(row),
            *map(_percent, (row["half_width"], row["wrong"], row["loss"], row["beaten"])),
        )
        for row in methods
    ]
    headings = ("method", "service", "90%", "response", "coverage", "±", "wrong", "loss", "beaten")
    return table(headings, rows, title="over all worlds and targets", caption=f"{_CAPTION}; {_OF_WORLDS}")


def _between(row: MethodScores) -> str:
    if not math.isfinite(row["coverage"]):
        return ""
    half = (row["coverage_high"] - row["coverage_low"]) / 2
    return f"{row['coverage']:.1%}" + (f" ±{100 * half:.1f}" if math.isfinite(half) else "")


def _percent(value: float) -> str:
    return f"{value:.1%}" if math.isfinite(value) else ""


def _errors(rows: Sequence[TargetErrors]) -> Figure | None:
    """Return the error of every method on every target, drawn; None without the truth."""
    errors = pd.DataFrame(rows, columns=["method", "target", "service_error"])
    if not errors["service_error"].notna().any():
        return None
    wide = errors.pivot_table(index="target", columns="method", values="service_error", sort=False).reset_index()
    methods = [name for name in errors["method"].drop_duplicates() if name in wide]
    return draw_errors(wide, methods)
