"""What a consultant is given: the 15-cent log of a service on the platforms where it runs, spec sheets, public scores.

And what is made of it: predictions for platforms where it never ran. Every method of cross-platform prediction takes an
`Evidence` and returns a `Predictor`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pandas as pd

from models.arrays import Bools, Floats
from models.platforms import Platform

NORMAL_90 = 1.6448536269514722
"""Half the width of a 90% interval of a normal variable of deviation 1."""


@dataclass(frozen=True, slots=True, eq=False)
class ServiceLog:
    """Aggregate counts of n intervals (Stewart et al. 2008, table 1): J request types, L cache levels."""

    types: tuple[str, ...]
    interval_s: float
    start_s: Floats
    """(n,) start of each interval, increasing."""
    counts: Floats
    """(n, J) requests of each type."""
    instructions: Floats
    """(n,) retired instructions."""
    misses: Floats
    """(n, L) data misses of the first, second, … cache level."""
    response_time_s: Floats
    """(n,) mean response time; NaN where no request came or nobody measured."""
    utilisation: Floats
    """(n,) busy logical processors over all, as the operating system counts; NaN where nobody counted."""

    @property
    def requests(self) -> Floats:
        """Requests of each interval, all types together: (n,)."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def service_time_s(self) -> Floats:
        """Service time of the whole machine, utilisation over arrival rate: (n,); NaN without requests or counts.

        The machine is one large virtual processor (section 4.1.3), so this is CPU time over logical processors.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.requests > 0, self.utilisation * self.interval_s / self.requests, np.nan)

    def taken(self, rows: Bools | slice) -> "ServiceLog":
        """Return the log of some of its intervals."""
        arrays = ("start_s", "counts", "instructions", "misses", "response_time_s", "utilisation")
        return replace(self, **{name: getattr(self, name)[rows] for name in arrays})


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Everything that a method may look at."""

    calibration: str
    """The platform that predictions start from; `logs` has its log."""
    logs: Mapping[str, ServiceLog]
    """Logs of the platforms where the service ran, by platform."""
    platforms: Mapping[str, Platform]
    """Spec sheets by name."""
    benchmarks: pd.DataFrame | None = None
    """Public scores, columns of the table `benchmarks`; None: there are none."""
    scored: Mapping[str, Platform] | None = None
    """Spec sheets at whose clocks public scores were measured, where `platforms` run at others; None: `platforms`."""

    @property
    def log(self) -> ServiceLog:
        """The log of the calibration platform."""
        return self.logs[self.calibration]

    def of_one(self) -> "Evidence":
        """Return what is known where the service ran on the calibration platform alone: its log, its counters."""
        table = self.benchmarks
        if table is not None:
            counted = [name for name in ("instructions", "l1_misses", "l2_misses") if name in table]
            table = table.copy()
            table.loc[table["platform"] != self.calibration, counted] = np.nan
        return replace(self, logs={self.calibration: self.log}, benchmarks=table)

    @property
    def platform(self) -> Platform:
        """The spec sheet of the calibration platform."""
        return self.platforms[self.calibration]


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """What is said of m mixes on one platform: (m,) arrays in seconds, NaN for what a method does not say.

    Lows and highs are ends of 90% intervals. Service time is that of the whole machine, utilisation over arrival rate.
    """

    service_time_s: Floats
    service_low_s: Floats
    service_high_s: Floats
    response_time_s: Floats
    response_low_s: Floats
    response_high_s: Floats


Predictor: TypeAlias = Callable[[Platform, Floats, float], Prediction]
"""From a platform, (m, J) counts of requests by type and the length of their interval in seconds to a prediction."""
Fit: TypeAlias = Callable[[Evidence], Predictor]
"""Calibrates a method; raises ValueError where the evidence does not suffice, saying what is missing."""


@dataclass(frozen=True, slots=True)
class PredictionMethod:
    """One way to predict: its name in tables, what it is in a line, and how it is calibrated."""

    name: str
    what: str
    fit: Fit
    learns: bool = False
    """Whether it learns from logs of several platforms; others go from one platform, and are shown its log alone."""
    counts_instructions: bool = True
    """Whether it takes a request to need as many instructions everywhere, which other instruction sets break."""
