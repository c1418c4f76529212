"""Who suffers beside whom, tried: instances are taken apart in simulation, and their CPI is compared."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from models.arrays import Floats
from scenarios.profiling.affinity_trial import world_of

if TYPE_CHECKING:
    from rich.console import Console

    from sim.profiling.moving import Snapshot

Tell = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class Pair:
    """An application that seems to suffer beside another: the ratio of its CPI there to elsewhere, and its interval.

    Examples
    --------
    >>> Pair("search", "mail", 1.25, 1.0, 1.5).change(share=0.5)
    (-0.09999999999999998, 0.0, -0.16666666666666669)
    """

    application: str
    beside: str
    ratio: float
    low: float
    high: float

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Pair":
        """Return the pair of a row of the question `colocate`.

        Examples
        --------
        >>> Pair.of({"application": "a", "beside": "b", "ratio": 1.5, "low": 0.0, "high": 1.0}).low
        1.0
        """
        low, high = (float(np.exp(row[name])) for name in ("low", "high"))
        return cls(str(row["application"]), str(row["beside"]), float(row["ratio"]), low, high)

    def change(self, share: float) -> tuple[float, float, float]:
        """Return the predicted change of CPI, at the ratio and its limits, if instances with this share of cycles go.

        Parameters
        ----------
        share : of all cycles that are looked at
        """
        return _change(share, self.ratio), _change(share, self.low), _change(share, self.high)


def suffering(rows: Sequence[Mapping[str, Any]]) -> list[Pair]:
    """Return the pairs of an answer to `colocate` that are worth taking apart: those with a ratio above 1.

    Examples
    --------
    >>> suffering([{"application": "a", "beside": "b", "ratio": 0.9, "low": -0.2, "high": 0.0}])
    []
    """
    return [Pair.of(row) for row in rows if row["ratio"] > 1.0]


def tried(run: Path, pairs: Sequence[Pair], tell: Tell = lambda _what, _share: None) -> list[dict[str, Any]]:
    """Return what becomes of CPI when the instances of each pair are taken apart, one pair at a time.

    Parameters
    ----------
    run : folder of a finished run of kind profile
    pairs : candidates
    tell : told what is done, and the share of it

    Returns
    -------
    list of dict
        application, beside; instances (beside the other at a typical noon), moved (of these, that found room),
        share (of the application's cycles, of those that moved); changes of the CPI of the application, shares of what
        it was: predicted, predicted_low, predicted_high, realised; of those that moved alone: moved_predicted,
        moved_realised; of the fleet for the same instructions of each job: fleet_predicted, fleet_realised.

    Raises
    ------
    FaultsError
        If the folder is no finished run of kind profile.
    """
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


def show(rows: Sequence[Mapping[str, Any]], console: "Console") -> None:
    """Print predicted against realised changes of CPI.

    Examples
    --------
    >>> from rich.console import Console
    >>> show([], Console())
    no pair suffers: nothing to take apart
    """
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    if not rows:
        console.print("no pair suffers: nothing to take apart")
        return
    console.print("Taken apart in simulation, one pair at a time: change of CPI, predicted → realised", soft_wrap=True)
    table = Table("application", "beside", box=SIMPLE_HEAD, padding=0)
    for name in ("moved", "those moved", "application", "fleet"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        moved = f"{row['moved']:,} of {row['instances']:,}"
        fleet = f"{row['fleet_realised']:+.2%}"
        table.add_row(*map(escape, (row["application"], row["beside"])), moved, *_arrows(row), fleet)
    console.print(table)


def _arrows(row: Mapping[str, Any]) -> list[str]:
    """Return predicted and realised changes of those that moved, and of the application."""
    pairs = [[row[f"{prefix}{name}"] for name in ("predicted", "realised")] for prefix in ("moved_", "")]
    return [" → ".join("–" if np.isnan(value) else f"{value:+.1%}" for value in pair) for pair in pairs]


def _tried(snapshot: "Snapshot", before: tuple[Floats, Floats], pair: Pair) -> dict[str, Any]:
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
    return {
        "application": pair.application,
        "beside": pair.beside,
        "instances": int(neighbours(snapshot, job, beside).size),
        "moved": int(went.sum()),
        "share": share,
        "predicted": predicted,
        "predicted_low": min(low, high),
        "predicted_high": max(low, high),
        "realised": _cpi(after, own) / _cpi(before, own) - 1.0,
        "moved_predicted": _change(1.0, pair.ratio),
        "moved_realised": _cpi(after, went) / _cpi(before, went) - 1.0 if went.any() else float("nan"),
        "fleet_predicted": _change(of_fleet, pair.ratio),
        "fleet_realised": spent[1] / spent[0] - 1.0,
    }


def _by_job(snapshot: "Snapshot", values: Floats) -> Floats:
    return np.bincount(snapshot.job, values, len(snapshot.jobs)).astype(np.float64)


def _cpi(sums: tuple[Floats, Floats], which: "np.ndarray") -> float:
    return float(sums[0][which].sum() / sums[1][which].sum())


def _change(share: float, ratio: float) -> float:
    """Return the change of all cycles if a share of them shrinks by a ratio."""
    return share * (1.0 / ratio - 1.0) if share > 0 else 0.0
