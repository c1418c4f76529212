"""`wsc predict`: from the log of a service on one platform to its service and response times on others."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis.crossplatform.evidence import Prediction, ServiceLog
from analysis.crossplatform.split import halves, outside_hull
from models.platforms import Platform
from scenarios.crossplatform.calibration import (
    AboutLog,
    Calibrated,
    ServiceQuestion,
    about,
    calibrate,
    cures,
    do_not_carry_over,
    milliseconds,
    rate_per_s,
    refuse_log,
    unsaid,
)
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import listed
from scenarios.views.section import Block, Says, Section, note_lines, says, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ROUNDING = 1e-9
"""What is as close to a full machine as this is full."""
_RESPONSES = ("response_time_s", "response_low_s", "response_high_s")
_HALVINGS = 40
"""A machine that cannot carry so small a part of the volume carries nothing."""


@dataclass(frozen=True, slots=True)
class TargetTimes:
    """What is predicted of one platform; seconds, ends of 90% intervals, NaN for what a method does not say."""

    platform: str
    isa: str
    service_time_s: float
    """Of the whole machine: CPU time over logical processors."""
    service_low: float
    service_high: float
    processor_s: float
    """CPU time of a request."""
    response_time_s: float
    low: float
    high: float
    utilisation: float
    """1 of a platform that cannot carry the volume: CPU time is then that of half, a quarter, … the volume."""

    def cells(self) -> tuple[str, ...]:
        """Return a row of the table that people see."""
        scale = self.processor_s / self.service_time_s if self.service_time_s else math.nan
        return (
            self.platform,
            milliseconds(self.processor_s),
            _between(scale * self.service_low, scale * self.service_high),
            milliseconds(self.response_time_s),
            _between(self.low, self.high),
            f"{self.utilisation:.0%}" if math.isfinite(self.utilisation) else "",
        )


_DRIFTS = 0.5
"""Share of later intervals outside the range of the earlier ones from which the load is said to drift."""
_LONGER = ": the load drifts; a longer log makes predictions safer"


@dataclass(frozen=True, slots=True, repr=False)
class Predicted(Conclusion):
    """Times on other platforms for a log's own mean mix and volume: ``wsc predict``."""

    log: AboutLog
    requests_per_s: float
    outside_hull: float
    """Share of the mixes of the log's second half outside those of its first, as counts by type: how much it
    extrapolates itself."""
    targets: tuple[TargetTimes, ...]
    notes: tuple[str, ...]

    def brief(self) -> str:
        """Return the mean response time on each platform, with 90% intervals."""
        cells = [target.cells() for target in self.targets]
        return "response " + listed((f"{name} {time} ({ends})" for name, _, _, time, ends, _ in cells), 2)

    def figure(self) -> "Figure":
        """Return CPU time and response time of a request on each platform, with 90% intervals."""
        from analysis.figures.crossplatform.answers import draw_times

        times = self.frame().rename(columns={"response_time_s": "response_s"})
        processors = times["processor_s"] / times["service_time_s"]
        low, high = processors * times["service_low"], processors * times["service_high"]
        return draw_times(times.assign(processor_low=low, processor_high=high))

    def section(self) -> Section:
        """Return a table of platforms, and what must be known to read it."""
        headings = ("platform", "CPU time", "90%", "response", "90%", "busy")
        outside = (
            f"{self.outside_hull:.0%} of the later intervals have counts of requests by type outside the range of the "
            f"earlier ones{_LONGER * (self.outside_hull > _DRIFTS)}"
        )
        blocks: tuple[Block, ...] = (
            Says(f"{self.log}, {self.requests_per_s:.3g} requests a second; predicted at that mean mix and volume"),
            table(headings, [target.cells() for target in self.targets]),
            *says(outside if math.isfinite(self.outside_hull) else ""),
            *note_lines(self.notes),
        )
        return Section("", blocks)

    def payload(self) -> Payload:
        """Return kind, the log, requests_per_s, outside_hull, targets and notes."""
        return {
            "kind": "predict",
            **self.log.payload(),
            "requests_per_s": self.requests_per_s,
            "outside_hull": self.outside_hull,
            "targets": [asdict(target) for target in self.targets],
            "notes": list(self.notes),
        }

    def frame(self) -> pd.DataFrame:
        """Return a row a platform."""
        return pd.DataFrame([asdict(target) for target in self.targets])


