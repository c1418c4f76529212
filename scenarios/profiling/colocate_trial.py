"""Who suffers beside whom, tried: instances are taken apart in simulation, and their CPI is compared."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from models.arrays import Floats
from scenarios.views.conclusion import Payload
from scenarios.views.numbers import number
from scenarios.views.section import Block, Says, table

if TYPE_CHECKING:
    import pandas as pd

    from sim.profiling.moving import Snapshot

Tell = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class Pair:
    """An application that seems to suffer beside another: the ratio of its CPI there to elsewhere, and its interval."""

    application: str
    beside: str
    ratio: float
    low: float
    high: float

    def change(self, share: float) -> tuple[float, float, float]:
        """Return the predicted change of CPI, at the ratio and its limits, if instances with this share of cycles go.

        Parameters
        ----------
        share : of all cycles that are looked at
        """
        return _change(share, self.ratio), _change(share, self.low), _change(share, self.high)


@dataclass(frozen=True, slots=True)
class TakenApart:
    """What became of CPI when the instances of a pair were taken apart; changes are shares of what it was."""

    application: str
    beside: str
    instances: int
    """Beside the other at a typical noon."""
    moved: int
    """Of these, that found room."""
    share: float
    """Of the application's cycles, of those that moved."""
    predicted: float
    """Of the application, as all below without a prefix."""
    predicted_low: float
    predicted_high: float
    realised: float
    moved_predicted: float
    """Of those that moved alone."""
    moved_realised: float
    fleet_predicted: float
    """Of the fleet, for the same instructions of each job."""
    fleet_realised: float

    def payload(self) -> Payload:
        """Return what JSON says of it."""
        return asdict(self)

    def cells(self) -> tuple[str, ...]:
        """Return its row of the table: predicted and realised changes of those that moved, and of the application."""
        pairs = ((self.moved_predicted, self.moved_realised), (self.predicted, self.realised))
        arrows = (" → ".join(number(value, "+.1%", "–") for value in pair) for pair in pairs)
        moved = f"{self.moved:,} of {self.instances:,}"
        return self.application, self.beside, moved, *arrows, f"{self.fleet_realised:+.2%}"


def suffering(answer: "pd.DataFrame") -> list[Pair]:
    """Return the pairs of an answer to `colocate` that are worth taking apart: those with a ratio above 1."""
    rows = answer[answer["ratio"] > 1.0]
    bounds = np.exp(rows["low"].to_numpy(np.float64)), np.exp(rows["high"].to_numpy(np.float64))
    return [
        Pair(str(application), str(beside), float(ratio), float(low), float(high))
        for application, beside, ratio, low, high in zip(
            rows["application"], rows["beside"], rows["ratio"], *bounds, strict=True
        )
    ]


def tried(run: Path, pairs: Sequence[Pair], tell: Tell = lambda _what, _share: None) -> list[TakenApart]:
    """Return what becomes of CPI when the instances of each pair are taken apart, one pair at a time.

    Parameters
    ----------
    run : folder of a finished run of kind profile
    pairs : candidates
    tell : told what is done, and the share of it

    Raises
    ------
    FaultsError
        If the folder is no finished run of kind profile.
    """
    from scenarios.profiling.affinity_trial import world_of
    from sim.profiling.moving import Snapshot, instance_sums

    world = world_of(run)
    if not pairs:
        return []
    tell("simulating", 0.0)
    snapshot = Snapshot.of(world)
    before = instance_sums(snapshot, snapshot.machine)
    rows = []
    for at, pair in enumerate(pairs, 1):
        tell("simulating", at / (len(pairs) + 1))
        rows.append(_tried(snapshot, before, pair))
    tell("simulating", 1.0)
    return rows


def blocks(pairs: Sequence[TakenApart]) -> tuple[Block, ...]:
    """Return predicted against realised changes of CPI, for people."""
    if not pairs:
        return (Says("no pair suffers: nothing to take apart"),)
    heads = ("application", "beside", "moved", "those moved", "application", "fleet")
    return (
        Says("Taken apart in simulation, one pair at a time: change of CPI, predicted → realised"),
        table(heads, [pair.cells() for pair in pairs], words=2, keys=2),
    )


def _tried(snapshot: "Snapshot", before: tuple[Floats, Floats], pair: Pair) -> TakenApart:
    from sim.profiling.moving import instance_sums, moved_apart, neighbours, spent_for

    job, beside = (snapshot.jobs.index(name) for name in (pair.application, pair.beside))
    machine = moved_apart(snapshot, job, beside)
    went, own = machine != snapshot.machine, snapshot.job == job
    after = instance_sums(snapshot, machine)
    share = float(before[0][went].sum() / before[0][own].sum())
    of_fleet = float(before[0][went].sum() / before[0].sum())
    predicted, low, high = pair.change(share)
    load = _by_job(snapshot, before[1])
    spent = [
        spent_for(load, _by_job(snapshot, cycles)[:, None], _by_job(snapshot, instructions)[:, None], np.ones(1))
        for cycles, instructions in (before, after)
    ]
    return TakenApart(
        application=pair.application,
        beside=pair.beside,
        instances=int(neighbours(snapshot, job, beside).size),
        moved=int(went.sum()),
        share=share,
        predicted=predicted,
        predicted_low=min(low, high),
        predicted_high=max(low, high),
        realised=_cpi(after, own) / _cpi(before, own) - 1.0,
        moved_predicted=_change(1.0, pair.ratio),
        moved_realised=_cpi(after, went) / _cpi(before, went) - 1.0 if went.any() else float("nan"),
        fleet_predicted=_change(of_fleet, pair.ratio),
        fleet_realised=spent[1] / spent[0] - 1.0,
    )


def _by_job(snapshot: "Snapshot", values: Floats) -> Floats:
    return np.bincount(snapshot.job, values, len(snapshot.jobs)).astype(np.float64)


def _cpi(sums: tuple[Floats, Floats], which: "np.ndarray") -> float:
    return float(sums[0][which].sum() / sums[1][which].sum())


def _change(share: float, ratio: float) -> float:
    """Return the change of all cycles if a share of them shrinks by a ratio."""
    return share * (1.0 / ratio - 1.0) if share > 0 else 0.0
