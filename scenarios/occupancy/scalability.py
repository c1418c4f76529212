"""What contention and coherence a log shows, beside a queue's account of the same completions."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
import pandas as pd

from analysis.occupancy.logs.log import Cleaned
from analysis.occupancy.scalability import (
    Coefficient,
    LogLikelihoodGain,
    ScalabilityLaw,
    accounts,
    deviation,
    evidence,
    scalability_law,
    state_counts,
)
from scenarios.views.conclusion import Payload
from scenarios.views.numbers import plural
from scenarios.views.section import Block, Says, table

Verdict = Literal["no law", "the servers", "either", "slower or more demand", "slower"]

_STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
"""Numbers of requests present that people see."""
_ENOUGH = 10
_CLEAR, _CLEAR_WITHIN = 7.0, 15.0
"""Log-likelihood from which an account is the better one, in the whole log and within stretches of time; on one server
demands that follow the load bring up to 12 within stretches."""


@dataclass(frozen=True, slots=True, eq=False)
class ScalabilityAnswer:
    """The Universal Scalability Law of a log, or why there is none."""

    servers: int
    law: ScalabilityLaw | None
    reason: str
    """Why there is no law; empty if there is one."""
    rates: pd.DataFrame
    """As from `analysis.occupancy.scalability.accounts`; no rows without a law."""
    law_off: float = math.nan
    """How far the completions are from the law, as a share of all."""
    queue_off: float = math.nan
    """How far they are from a queue of so many servers."""
    evidence: LogLikelihoodGain | None = None
    """How much likelier the law is than that queue; None without a law."""
    coarse: bool = False
    """Whether stamps are so coarse that most departures were put between them."""

    def payload(self) -> Payload:
        """Return what ``--json`` has."""
        law = self.law
        fitted = None if law is None else asdict(law) | {"peak": law.peak, "peak_rate_per_s": law.peak_rate_per_s}
        return {
            "law": fitted,
            "reason": self.reason,
            "law_off": self.law_off,
            "queue_off": self.queue_off,
            "verdict": self.verdict,
            "coarse_stamps": self.coarse,
            "evidence": None if self.evidence is None else asdict(self.evidence),
            "rates": self.rates.to_dict("records"),
        }

    def blocks(self) -> Iterator[Block]:
        """Yield what people read."""
        law = self.law
        if law is None:
            yield Says(f"no scalability law: {self.reason}")
            return
        yield Says(
            f"scalability: contention {_interval(law.contention)}, coherence {_interval(law.coherence)}; "
            f"one request alone completes {law.rate_per_s:.3g} times a second"
        )
        shown = self.rates[self.rates["present"].isin(_STEPS) & (self.rates["completions"] >= _ENOUGH)]
        rows = [
            (
                f"{row['present']:,}",
                f"{row['rate_per_s']:.4g} ({row['low']:.4g} to {row['high']:.4g})",
                f"{row['law_per_s']:.4g}",
                f"{row['queue_per_s']:.4g}",
            )
            for row in shown.to_dict("records")
        ]
        yield table(("present", "completions a second", "by the law", f"{plural(self.servers, 'server')}"), rows)
        yield Says(self._verdict_text(law))
        if self.coarse:
            yield Says(
                "stamps are coarse: departures were put between them, so law and verdict are not to be relied on"
            )

    @property
    def verdict(self) -> Verdict:
        """Which account is likelier, that of the law or that of the queue."""
        if self.evidence is None:
            return "no law"
        if self.evidence.whole < _CLEAR:
            return "the servers" if self.evidence.whole < -_CLEAR else "either"
        return "slower" if self.evidence.within >= _CLEAR_WITHIN else "slower or more demand"

    def _verdict_text(self, law: ScalabilityLaw) -> str:
        queue = f"a queue of {plural(self.servers, 'server')}"
        off = f"completions are {self.law_off:.1%} off this law and {self.queue_off:.1%} off {queue}"
        if self.verdict == "the servers":
            return f"these servers are the limit, and --to says what others would change: {off}"
        if self.verdict == "either":
            return f"contention and coherence may only describe servers that are all busy: {off}, both explain them"
        if self.verdict == "slower":
            return f"requests slow each other down, within stretches of time, too: {off}; {_limit(law)}"
        doubt = "requests slow each other down, or they need more when the load is high"
        return f"{doubt}: {off}, but within stretches of time both explain them"


def scalability(log: Cleaned, servers: int) -> ScalabilityAnswer:
    """Return the law that fits a log, and how far the completions are from it and from a queue of k servers.

    Parameters
    ----------
    log : requests, with pairs or without
    servers : k >= 1
    """
    counts = state_counts(log.arrival_s, log.departure_s)
    law, reason = scalability_law(counts)
    if law is None:
        return ScalabilityAnswer(servers, None, reason, pd.DataFrame())
    rates = accounts(counts, law, servers)
    law_off, queue_off = (deviation(rates, name) for name in ("law_per_s", "queue_per_s"))
    return ScalabilityAnswer(servers, law, "", rates, law_off, queue_off, evidence(counts, servers), log.coarse)


def _limit(law: ScalabilityLaw) -> str:
    """Return how many requests at a time are best, or that more always complete more."""
    if law.coherence.low > 0:
        ends = [
            math.sqrt(max(1.0 - law.contention.value, 0.0) / end) for end in (law.coherence.high, law.coherence.low)
        ]
        best = f"{law.peak:,.0f} present ({ends[0]:,.0f} to {ends[1]:,.0f}), {law.peak_rate_per_s:.3g} a second"
        return f"throughput peaks with {best}: admit about so many at a time"
    if law.contention.low > 0:
        most = law.rate_per_s / np.array([law.contention.high, law.contention.low])
        return f"no peak is shown; {most[0]:.3g} to {most[1]:.3g} a second complete at most, however many are present"
    return "neither contention nor coherence is shown: completions grow with the requests present"


def _interval(at: Coefficient) -> str:
    return f"{at.value:.3g} ({at.low:.2g} to {at.high:.2g})"
