"""Which jobs should run on which platforms: from a table or a profile, by `wsc affinity`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis.profiling.affinity.advice import Advice, Judgement, Method, Settings, advise, spent
from analysis.profiling.affinity.shrinkage import compare
from analysis.profiling.affinity.table import COUNTERS, AffinityTable, frame_of, read
from analysis.profiling.affinity.terms import Structure
from analysis.tables.cells import Source, name_of
from analysis.tables.recipe import AS_IT_IS, Recipe
from models.arrays import Floats
from models.platforms import PLATFORMS, Platform
from scenarios.files.faults import Fault, FaultsError, faults_in
from scenarios.files.own_platforms import read_platforms
from scenarios.profiling.affinity_trial import Moved, judgement
from scenarios.runs.rundir import open_run
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import amount, plural, share
from scenarios.views.section import Says, Section, says
from scenarios.views.tables import of_rows

if TYPE_CHECKING:
    import pandas as pd

_ROWS = 30
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class PlatformUse:
    """What a platform has, and what of it is used before and after, in cycles."""

    platform: str
    capacity: float
    before: float
    after: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Assignment(Conclusion):
    """The best assignment of jobs to platforms, and what it saves: the answer of ``wsc affinity``."""

    advice: Advice
    notes: list[str]
    truth: Judgement | None = None
    """Of a run with its truth: the assignment at the true CPI."""
    moved: list[Moved] = field(default_factory=list)
    """Of a judged one: what was saved when the jobs were moved in simulation."""

    def brief(self) -> str:
        """Return what the assignment saves, and how much moves."""
        return f"saving {share(self.advice.saving)} of the cycles; {share(self.moved_share, 1)} of the load moves"

    @property
    def cycles(self) -> tuple[float, float]:
        """Cycles in all, before and after."""
        return self._spent(clocked=False)

    @property
    def seconds(self) -> tuple[float, float] | None:
        """Seconds in all, before and after; none without clocks."""
        return None if self.advice.table.clock_hz is None else self._spent(clocked=True)

    def _spent(self, clocked: bool) -> tuple[float, float]:
        table, cpi = self.advice.table, self.advice.believed.cpi
        before, after = (spent(table, cpi, load, clocked=clocked) for load in (table.load, self.advice.plan.load))
        return before, after

    @property
    def use(self) -> list[PlatformUse]:
        """Capacity and use of each platform."""
        table, cpi = self.advice.table, self.advice.believed.cpi
        used = (_cycles(load, cpi).tolist() for load in (table.load, self.advice.plan.load))
        return list(map(PlatformUse, table.platforms, table.capacity.tolist(), *used))

    @property
    def moved_share(self) -> float:
        """Share of all instructions that are to be executed on another platform."""
        more = np.maximum(self.advice.plan.load - self.advice.table.load, 0.0).sum()
        return float(more / max(self.advice.table.load.sum(), 1e-300))

    def frame(self) -> pd.DataFrame:
        """Return job, platform, load: every pair with load."""
        return frame_of(self.advice.table, self.advice.plan.load)

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        advice, seconds = self.advice, self.seconds
        table, believed = advice.table, advice.believed
        payload: dict[str, object] = {
            "kind": "affinity",
            "method": advice.method,
            "total_cycles_before": self.cycles[0],
            "total_cycles_after": self.cycles[1],
            **({"total_seconds_before": seconds[0], "total_seconds_after": seconds[1]} if seconds else {}),
            "saving": advice.saving,
            "assignment": self.frame().to_dict("records"),
            "optimal": advice.plan.optimal,
            "gap": advice.plan.gap,
            "prices": dict(zip(table.platforms, advice.plan.prices[0].tolist(), strict=True)),
            "use": [asdict(platform) for platform in self.use],
            "headroom": dict(zip(table.platforms, advice.headroom.tolist(), strict=True)),
            "jobs": len(table.jobs),
            "platforms": len(table.platforms),
            "moved_share": self.moved_share,
            "predicted_pairs": believed.filled,
            "predicted_by": believed.structure.name,
            "held_out": compare(table, believed.left_out).query("cells > 0").to_dict("records")
            if believed.filled
            else [],
            "shrunk_pairs": believed.shrunk,
            "notes": self.notes,
        }
        if self.truth is not None:
            payload["truth"] = judgement(self.truth)
        return payload | {"moved": [asdict(moved) for moved in self.moved]} if self.moved else payload

    def section(self) -> Section:
        """Return what the assignment saves and where load moves."""
        plan, table = self.advice.plan, self.advice.table
        proof = "optimal, proven by duality" if plan.optimal else f"within {plan.gap:.2%} of the optimum"
        size = f"{plural(len(table.jobs), 'job')} on {plural(len(table.platforms), 'platform')}"
        true = "" if self.truth is None else f", {self.truth.saving:.2%} at the true CPI"
        before, after = map(amount, self.cycles)
        times = tuple(map(amount, self.seconds)) if self.seconds else ()
        titles = {name: f"{name} (cycles)" for name in ("capacity", "before", "after")}
        largest = self.frame().sort_values("load", ascending=False, kind="stable")
        more = f"  and {len(largest) - _ROWS:,} more with less load; --json has all" if len(largest) > _ROWS else ""
        return Section(
            "",
            (
                Says(f"{size} by {self.advice.method}: {proof}"),
                Says(f"  saving {self.advice.saving:.2%} predicted{true}; {self.moved_share:.1%} of the load moves"),
                Says(f"  total cycles {before} → {after}"),
                *says(f"  total seconds {times[0]} → {times[1]}" if times else ""),
                *(Says(f"  note: {note}") for note in self.notes),
                *self._judged(),
                of_rows(pd.DataFrame(self.use), titles),
                of_rows(largest.head(_ROWS), {"load": "load (instructions)"}),
                *says(more),
            ),
        )

    def _judged(self) -> Iterator[Says]:
        """Yield lines about the truth and the simulation, where they were asked."""
        if self.truth is not None:
            yield Says(
                f"  at the true CPI: saves {self.truth.saving:.2%} of a possible {self.truth.possible:.2%}; "
                f"{self.truth.unseen:.0%} of the possible saving rests on pairs that never ran"
            )
        for moved in self.moved:
            traffic = ", traffic kept" if moved.keeps_traffic else ""
            yield Says(
                f"  moved in simulation{traffic}: saves {moved.realised:.2%}, {moved.realised_over_promised:.0%} of "
                f"the {moved.promised:.2%} predicted; {moved.placed_share:.1%} of the moves found room"
            )


def affinity(
    source: Source,
    method: Method = "lp",
    *,
    keep_traffic: bool = False,
    judged: bool = False,
    platforms: Path | None = None,
    recipe: Recipe = AS_IT_IS,
) -> Assignment:
    """Return the best assignment of a table's, or a profile's, jobs to platforms.

    Parameters
    ----------
    source : a table with a row per job and platform, or the folder of a profiled run
    method : the exact linear programme or simulated annealing
    keep_traffic : whether no platform may get more last-level-cache misses than it has now
    judged : whether to judge it at the run's true CPI and by moving the jobs in simulation
    platforms : your own, YAML; CPIs that were not observed are predicted from spec sheets
    recipe : how the table's columns become ours

    Raises
    ------
    FaultsError
        With everything that is wrong with the table, or if the capacities are too small.
    AffinityError
        If a profile's are.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "table.csv"
    ...     _ = file.write_text("job,platform,load,cpi,capacity\\na,1,9,1,9\\na,2,0,2,9\\n")
    ...     affinity(file).frame().to_dict("records")
    [{'job': 'a', 'platform': '1', 'load': 9.0}]
    """
    settings = Settings(keep_traffic=keep_traffic)
    sheets = PLATFORMS if platforms is None else read_platforms(platforms)
    if isinstance(source, Path) and source.is_dir():
        if not recipe.takes_as_is:
            problem = "is a run's folder, whose columns are ours: --column and --where are about a table"
            raise FaultsError([Fault(str(source), 0, 0, "", problem)])
        return _of_run(source, method, settings, {**sheets_of_run(source), **sheets}, judged)
    if judged:
        raise FaultsError([Fault("--judge", 0, 0, "", "needs the folder of a profiled run", name_of(source))])
    with faults_in(source):
        advice = advise(replace(read(source, recipe), sheets=sheets), method, settings)
    return Assignment(advice, _notes(advice))


def _of_run(path: Path, method: Method, settings: Settings, sheets: Mapping[str, Platform], judged: bool) -> Assignment:
    from analysis.profiling.affinity.sampled import table_of
    from analysis.profiling.database import Database
    from scenarios.profiling import affinity_trial

    with Database([path]) as database:
        frame = table_of(database)
    advice = advise(AffinityTable.of(frame, sheets), method, settings)
    truth = affinity_trial.truth(path, frame, advice)
    moved = affinity_trial.moved(path, advice) if judged else []
    return Assignment(advice, [*_notes(advice), *_exceeded(truth)], truth, moved)


def sheets_of_run(folder: Path) -> Mapping[str, Platform]:
    """Return the spec sheets that the scenario of a run knew; the shipped ones of profiles that are no run."""
    return open_run(folder).sheets if (folder / "manifest.json").is_file() else PLATFORMS


def _exceeded(truth: Judgement | None) -> Sequence[str]:
    """Return a warning if an assignment takes more than there is at the true CPI."""
    if truth is None or truth.capacity_excess <= _ROUNDING:
        return ()
    return (f"warning: at the true CPI the assignment exceeds capacities by {truth.capacity_excess:.2%}",)


def _cycles(load: Floats, cpi: Floats) -> Floats:
    """Return (I,) cycles on each platform; pairs without load take none."""
    return np.asarray(np.where(load > 0, load * cpi, 0.0).sum(axis=0), dtype=np.float64)


def _parts(structure: Structure) -> str:
    """Return what CPI is predicted from, in words."""
    slopes = ", with slopes for how much a job waits for memory" if structure.slopes else ""
    return ("the cross-platform model" if structure.model else "job and platform") + slopes


def _notes(advice: Advice) -> list[str]:
    believed, notes = advice.believed, list[str]()
    if advice.table.clock_hz is not None:
        notes.append("CPI is divided by clock_hz: time is minimised, and capacities hold in seconds")
    if believed.filled:
        error = f"{float(np.median(believed.log_se[advice.table.unobserved])):.0%}"
        notes.append(
            f"{believed.filled} pairs have no CPI: predicted from {_parts(believed.structure)}, median error {error}"
        )
    if believed.shrunk:
        notes.append(
            f"{believed.shrunk} sampled CPIs were shrunk towards their predictions; "
            f"interactions spread by {believed.interaction_sd:.1%}"
        )
    if advice.table.unused:
        missing = ", ".join(name for name in COUNTERS if name not in advice.table.unused)
        given = ", ".join(advice.table.unused)
        notes.append(f"not used: {given}; CPIs are predicted from all {len(COUNTERS)} counters; missing: {missing}")
    if advice.headroom.any():
        notes.append("some capacity stays free, because the CPI of moved jobs is uncertain")
    if advice.keeps_traffic:
        notes.append("no platform gets more last-level-cache misses than it has now")
    if advice.raised:
        notes.append(f"capacity raised by rounding to what is used now: {', '.join(advice.raised)}")
    return notes
