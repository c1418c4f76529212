"""What guards found, and notes, as people see them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from analysis.audit.findings import Finding, Severity
from scenarios.views.numbers import number
from scenarios.views.section import Mark, Says

_MARKS: Mapping[Severity, Mark] = {"error": "bad", "warning": "strong", "note": "quiet"}


def blocks(findings: Iterable[Finding], *, evidence: bool = False) -> Iterator[Says]:
    """Yield a line for each finding, its evidence if that is wanted, and what to do about it.

    Examples
    --------
    >>> for line in blocks([Finding("peeking", "warning", "14 looks", {"looks": 14}, "look once")], evidence=True):
    ...     print(line.text)
    warning peeking: 14 looks
      looks 14
      remedy: look once
    """
    for finding in findings:
        yield Says(f"{finding.severity} {finding.code}: {finding.what}", _MARKS[finding.severity])
        if evidence and finding.evidence:
            yield Says("  " + ", ".join(f"{name} {_number(value)}" for name, value in finding.evidence.items()))
        if finding.remedy:
            yield Says(f"  remedy: {finding.remedy}")


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else number(value, unknown=str(value))


def notes(lines: Sequence[str]) -> Iterator[Says]:
    """Yield a line for each note."""
    yield from (Says(f"note: {line}") for line in lines)
