"""A fleet cut into equivalent slots, any two of which can be compared, and their noise floor: `wsc slots`."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis.effects.noise_floor import NoiseFloor
from analysis.effects.past import Past
from analysis.effects.slots import MOST_MOVED, Cut, cut
from analysis.effects.strata import UNASSIGNED, StratifiedFleet
from analysis.tables.cells import Source, name_of
from analysis.tables.columns import BY_SELECT, Field, Remedies, read_rows
from analysis.tables.recipe import AS_IT_IS, Recipe
from models.arrays import Ints
from models.fleet.metrics import MetricName
from scenarios.effects.observations import run_metric
from scenarios.effects.recorded_past import recorded_past
from scenarios.files.faults import Fault, FaultsError, faults_in, shown
from scenarios.runs.table_files import irreplaceable, write_table
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import plural, share, small_share
from scenarios.views.section import Block, Cell, Says, Section, note_lines, table
from scenarios.views.terminal import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = ("machine", "slot")
FIELDS = (Field("machine", "text"), Field("slot", "text"))
_NAMED = 5
"""Names that a message lists."""
_MOST_GONE = 0.5
"""Share of a former cut's machines that may be gone. Beyond it the tables are of another fleet or of a part of it, and
most of the assignment would be lost."""
_FEWEST_MACHINES = 4
"""Machines of a slot from which there is a noise floor: errors of two slots of three rest on four degrees of freedom at
most, and covariates take of these."""
_LISTED = 6
"""Things that slots are balanced by, the worst of which a table shows."""


@dataclass(frozen=True, slots=True)
class SlotsQuestion:
    """How a fleet is to be cut."""

    slots: int | None = None
    """Of a former cut that many if not said."""
    previous: Source | None = None
    """A former cut: machine, slot."""
    most_moved: float = MOST_MOVED
    """Share of the machines that may change their slot for the sake of balance."""
    confidence: float = 0.95
    """Of the noise floor."""
    metrics: tuple[MetricName, ...] = ()
    """Of a run; that of its scenario if none is named."""
    seed: int = 1
    out: Path | None = None
    """File for the cut."""


@dataclass(frozen=True, slots=True, eq=False)
class MetricFloor:
    """The noise floor of one metric: of every pair of slots, how far apart they seem though nothing differs."""

    metric: MetricName | None
    """Of a run; None of tables, whose column is `value`."""
    floor: NoiseFloor
    pairs: pd.DataFrame
    """slot, other (names), difference (relative), error, half_width."""

    def payload(self) -> dict[str, object]:
        """Return it as JSON holds it."""
        low, median, high = self.half_widths
        return {
            "metric": self.metric or "value",
            "periods_before": self.floor.before,
            "periods": self.floor.study,
            "half_width": {"median": median, "low": low, "high": high},
            "difference_sd": self.difference_sd,
            "pairs": self.pairs.to_dict("records"),
        }

    @property
    def half_widths(self) -> tuple[float, float, float]:
        """The smallest, the median and the largest half-width of a pair."""
        known = self.pairs["half_width"].dropna()
        low, median, high = np.quantile(known, [0.0, 0.5, 1.0]) if len(known) else (math.nan,) * 3
        return float(low), float(median), float(high)

    @property
    def difference_sd(self) -> float:
        """Root mean square of the pairs' differences."""
        return float(np.sqrt((self.pairs["difference"] ** 2).mean()))

    def sentence(self, confidence: float) -> str:
        """Return it in words."""
        low, median, high = self.half_widths
        metric = "" if self.metric is None else f" ({self.metric})"
        periods = plural(self.floor.study, "period")
        return (
            f"noise floor{metric}: two slots without any difference are within ±{share(median)} of each other in "
            f"{confidence:.0%} of studies of {periods} after {self.floor.before}, by adjusted (pairs: ±{share(low)} to "
            f"±{share(high)}); in the table pairs differ by {share(self.difference_sd)} (root mean square)"
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SlotsAnswer(Conclusion):
    """A fleet cut into slots that are alike."""

    question: SlotsQuestion
    cut: Cut
    names: tuple[str, ...]
    """Of the slots."""
    left: int
    """Machines of the former cut that are no more in the fleet."""
    floors: tuple[MetricFloor, ...]
    no_floor: str
    """Why there is none."""
    read_notes: tuple[str, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be known of the tables and of the cut."""
        return (*self.read_notes, *([f"no noise floor: {self.no_floor}"] if self.no_floor else []))

    @property
    def slots(self) -> int:
        """How many slots there are."""
        return self.cut.slots

    def brief(self) -> str:
        """Return what was cut, and what a pair can tell apart."""
        floor = f"; noise floor of a pair ±{share(self.floors[0].half_widths[1])}" if self.floors else ""
        return f"{plural(self.slots, 'slot')} of {self._sizes()}{floor}"

    def frame(self) -> pd.DataFrame:
        """Return which machine is in which slot, as ``--out`` writes it."""
        return _assignment(self.cut, self.names)

    def pairs(self) -> pd.DataFrame:
        """Return the noise floor of every pair: metric, slot, other, difference, error, half_width."""
        parts = [floor.pairs.assign(metric=floor.metric or "value") for floor in self.floors]
        names = ["metric", "slot", "other", "difference", "error", "half_width"]
        return pd.concat(parts, ignore_index=True)[names] if parts else pd.DataFrame(columns=names)

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        moves = None
        if self.question.previous is not None:
            moves = {
                "moved": self.cut.moved,
                "fewest": self.cut.fewest,
                "share": self._moved_share,
                "newcomers": self.cut.newcomers,
                "left": self.left,
            }
        return {
            "kind": "slots",
            "slots": self.slots,
            "machines": len(self.cut.slot),
            "seed": self.question.seed,
            "confidence": self.question.confidence,
            "strata": list(self.cut.machines.strata),
            "counts": [
                {"of": kind, "apart": apart, "least": least} for kind, (apart, least) in self.cut.uneven().items()
            ],
            "balance": self.cut.imbalance().to_dict("records"),
            "moves": moves,
            "noise_floor": None if self.no_floor else [floor.payload() for floor in self.floors],
            "no_noise_floor": self.no_floor or None,
            "written": None if self.question.out is None else str(self.question.out),
            "notes": list(self.notes),
        }

    def figure(self) -> "Figure":
        """Return how much closer slots are than random ones in all that they are balanced by, and their A/A changes."""
        from analysis.figures.effects.answers import draw_slots

        floor = self.floors[0].floor if self.floors else None
        changes = pd.DataFrame() if floor is None else pd.DataFrame({"change": floor.change, "error": floor.error})
        return draw_slots(self.cut.imbalance(), changes)

    def section(self) -> Section:
        """Return what was cut, how alike slots are, and their noise floor."""
        return Section("", tuple(self._blocks()))

    def _blocks(self) -> Iterator[Block]:
        strata = len(self.cut.machines.strata)
        within = f", {strata} combinations of platform and cluster" if strata > 1 else ""
        yield Says(f"{plural(self.slots, 'slot')} of {self._sizes()}: {plural(len(self.cut.slot), 'machine')}{within}")
        yield table(("counts of slots", "differ by", "least possible"), self._counts())
        yield self._balance()
        if self.question.previous is not None:
            yield self._moves()
        for floor in self.floors:
            yield Says(floor.sentence(self.question.confidence))
        if self.question.out is not None:
            yield Says(f"Which machine is in which slot: {self.question.out}")
        yield from note_lines(self.notes)

    def _counts(self) -> list[tuple[str | Cell, ...]]:
        rows = list[tuple[str | Cell, ...]]()
        for kind, (apart, least) in self.cut.uneven().items():
            rows.append((kind, Cell(str(apart), "" if apart == least else "bad"), str(least)))
        return rows

    def _balance(self) -> Block:
        """Return the table of what slots are balanced by: the totals, and the jobs in which they are furthest apart."""
        rows = self.cut.imbalance()
        rows["ratio"] = rows["spread"] / rows["random"].where(rows["random"] > 0)
        of_job = rows["variable"].str.startswith("quota of job ")
        jobs = rows[of_job].sort_values("ratio", ascending=False, kind="stable").head(_LISTED)
        cells = [
            (
                str(row["variable"]),
                small_share(float(row["spread"])),
                small_share(float(row["random"])),
                share(float(row["ratio"]), 0, "–"),
            )
            for row in pd.concat([rows[~of_job], jobs]).to_dict("records")
        ]
        more = int(of_job.sum()) - len(jobs)
        caption = f"of jobs the worst {len(jobs)}; {plural(more, 'other job')} are closer" if more > 0 else ""
        return table(("means of slots", "sd", "sd of random slots", "ratio"), cells, caption=caption)

    def _moves(self) -> Block:
        cut = self.cut
        proven = "no even cut moves fewer" if cut.moved == cut.fewest else f"an even cut moves {cut.fewest:,} at least"
        return Says(
            f"{plural(cut.moved, 'machine')} ({share(self._moved_share)}) moved to another slot; {proven}. "
            f"{plural(cut.newcomers, 'machine')} of the tables had no slot, {self.left:,} of the former cut "
            f"{'is' if self.left == 1 else 'are'} gone."
        )

    @property
    def _moved_share(self) -> float:
        return self.cut.moved / len(self.cut.slot)

    def _sizes(self) -> str:
        size = np.bincount(self.cut.slot, minlength=self.slots)
        if size.min() == size.max():
            return plural(int(size.min()), "machine")
        return f"{size.min():,} or {plural(int(size.max()), 'machine')}"


def slots(
    sources: Sequence[Source],
    question: SlotsQuestion,
    jobs: Source | None,
    tell: Progress,
    recipe: Recipe = AS_IT_IS,
) -> SlotsAnswer:
    """Cut a fleet into slots that are alike, or mend a former cut, and tell their noise floor.

    Parameters
    ----------
    sources : tables of observations, or folders of runs; periods before anything has the feature are used
    question : how to cut it
    jobs : job, quota, instances of the whole fleet, by which the noise floor weighs jobs
    tell : told what is being done and the share done
    recipe : how columns of the tables become ours

    Raises
    ------
    FaultsError
        With everything that is wrong with the tables, the former cut or what is asked.
    """
    faults = list(_wrong(sources, question, jobs))
    if faults:
        raise FaultsError(faults)
    tell("reading", 0.0)
    pasts, notes = list[Past](), list[str]()
    metrics = question.metrics if run_metric(sources) else ()
    for metric in metrics or (None,):
        past, of_metric = recorded_past(sources, jobs, metric, recipe, least=1)
        pasts.append(past)
        notes += [note for note in of_metric if note not in notes]
    tell("cutting", 0.3)
    machines = StratifiedFleet.of(pasts[0].table)
    notes += _on_machines(machines, pasts[0])
    names, former, left = _former(question, machines)
    if len(names) > len(machines.names):
        problem = f"should be at most the {len(machines.names):,} machines of the tables"
        raise FaultsError([Fault("", 0, 0, "slots", problem, str(len(names)))])
    done = cut(machines, len(names), question.seed, former, question.most_moved)
    tell("estimating the noise floor", 0.6)
    no_floor, floors = _no_floor(pasts[0], done), list[MetricFloor]()
    if not no_floor:
        of_metrics = zip(pasts, metrics or (run_metric(sources),), strict=True)
        floors += [_floor(past, metric, done, names, question) for past, metric in of_metrics]
        if any(math.isnan(floor.half_widths[1]) for floor in floors):
            no_floor, floors = "values do not differ enough between machines for the pairs' errors", []
    if question.out is not None:
        write_table(_assignment(done, names), question.out, "out")
    tell("estimating the noise floor", 1.0)
    return SlotsAnswer(question, done, names, left, tuple(floors), no_floor, tuple(notes))


def _assignment(done: Cut, names: Sequence[str]) -> pd.DataFrame:
    """Return machine and slot."""
    return pd.DataFrame({"machine": done.machines.names, "slot": np.array(names, dtype=object)[done.slot]})


def _no_floor(past: Past, done: Cut) -> str:
    """Return why slots have no noise floor; empty if they have one."""
    size, machines = int(np.bincount(done.slot, minlength=done.slots).min()), len(done.slot)
    if len(past.periods) < 2:
        return "it needs two periods in which nothing has the feature"
    if size < _FEWEST_MACHINES:
        most = machines // _FEWEST_MACHINES
        mend = f"cut {most} slots at most" if most > 1 else f"{2 * _FEWEST_MACHINES} are needed for two slots"
        return f"{plural(size, 'machine')} a slot {'is' if size == 1 else 'are'} too few; {mend}"
    return ""


def read_slots(source: Source) -> "pd.Series[str]":
    """Return the slot of each machine of a cut, as a table says it.

    Raises
    ------
    FaultsError
        With everything that is wrong with the table; a machine may be there once only.
    """
    with faults_in(Path(name_of(source))):
        rows = read_rows(source, FIELDS, lambda _: ("machine",), remedies=Remedies(missing=BY_SELECT))
    return rows.table.set_index("machine")["slot"]


def in_order(names: Sequence[str]) -> tuple[str, ...]:
    """Return names of slots in their order: numbers by their size, before others.

    Examples
    --------
    >>> in_order(["10", "b", "2"])
    ('2', '10', 'b')
    """
    return tuple(sorted(names, key=lambda name: (not name.isdigit(), int(name) if name.isdigit() else 0, name)))


def _wrong(sources: Sequence[Source], question: SlotsQuestion, jobs: Source | None) -> Iterator[Fault]:
    """Yield what is wrong with what is asked."""
    if question.slots is None and question.previous is None:
        yield Fault("", 0, 0, "slots", "should say how many slots to cut, or previous a former cut to mend")
    read = [path for path in (*sources, jobs, question.previous) if isinstance(path, Path)]
    if question.out is not None and question.out == question.previous:
        read.remove(question.out)  # the new cut takes its place
    if question.out is not None and (problem := irreplaceable(question.out, read, COLUMNS)):
        yield Fault("", 0, 0, "out", problem)
    for source in sources:
        if isinstance(source, Path) and not source.exists():
            yield Fault(name_of(source), 0, 0, "", "is not there")


def _former(question: SlotsQuestion, machines: StratifiedFleet) -> tuple[tuple[str, ...], Ints | None, int]:
    """Return the slots' names, (M,) the slot of each machine in the former cut, and how many machines left it."""
    if question.previous is None:
        return tuple(str(number) for number in range(1, (question.slots or 0) + 1)), None, 0
    before = read_slots(question.previous)
    names = in_order(before.unique().tolist())
    if len(names) < 2:
        raise FaultsError([Fault(name_of(question.previous), 0, 0, "slot", "should name two slots at least", names[0])])
    if question.slots not in {None, len(names)}:
        problem = f"should be left out, or be the {len(names)} of {name_of(question.previous)}: slots stay as they are"
        raise FaultsError([Fault("", 0, 0, "slots", problem, str(question.slots))])
    place = {name: number for number, name in enumerate(names)}
    known = machines.names.astype(str)
    former = before.map(place).reindex(known).fillna(UNASSIGNED).to_numpy().astype(np.int64)
    gone = before.index[~before.index.isin(known)]
    if len(gone) > _MOST_GONE * len(before):
        problem = (
            f"should name machines of the tables, but {len(gone):,} of {len(before):,} are not there: is it the cut of "
            f"another fleet? If more than {_MOST_GONE:.0%} are gone, cut anew (--slots)"
        )
        first = ", ".join(shown(name) for name in gone[:_NAMED])
        raise FaultsError([Fault(name_of(question.previous), 0, 0, "machine", problem, first)])
    return names, former, len(gone)


def _on_machines(machines: StratifiedFleet, past: Past) -> Iterator[str]:
    """Yield notes on machines: which are not seen at last, or were of several kinds, and what kinds there are."""
    rows = past.table
    last = rows.loc[rows["period"] == rows["period"].max(), "machine"].nunique()
    if gone := len(machines.names) - last:
        yield f"{plural(gone, 'machine')} without a row in the last period: leave out those that are gone (--where)"
    if machines.several:
        yield f"{plural(machines.several, 'machine')} changed platform or cluster; the last one counts"
    missing = [name for name in ("platform", "cluster") if name not in rows]
    if missing:
        yield f"no column {' and no column '.join(missing)}: slots are not balanced by that"


def _floor(
    past: Past, metric: MetricName | None, done: Cut, names: Sequence[str], question: SlotsQuestion
) -> MetricFloor:
    with faults_in(Path("noise floor")):
        floor = NoiseFloor.of(past, done.machines.names, done.slot, done.machines.stratum)
    pairs = floor.pairs(question.confidence)
    of: Mapping[int, str] = dict(enumerate(names))
    return MetricFloor(metric, floor, pairs.assign(slot=pairs["slot"].map(of), other=pairs["other"].map(of)))
