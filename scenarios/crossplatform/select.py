"""`wsc select`: which platform would serve a service with the most requests a second per watt within a bound."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis.crossplatform.choice import compare
from analysis.crossplatform.evidence import NORMAL_90
from analysis.economics import Believed, costs_of_work
from analysis.tables.cells import Source
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
from scenarios.files.prices import priced
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.economics import cost_blocks
from scenarios.views.section import Block, Says, Section, says, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FAR = 10.0
"""So many times the rate that was measured is far from it."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SelectConclusion(Conclusion):
    """Platforms by throughput per watt at a log's own mix, the best first: ``wsc select``."""

    log: AboutLog
    bound_s: float
    """On mean response time."""
    platforms: pd.DataFrame
    """rank, platform, throughput_per_s with low and high (90% interval), watts, throughput_per_watt,
    probability_best."""
    not_ranked: tuple[str, ...]
    """Platforms to which the log's instruction counts do not carry over."""
    notes: tuple[str, ...]
    costs: pd.DataFrame | None = None
    """Of what one machine of `reference` serves, as `analysis.economics.costs_of_work`; None without prices."""
    reference: str = ""

    def brief(self) -> str:
        """Return the best platform, with its throughput within the bound."""
        if not self.feasible or self.platforms.empty:
            return _none_within(self.bound_s)
        best = self.platforms.iloc[0]
        low, high = (_number(best[name]) for name in ("low", "high"))
        rate = f"{_number(best['throughput_per_s'])} requests/s ({low} to {high})"
        return f"{best['platform']} of {len(self.platforms)}: {rate} within {milliseconds(self.bound_s)}"

    def figure(self) -> "Figure":
        """Return throughput per watt of each platform, with 90% intervals."""
        from analysis.figures.crossplatform.answers import draw_choice

        return draw_choice(self.platforms.dropna(subset=["throughput_per_s"]))

    def section(self) -> Section:
        """Return platforms from the best to the worst, and what must be known to read the table."""
        headings = ("rank", "platform", "requests/s", "90%", "TDP, W", "per watt", "best")
        rows = [
            (
                str(rank),
                platform,
                _number(throughput),
                f"{_number(low)} to {_number(high)}" if math.isfinite(low + high) else "",
                f"{watts:,.0f}",
                _number(per_watt),
                f"{sure:.0%}" if math.isfinite(sure) else "",
            )
            for rank, platform, throughput, low, high, watts, per_watt, sure in self.platforms[
                list(_COLUMNS)
            ].itertuples(index=False)
        ]
        blocks: tuple[Block, ...] = (
            Says(f"{self.log}; mean response within {milliseconds(self.bound_s)}"),
            *says("" if self.feasible else _none_within(self.bound_s), mark="strong"),
            table(headings, rows, numbers=(True, False, True, True, True, True, True), keys=2),
            *(() if self.costs is None else cost_blocks(self.costs, self.reference)),
            *(Says(f"note: {note}") for note in self.notes if self.feasible or note != _none_within(self.bound_s)),
        )
        return Section("", blocks)

    @property
    def feasible(self) -> bool:
        """Whether a platform serves requests within the bound, or may do so."""
        known = self.platforms["throughput_per_s"].dropna()
        return known.empty or bool((known > 0).any())

    def payload(self) -> Payload:
        """Return kind, the log, bound_s, platforms, not_ranked and notes."""
        return {
            "kind": "select",
            **self.log.payload(),
            "bound_s": self.bound_s,
            "platforms": self.platforms.to_dict("records"),
            "not_ranked": list(self.not_ranked),
            "costs": None if self.costs is None else self.costs.to_dict("records"),
            "reference": self.reference or None,
            "notes": list(self.notes),
        }

    def frame(self) -> pd.DataFrame:
        """Return a row a platform, the best first."""
        return self.platforms.copy()


_COLUMNS = (
    "rank",
    "platform",
    "throughput_per_s",
    "low",
    "high",
    "watts",
    "throughput_per_watt",
    "probability_best",
)


