"""Findings: what would make an answer false, how surely, by which numbers, and what to do about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["error", "warning", "note"]

ALPHA = 0.002
"""Chance that a guard which tests a hypothesis alarms on a healthy table; fourteen do, one at twice that: 3.0%."""
MATERIAL = 0.5
"""Half-widths of the plain estimate that a shift must reach before a guard that tests a hypothesis warns of it."""
LEAST_COVERAGE = 0.925
"""Predicted coverage of a 95% interval below which a guard warns."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that would make the answer false: its code, how grave it is, in words, by which numbers, what to do.

    Examples
    --------
    >>> finding = Finding("peeking", "warning", "14 looks at a fixed-horizon interval", {"looks": 14}, "look once")
    >>> print(finding)
    warning: peeking: 14 looks at a fixed-horizon interval
    """

    code: str
    severity: Severity
    what: str
    evidence: Mapping[str, float] = field(default_factory=dict)
    """Plain numbers by what they are."""
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.severity}: {self.code}: {self.what}"
