"""Findings: what would make an answer false, how surely, by which numbers, and what to do about it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from scipy.stats import t

Severity = Literal["error", "warning", "note"]
_ORDER: Mapping[Severity, int] = {"error": 0, "warning": 1, "note": 2}

ALPHA = 0.002
"""Chance that one guard which tests a hypothesis alarms on a healthy table; nine do: 1.8% in all."""
MATERIAL = 0.5
"""Half-widths of the plain estimate that a shift must reach before a guard that tests a hypothesis warns of it."""
LEAST_COVERAGE = 0.925
"""Predicted coverage of a 95% interval below which a guard warns."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that would make the answer false; evidence holds plain numbers.

    Examples
    --------
    >>> finding = Finding("peeking", "warning", "14 looks at a fixed-horizon interval", {"looks": 14}, "look once")
    >>> print(finding)
    warning: peeking: 14 looks at a fixed-horizon interval
    """

    code: str
    severity: Severity
    what: str
    evidence: Mapping[str, float]
    remedy: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.code}: {self.what}"


@dataclass(frozen=True, slots=True)
class Audit:
    """All findings, the gravest first, and the codes of the guards that had what they need to be checked.

    Examples
    --------
    >>> Audit((), ("peeking",)).checked
    ('peeking',)
    """

    findings: tuple[Finding, ...]
    checked: tuple[str, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that forbid a verdict."""
        return tuple(finding for finding in self.findings if finding.severity == "error")

    def payload(self) -> Mapping[str, list[object]]:
        """Return it as JSON holds it: findings and checked."""
        return {"findings": [asdict(finding) for finding in self.findings], "checked": list(self.checked)}


def ranked(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return findings with the gravest first, otherwise in their order."""
    return tuple(sorted(findings, key=lambda finding: _ORDER[finding.severity]))


def coverage(error_share: float, freedom: float = 1e9, confidence: float = 0.95) -> float:
    """Return how often an unbiased interval covers whose standard error is only a share of the true one.

    Parameters
    ----------
    error_share : claimed standard error divided by the true one, above 0
    freedom : degrees of freedom of Student's t
    confidence : that the interval claims
    """
    half = float(t.ppf(0.5 + confidence / 2, freedom)) * error_share
    return float(1 - 2 * t.sf(half, freedom))