def select(question: ServiceQuestion, bound_s: float, prices: Source | None = None) -> SelectConclusion:
    """Return platforms by throughput per watt within a bound on mean response time, at the log's own mix.

    Without platforms all that are known are ranked; those to which instruction counts do not carry over are left out
    unless there are no others. With prices it says what requests cost on each platform that serves any.

    Raises
    ------
    ArgumentError, FaultsError, PlatformError, RunError
        As `predict.predict`; also if the log has no response times, or is the folder of a fleet's run.
    """
    if question.is_served:
        refuse_log(
            question.log,
            "stays in a fleet have servers of their own, so no machine's throughput is known; wsc predict takes it",
        )
    fitted = calibrate(question)
    sides = fitted.evidence.platform, fitted.foreign
    others = f"{do_not_carry_over(*sides)}; {cures(*sides)}" if fitted.foreign else ""
    if not fitted.targets:
        refuse_log(question.log, others)
    log = fitted.evidence.log
    if np.isnan(log.response_time_s).all():
        refuse_log(question.log, "response times are not in the log: no throughput within a bound on them is known")
    candidates = {platform.name: platform for platform in fitted.targets}
    ranked = compare(fitted.predictor, candidates, log.counts.sum(axis=0), bound_s)
    silent = ranked["platform"][ranked["throughput_per_s"].isna()].tolist()
    notes = (
        *([f"not ranked: {others}"] if others else []),
        *fitted.notes,
        *_slowed(fitted),
        *unsaid(question, fitted, silent, "response times"),
        *_notes(ranked, rate_per_s(log), bound_s),
    )
    not_ranked = tuple(platform.name for platform in fitted.foreign)
    costs, reference = (None, "") if prices is None else _costs(ranked, fitted.evidence.calibration, prices)
    return SelectConclusion(about(fitted), bound_s, ranked, not_ranked, notes, costs, reference)


def _costs(ranked: pd.DataFrame, origin: str, prices: Source) -> tuple[pd.DataFrame | None, str]:
    """Return what requests cost on platforms that serve any, and in whose requests: the log's own, else the best's."""
    rows = ranked[ranked["throughput_per_s"] > 0].reset_index(drop=True)
    table = priced(prices, rows["platform"].tolist())
    if rows.empty:
        return None, ""
    at = int((rows["platform"] == origin).to_numpy().argmax())
    worth = rows[["throughput_per_s", "low", "high"]].to_numpy(np.float64) / rows["throughput_per_s"].iloc[at]
    usable = (worth[:, 1] > 0) & np.isfinite(worth[:, 2])
    ends = np.where(usable[:, None], worth[:, 1:], np.nan)
    sd = np.nan_to_num(np.log(ends[:, 1] / ends[:, 0]) / (2 * NORMAL_90))
    believed = Believed(tuple(rows["platform"]), worth[:, 0], ends[:, 0], ends[:, 1], np.diag(sd**2))
    reference = believed.names[at]
    return costs_of_work(table, believed, reference), reference


def _slowed(fitted: Calibrated) -> Iterator[str]:
    """Yield which platforms are held below the clock of their sheets, since their watts are not."""
    printed = fitted.evidence.scored or {}
    slow = [
        platform.name
        for platform in fitted.targets
        if platform.base_frequency_hz < printed.get(platform.name, platform).base_frequency_hz
    ]
    if slow:
        yield f"watts of {', '.join(slow)} are the TDP, which is not reached at that clock: more per watt than is said"


def _notes(table: pd.DataFrame, measured_per_s: float, bound_s: float) -> Iterator[str]:
    """Yield what must be known to read some of the throughputs."""
    idle = table["platform"][table["throughput_per_s"] == 0]
    if 0 < len(idle) == len(table["throughput_per_s"].dropna()):
        yield _none_within(bound_s)
    elif len(idle):
        yield f"{milliseconds(bound_s)} is too short even for an idle machine on {', '.join(idle)}"
    far = int((table["throughput_per_s"] > FAR * measured_per_s).sum())
    if far:
        yield (
            f"{far} of {len(table)} throughputs are more than {FAR:g} times the {measured_per_s:.3g} requests a second "
            "of the log: extrapolations, in which other tiers stay as fast as they were"
        )


def _none_within(bound_s: float) -> str:
    return f"no platform answers within {milliseconds(bound_s)}, not even an idle one: give a longer --bound"


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "any" if math.isinf(value) else "unknown"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
