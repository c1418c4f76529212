"""The audit: every guard put to an experiment's observations.

Nine guards test hypotheses, each at a chance of `findings.ALPHA`, so that all of them together alarm on at most
1.8% of healthy tables. The others look at what is there or was said, and do not depend on chance.
"""

from collections.abc import Collection, Mapping

import pandas as pd

from analysis.audit import intervals, selection, units, windows
from analysis.audit.about import About
from analysis.audit.findings import Audit, Finding, ranked
from analysis.audit.table import Case, Guard

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


def examine(
    observations: pd.DataFrame,
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
    case = Case.of(observations, jobs, about)
    results = {code: guard(case) for code, guard in GUARDS.items() if code not in without}
    findings_ = [finding for findings in results.values() for finding in findings or ()]
    return Audit(ranked(findings_), tuple(code for code, findings in results.items() if findings is not None))


def audit(observations: pd.DataFrame, jobs: pd.DataFrame | None = None, about: About | None = None) -> list[Finding]:
    """Return what would make the answer false, the gravest first; as `examine`."""
    return list(examine(observations, jobs, about).findings)