def predict(question: ServiceQuestion) -> Predicted:
    """Return times on other platforms for the log's own mean mix and volume.

    Raises
    ------
    ArgumentError
        If a value of the question is wrong, or changes nothing.
    FaultsError
        If a file cannot be used or does not suffice for the method, with all its faults; if the method has no answer
        for a platform that was named; if the log's instruction counts do not carry over to one and nothing is said of
        how its instructions compare.
    PlatformError
        If a platform is not known.
    RunError
        If a folder is no cross-platform run, or a table of it cannot be read.
    """
    fitted = calibrate(question)
    if fitted.foreign:
        sides = fitted.evidence.platform, fitted.foreign
        refuse_log(question.log, f"{do_not_carry_over(*sides)}; {cures(*sides)}")
    log = fitted.evidence.log
    targets = tuple(_target(fitted, platform) for platform in fitted.targets)
    silent = [row.platform for row in targets if np.isnan([row.service_time_s, row.response_time_s]).all()]
    notes = (
        *fitted.notes,
        *unsaid(question, fitted, silent, "the service"),
        *_overloads(targets, rate_per_s(log)),
    )
    return Predicted(about(fitted), rate_per_s(log), _outside(log), targets, notes)


def _between(low_s: float, high_s: float) -> str:
    ends = milliseconds(low_s).removesuffix(" ms"), milliseconds(high_s)
    return " to ".join(ends) if all(ends) else ""


def _target(fitted: Calibrated, platform: Platform) -> TargetTimes:
    """Return what is predicted of the mean over the whole log, as if it were one interval: chance averages out."""
    rate = rate_per_s(fitted.evidence.log)
    predicted = _predicted(fitted, platform)
    roomy = _roomy(fitted, platform, predicted)
    carried = not predicted.service_time_s[0] * rate >= 1.0 - _ROUNDING
    service = float((predicted if carried else roomy).service_time_s[0])
    if not carried:
        predicted = replace(roomy, **dict.fromkeys(_RESPONSES, np.full(1, np.nan)))
    elif roomy is not predicted:
        predicted = replace(predicted, service_high_s=service * roomy.service_high_s / roomy.service_time_s)
    return TargetTimes(
        platform.name,
        platform.isa,
        service,
        float(predicted.service_low_s[0]),
        float(predicted.service_high_s[0]),
        service * platform.vcpus,
        float(predicted.response_time_s[0]),
        float(predicted.response_low_s[0]),
        float(predicted.response_high_s[0]),
        rate * service if carried else 1.0,
    )


def _predicted(fitted: Calibrated, platform: Platform, part: float = 1.0) -> Prediction:
    """Return what is predicted of the log's requests at its mean rate, or at a part of that."""
    log = fitted.evidence.log
    return fitted.predictor(platform, log.counts.sum(axis=0, keepdims=True), len(log.start_s) * log.interval_s / part)


def _roomy(fitted: Calibrated, platform: Platform, predicted: Prediction) -> Prediction:
    """Return what is predicted at the volume, half of it, a quarter, …: the first at which nothing is cut off.

    A method may say of a machine's service time no more than that it is full, which is not what a request needs.
    """
    rate = rate_per_s(fitted.evidence.log)
    for halving in range(1, _HALVINGS + 1):
        ends = float(predicted.service_time_s[0]), float(predicted.service_high_s[0])
        if not any(abs(end * rate - 1.0) <= _ROUNDING for end in ends):
            break
        rate /= 2
        predicted = _predicted(fitted, platform, 0.5**halving)
    return predicted


def _overloads(targets: Sequence[TargetTimes], rate: float) -> Iterator[str]:
    """Yield which platforms cannot carry the volume, and which may not."""
    full = [row.platform for row in targets if row.utilisation == 1.0]
    unsure = [row.platform for row in targets if row.service_high * rate >= 1.0 and row.platform not in full]
    if full:
        yield f"{', '.join(full)} cannot carry {rate:.3g} requests a second: CPU time is that at a volume that fits"
    if unsure:
        yield f"{', '.join(unsure)} might not carry {rate:.3g} requests a second: the high end of CPU time is too much"


def _outside(log: ServiceLog) -> float:
    """Return the share of the later half's counts outside the hull of the earlier half's; NaN of a log too short."""
    if len(log.start_s) < 2:
        return math.nan
    earlier, later = (half.counts[half.requests > 0] for half in halves(log))
    return outside_hull(earlier, later) if len(earlier) and len(later) else math.nan
