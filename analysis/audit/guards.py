"""The audit: every guard put to an experiment's observations.

Nine guards test hypotheses, each at a chance of `findings.ALPHA`, so that all of them together alarm on at most
1.8% of healthy tables. The others look at what is there or was said, and do not depend on chance.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass

import pandas as pd

from analysis.audit import intervals, selection, units, windows
from analysis.audit.about import About
from analysis.audit.case import Case, Guard
from analysis.audit.findings import Finding, Severity
from analysis.effects.observations import FlaggedRows

GUARDS: Mapping[str, Guard] = {
    "unusable_values": units.unusable_values,
    "duplicated_rows": units.duplicated_rows,
    "unit_change": units.unit_change,
    "units_between_jobs": units.units_between_jobs,
    "baseline_not_concurrent": windows.baseline_not_concurrent,
    "different_windows": windows.different_windows,
    "carry_over": windows.carry_over,
    "selection_optimised": selection.selection_optimised,
    "imbalance_before": selection.imbalance_before,
    "sample_ratio": selection.sample_ratio,
    "whole_racks": intervals.whole_racks,
    "few_clusters": intervals.few_clusters,
    "heavy_tails": intervals.heavy_tails,
    "instances_independent": intervals.instances_independent,
    "finite_population": intervals.finite_population,
    "mixed_machines": intervals.mixed_machines,
    "weights_renormalised": selection.weights_renormalised,
    "missing_jobs": selection.missing_jobs,
    "churn": selection.churn,
    "ipc_across_frequencies": units.ipc_across_frequencies,
    "peeking": windows.peeking,
}
"""Guards by the code of what they find."""
AT_THE_END = frozenset({"sample_ratio", "weights_renormalised", "missing_jobs", "peeking"})
"""Guards about what only an experiment's end can say: who gets the feature, which jobs are seen, how many looks."""


_GRAVITY: Mapping[Severity, int] = {"error": 0, "warning": 1, "note": 2}


@dataclass(frozen=True, slots=True)
class Audit:
    """All findings, the gravest first, and the codes of the guards that had what they need to be checked."""

    findings: tuple[Finding, ...]
    checked: tuple[str, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that forbid a verdict."""
        return tuple(finding for finding in self.findings if finding.severity == "error")

    def payload(self) -> Mapping[str, list[object]]:
        """Return it as JSON holds it: findings and checked."""
        return {"findings": [asdict(finding) for finding in self.findings], "checked": list(self.checked)}


def examine(
    observations: pd.DataFrame | FlaggedRows,
    jobs: pd.DataFrame | None = None,
    about: About | None = None,
    *,
    without: Collection[str] = (),
) -> Audit:
    """Return what would make the answer false, and which guards had what they need.

    Parameters
    ----------
    observations : a row per instance's stay and period: period, job, machine, weight, value, treated, and perhaps
        instance, rack, platform, present_s, mean_frequency_hz (or cycles and cpu_s), file
    jobs : job, quota of the whole fleet
    about : what is said of the experiment
    without : codes of guards that are not asked

    Raises
    ------
    ObservationsError
        If the table cannot be audited: columns are missing, nothing can be used, nothing has the feature.

    Examples
    --------
    >>> rows = {"period": 1, "job": "a", "machine": range(30), "weight": 1.0, "value": 2.0, "treated": [0, 1] * 15}
    >>> report = examine(pd.DataFrame(rows), about=About(looks=14))
    >>> [str(finding) for finding in report.findings]
    ['error: peeking: 14 looks at an interval for one look: 22% false positives in place of 5%']
    >>> "peeking" in report.checked, "carry_over" in report.checked
    (True, False)
    """
    flagged = observations if isinstance(observations, FlaggedRows) else FlaggedRows.of(observations)
    case = Case.of(flagged, jobs, about)
    results = {code: guard(case) for code, guard in GUARDS.items() if code not in without}
    findings = [finding for own in results.values() for finding in own or ()]
    findings.sort(key=lambda finding: _GRAVITY[finding.severity])
    return Audit(tuple(findings), tuple(code for code, own in results.items() if own is not None))


def audit(observations: pd.DataFrame, jobs: pd.DataFrame | None = None, about: About | None = None) -> list[Finding]:
    """Return what would make the answer false, the gravest first; as `examine`."""
    return list(examine(observations, jobs, about).findings)
