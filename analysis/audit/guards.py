"""The guards of an experiment, by the code of what they find.

Fourteen guards test hypotheses, each at a chance of `findings.ALPHA` (one warns at twice that), so that all of them
together alarm on at most 3.0% of healthy tables. The others look at what is there or was said, and do not depend on
chance.
"""

from collections.abc import Mapping

from analysis.audit import arms, clocks, contamination, early_feature, intervals, recorded_feature, sample_ratio, units
from analysis.audit.case import Guard

GUARDS: Mapping[str, Guard] = {
    "unusable_values": units.unusable_values,
    "duplicated_rows": units.duplicated_rows,
    "frozen_values": units.frozen_values,
    "unit_change": units.unit_change,
    "units_between_jobs": units.units_between_jobs,
    "baseline_not_concurrent": arms.baseline_not_concurrent,
    "different_windows": arms.different_windows,
    "carry_over": arms.carry_over,
    "selection_optimised": arms.selection_optimised,
    "imbalance_before": arms.imbalance_before,
    "early_feature": early_feature.early_feature,
    "contaminated_controls": contamination.contaminated_controls,
    "shifted_clocks": clocks.shifted_clocks,
    "sample_ratio": sample_ratio.sample_ratio,
    "whole_racks": intervals.whole_racks,
    "few_clusters": intervals.few_clusters,
    "heavy_tails": intervals.heavy_tails,
    "instances_independent": intervals.instances_independent,
    "finite_population": intervals.finite_population,
    "mixed_machines": arms.mixed_machines,
    "spill_over": recorded_feature.spill_over,
    "weights_renormalised": intervals.weights_renormalised,
    "missing_jobs": intervals.missing_jobs,
    "churn": arms.churn,
    "vanished_machines": recorded_feature.vanished_machines,
    "ipc_across_frequencies": units.ipc_across_frequencies,
    "peeking": intervals.peeking,
}
"""Guards by the code of what they find."""
AT_THE_END = frozenset({"sample_ratio", "weights_renormalised", "missing_jobs", "peeking"})
"""Guards about what only an experiment's end can say: who gets the feature, which jobs are seen, how many looks."""
OF_RATES = frozenset({"unit_change", "units_between_jobs", "weights_renormalised"})
"""Guards that compare levels of jobs by their ratio, which have none where values need not be positive."""
OF_MEANS = frozenset({"heavy_tails"})
"""Guards of what makes a mean's interval false."""
