"""Predicted neighbours, tried: instances are put beside others in simulation, for pairs that no prediction had seen.

Each pair is predicted from visits of which those that saw both jobs were dropped. Then instances of the one take the
place of neighbours of the other, which is compared with the same day without it, under the same random numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from analysis.profiling.questions.question import Value
from models.arrays import Bools, Floats, Ints
from models.randomness import stream
from scenarios.views.conclusion import Payload
from scenarios.views.numbers import number, share
from scenarios.views.section import Block, Says, says, table

if TYPE_CHECKING:
    from analysis.profiling.questions.corunners import CoRunners, CoRunnerSettings, JobVisits
    from sim.profiling.moving import Snapshot

Tell = Callable[[str, float], None]

_FEWEST_MACHINES = 5
_INSTANCES = 200
_MOST_DRAWS = 4
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class TriedPair:
    """A pair that was predicted without having been seen together, and then put together; on the logarithm of CPI."""

    application: str
    beside: str
    visits_dropped: int
    """Visits that had seen both, and were left out; 0: there was none."""
    predicted: float
    low: float
    high: float
    pressure_alone: float
    """What would be predicted if all jobs had the same sensitivity."""
    realised: float
    realised_se: float
    """Monte-Carlo error of what was realised, by machines."""
    machines: int
    """That the application runs on."""

    @property
    def clear(self) -> bool:
        """Whether simulation tells the realised effect from 0 (by 1.96 of its errors)."""
        return abs(self.realised) > 1.96 * self.realised_se

    @property
    def right(self) -> bool:
        """Whether prediction and simulation have the same sign."""
        return self.predicted * self.realised > 0

    def payload(self) -> Payload:
        """Return what JSON says of it."""
        return asdict(self) | {"clear": self.clear, "right": self.right}


@dataclass(frozen=True, slots=True)
class TriedPairs:
    """Held-out predictions beside what simulation says of them."""

    threads: float
    pairs: tuple[TriedPair, ...]

    @property
    def clear(self) -> list[TriedPair]:
        """Pairs whose true effect simulation tells from 0: only their sign is judged."""
        return [pair for pair in self.pairs if pair.clear]

    @property
    def right_share(self) -> float:
        """Share of clear pairs with the right sign; NaN without any."""
        clear = self.clear
        return float(np.mean([pair.right for pair in clear])) if clear else float("nan")

    @property
    def right_share_interval(self) -> tuple[float, float]:
        """95% interval of that share (Wilson 1927), as if pairs with the same newcomer were one draw; NaN without."""
        draws = len({pair.beside for pair in self.clear})
        if not draws:
            return float("nan"), float("nan")
        z = 1.96
        centre = (self.right_share + z * z / (2 * draws)) / (1 + z * z / draws)
        spread = self.right_share * (1 - self.right_share) / draws + z * z / (4 * draws * draws)
        half = z / (1 + z * z / draws) * float(np.sqrt(spread))
        return centre - half, centre + half

    @property
    def covered_share(self) -> float:
        """Share of pairs whose interval holds the truth, its Monte-Carlo error allowed for; NaN without pairs."""
        inside = [
            abs(pair.realised - pair.predicted)
            <= np.hypot(max(pair.high - pair.predicted, 0.0), 1.96 * pair.realised_se)
            for pair in self.pairs
        ]
        return float(np.mean(inside)) if inside else float("nan")

    def line(self, *, pressure_alone: bool = False) -> tuple[float, float]:
        """Return the slope of realised on predicted effects and R²; NaN with fewer than three pairs.

        Parameters
        ----------
        pressure_alone : take the prediction in which all jobs have the same sensitivity
        """
        x = np.array([pair.pressure_alone if pressure_alone else pair.predicted for pair in self.pairs])
        y = np.array([pair.realised for pair in self.pairs])
        if x.size < 3 or not x.std() * y.std() > 0:
            return float("nan"), float("nan")
        slope = float(np.cov(x, y, bias=True)[0, 1] / x.var())
        return slope, float(np.corrcoef(x, y)[0, 1] ** 2)

    def payload(self) -> Payload:
        """Return what JSON says of it."""
        slope, r_squared = self.line()
        return {
            "threads": self.threads,
            "pairs": [pair.payload() for pair in self.pairs],
            "clear": len(self.clear),
            "right_share": self.right_share,
            "right_share_low": self.right_share_interval[0],
            "right_share_high": self.right_share_interval[1],
            "slope": slope,
            "r_squared": r_squared,
            "r_squared_pressure_alone": self.line(pressure_alone=True)[1],
            "covered_share": self.covered_share,
        }


def tried_together(
    run: Path,
    visits: "JobVisits",
    settings: "CoRunnerSettings",
    pairs: int,
    tell: Tell = lambda _what, _share: None,
) -> TriedPairs:
    """Return predictions of pairs that were not seen together, beside what simulation says of them.

    Parameters
    ----------
    run : folder of a finished run of kind profile
    visits : its profile
    settings : of the prediction
    pairs : how many at most, evenly spread over the predicted effects
    tell : told what is done, and the share of it

    Raises
    ------
    FaultsError
        If the folder is no finished run of kind profile.
    """
    from scenarios.profiling.affinity_trial import world_of
    from sim.profiling.moving import Snapshot, busy_threads, instance_sums

    world = world_of(run)
    tell("simulating", 0.0)
    snapshot = Snapshot.of(world)
    busy = busy_threads(snapshot)
    predicted = _held_out(snapshot, busy, visits, settings, pairs)
    before = instance_sums(snapshot, snapshot.machine)
    results = list[TriedPair]()
    groups = sorted({pair.beside for pair in predicted})
    for at, beside in enumerate(groups, 1):
        tell("simulating", at / (len(groups) + 1))
        group = [pair for pair in predicted if pair.beside == beside]
        results += _tried(snapshot, busy, before, group, settings.threads)
    tell("simulating", 1.0)
    return TriedPairs(settings.threads, tuple(sorted(results, key=lambda pair: (-pair.predicted, pair.application))))


def judged(run: Path, parameters: Mapping[str, Value], pairs: int, tell: Tell) -> TriedPairs:
    """Return held-out predictions of a run's profile beside what simulation says of them.

    Parameters
    ----------
    run : folder of a finished run of kind profile
    parameters : of the question, those that were not given too
    pairs, tell : as in `tried_together`
    """
    from analysis.profiling.database import Database
    from analysis.profiling.questions.corunners import CoRunnerSettings, job_visits

    with Database([run]) as database:
        visits = job_visits(database)
    least = int(parameters["min_visits"]), int(parameters["min_machines"])
    return tried_together(run, visits, CoRunnerSettings(float(parameters["threads"]), *least), pairs, tell)


@dataclass(frozen=True, slots=True)
class _HeldOutPair:
    """A pair that is predicted without the visits that had seen both."""

    application: str
    beside: str
    visits_dropped: int
    predicted: float
    low: float
    high: float
    pressure_alone: float


def _held_out(
    snapshot: "Snapshot", busy: Floats, visits: "JobVisits", settings: "CoRunnerSettings", pairs: int
) -> list[_HeldOutPair]:
    """Return pairs, evenly spread over effects that all visits predict, predicted without visits of both."""
    from analysis.profiling.questions.corunners import co_runners

    present = {name: snapshot.machine[(snapshot.job == job) & (busy > 0)] for job, name in enumerate(snapshot.jobs)}
    index = {name: i for i, name in enumerate(visits.names)}
    table = co_runners(visits, settings).predicted(settings.threads).sort_values("effect", ignore_index=True)
    remaining = _visits_apart(visits)
    rows = [
        (str(a), str(b))
        for a, b in zip(table["application"], table["beside"], strict=True)
        if np.unique(present.get(str(a), ())).size >= _FEWEST_MACHINES
        and len(present.get(str(b), ()))
        and min(remaining[index[a], index[b]], remaining[index[b], index[a]]) >= settings.min_visits
    ]
    chosen = _evenly(len(rows), pairs)
    answer = list[_HeldOutPair]()
    for a, b in (rows[at] for at in chosen):
        shared = visits.shared(index[a], index[b])
        model = co_runners(visits.without(shared), settings)
        row = model.predicted(settings.threads).set_index(["application", "beside"])
        if (a, b) in row.index:
            effect, low, high, own = (float(row[name][a, b]) for name in ("effect", "low", "high", "sensitivity"))
            alone = effect / own * _common(model) if own > 0 else 0.0
            answer.append(_HeldOutPair(a, b, int(shared.size), effect, low, high, alone))
    return answer


def _evenly(count: int, most: int) -> list[int]:
    """Return at most so many numbers below a count, at even distances.

    Examples
    --------
    >>> _evenly(9, 3), _evenly(2, 3), _evenly(0, 3)
    ([0, 4, 8], [0, 1], [])
    """
    return sorted({round(at) for at in np.linspace(0, count - 1, min(count, most)).tolist()})


def _common(model: "CoRunners") -> float:
    return float(np.mean(model.sensitivity[model.enough]))


def _visits_apart(visits: "JobVisits") -> Ints:
    """Return (J, J) visits of each job on which the other was not seen."""
    number = np.unique(visits.visit, return_inverse=True)[1]
    present = np.zeros((len(visits.names), int(number.max(initial=0)) + 1), np.float32)
    present[visits.application, number] = 1.0
    own = present.sum(axis=1)
    return np.asarray(np.rint(own[:, None] - present @ present.T), np.int64)


def _tried(
    snapshot: "Snapshot",
    busy: Floats,
    before: tuple[Floats, Floats],
    group: Sequence[_HeldOutPair],
    threads: float,
) -> list[TriedPair]:
    """Return what becomes of all applications of a group, which have the newcomer in common."""
    from sim.profiling.moving import exchange, exchanged_sums

    beside = group[0].beside
    jobs = [snapshot.jobs.index(pair.application) for pair in group]
    where = [np.unique(snapshot.machine[(snapshot.job == job) & (busy > 0)]) for job in jobs]
    machines = np.unique(np.concatenate(where))
    fewest = min(int(((snapshot.job == job) & (busy > 0)).sum()) for job in jobs)
    newcomer = snapshot.jobs.index(beside)
    changes, logs, stayed = list[Floats](), list[Floats](), list[Bools]()
    for draw in range(int(np.clip(np.ceil(_INSTANCES / fewest), 1, _MOST_DRAWS))):
        rng = stream(snapshot.day.world.seed, f"exchange {beside} {draw}")
        change = exchange(snapshot, newcomer, busy, threads, machines=machines, rng=rng)
        cycles, instructions = exchanged_sums(snapshot, change, machines)
        stays = ~change.left & (cycles > 0) & (busy > 0)
        safe = [np.where(stays, values, 1.0) for values in (cycles, instructions, *before)]
        logs.append(np.log(safe[0] / safe[1] / (safe[2] / safe[3])))
        stayed.append(stays)
        changes.append(change.threads[snapshot.machine])
    rows = list[TriedPair]()
    for pair, job, on in zip(group, jobs, where, strict=True):
        keep = np.array(stayed) & (snapshot.job == job)
        weight = np.where(keep, before[0], 0.0)
        effect, error = _ratio(weight * np.array(logs), weight * np.array(changes), snapshot.machine)
        rows.append(
            TriedPair(**asdict(pair), realised=threads * effect, realised_se=threads * error, machines=int(on.size))
        )
    return rows


def _ratio(above: Floats, below: Floats, machine: Ints) -> tuple[float, float]:
    """Return the ratio of two sums over draws and instances, and its error; machines are drawn."""
    top, bottom = (np.bincount(machine, values.sum(axis=0)) for values in (above, below))
    used = bottom > 0
    count = int(used.sum())
    if count < 2:
        return float("nan"), float("nan")
    ratio = float(top.sum() / bottom.sum())
    apart = np.sum((top[used] - ratio * bottom[used]) ** 2)
    return ratio, float(np.sqrt(count / (count - 1) * apart) / bottom.sum())


def blocks(trial: TriedPairs) -> tuple[Block, ...]:
    """Return held-out predictions beside realised effects, for people."""
    if not trial.pairs:
        return (Says("no pair can be predicted without visits of both: nothing to put together"),)
    slope, r_squared = trial.line()
    clear = len(trial.clear)
    low, high = (share(bound, 1, "–") for bound in trial.right_share_interval)
    never = sum(not pair.visits_dropped for pair in trial.pairs)
    count = len(trial.pairs)
    rows = [
        (
            pair.application,
            pair.beside,
            f"{pair.predicted:+.2%}",
            f"{pair.low:+.2%} to {pair.high:+.2%}",
            f"{pair.realised:+.2%} ± {1.96 * pair.realised_se:.2%}",
        )
        for pair in (trial.pairs[at] for at in _evenly(count, _SHOWN))
    ]
    heads = ("application", "beside", "predicted", "95% interval", "realised")
    common = number(trial.line(pressure_alone=True)[1], ".2f", "–")
    return (
        Says(
            f"Put together in simulation, {count} pairs that the prediction had not seen together ({never} that never "
            f"were, {count - never} whose common visits were dropped): change of the logarithm of CPI"
        ),
        table(heads, rows, words=2, keys=2),
        *says(
            f"{len(rows)} of {count} pairs, evenly spread over the predictions" if len(rows) < count else "",
            f"right sign: {share(trial.right_share, 1, '–')} ({low} to {high}) of {clear} pairs whose effect"
            f" simulation tells from 0; {count - clear} are too small for that",
            f"R² {number(r_squared, '.2f', '–')} ({common} with one sensitivity for all), slope of realised on "
            f"predicted {number(slope, '.2f', '–')}; {share(trial.covered_share, 0, '–')} of the 95% intervals hold "
            "the truth",
        ),
    )
