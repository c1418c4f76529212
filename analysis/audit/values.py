"""Guards about single values: unusable ones, and rows that are there twice."""

import numpy as np

from analysis.audit.case import Case
from analysis.audit.findings import Finding, Severity
from analysis.audit.table import repeated, unusable, unusable_amounts
from models.arrays import Bools

_FEW = 0.01
"""Share of bad rows up to which they are worth a note only."""


def unusable_values(case: Case) -> list[Finding]:
    """Find values or weights that are no numbers, not finite, 0 or negative, and other amounts that cannot be used.

    Rows without a value are left out by whatever estimates; if it is the slow that have none, the answer is too good.
    Rows without presence, CPU time, exposure or frequency are left out, too; no guard looks at such a column.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = {"period": 1, "job": "a", "machine": [1, 2, 3], "weight": 1.0, "treated": [0, 1, 1]}
    >>> found = unusable_values(Case.of(pd.DataFrame(rows | {"value": [1.0, -2.0, 3.0]})))
    >>> found[0].severity, found[0].evidence["rows"]
    ('error', 1)
    """
    bad, amounts = unusable(case.given), unusable_amounts(case.given)
    others = np.logical_or.reduce([*amounts.values(), np.zeros(len(bad), dtype=np.bool_)])
    made = [
        *_unusable(case, bad, "no value or weight above 0", "compare only if they miss by chance in both arms"),
        *_unusable(case, others, f"no usable {', '.join(amounts)}", "or leave the columns out"),
    ]
    return sorted(made, key=lambda one: one.severity == "note")


def _unusable(case: Case, bad: Bools, lacking: str, remedy: str) -> list[Finding]:
    """Return what is to be said of rows that lack something, by how many there are in either arm."""
    if not bad.any():
        return []
    treated = case.given["treated"].to_numpy() == 1
    study = treated | case.given["period"].isin(case.table.periods[np.unique(case.table.period[case.table.study])])
    shares = [_share(bad, arm & study) for arm in (~treated, treated)]
    worst = max(float(bad.mean()), *shares)
    severity: Severity = "note" if worst <= _FEW else "error" if worst > 10 * _FEW else "warning"
    of_arms = f"{shares[1]:.1%} of the treated, {shares[0]:.1%} of others"
    count = int(bad.sum())
    what = f"{count} row{'s have' if count > 1 else ' has'} {lacking}: {of_arms}"
    evidence = {"rows": count, "share": float(bad.mean()), "treated": shares[1], "untreated": shares[0]}
    return [Finding("unusable_values", severity, what, evidence, f"find out why they are missing; {remedy}")]


def duplicated_rows(case: Case) -> list[Finding]:
    """Find rows that say again what an earlier row said; how grave that is, goes by how many rows were copied.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = {"period": 1, "job": "a", "machine": [1, 2, 2], "instance": [7, 8, 8], "weight": 1.0, "value": 2.0}
    >>> duplicated_rows(Case.of(pd.DataFrame(rows | {"treated": [0, 1, 1]})))[0].severity
    'error'
    """
    usable_rows = case.given[~unusable(case.given)]
    again = repeated(usable_rows)
    if not again.any():
        return []
    treated = usable_rows["treated"].to_numpy() == 1
    share, shares = float(again.mean()), [_share(again, arm) for arm in (~treated, treated)]
    copied = again.copy()
    copied[again] = ~repeated(usable_rows[again])
    worst = max(_share(copied, arm & ~(again & ~copied)) for arm in (~treated, treated))
    severity: Severity = "note" if worst <= _FEW else "error" if share > 5 * _FEW else "warning"
    what = f"{int(again.sum())} rows are there twice or more: {shares[1]:.1%} of the treated, {shares[0]:.1%} of others"
    evidence = {"rows": int(again.sum()), "share": share, "treated": shares[1], "untreated": shares[0]}
    evidence["copies"] = len(again) / (len(again) - int(again.sum()))
    return [Finding("duplicated_rows", severity, what, evidence, "keep each row once; mend the join that doubled them")]


def _share(flags: Bools, among: Bools) -> float:
    return float(flags[among].mean()) if among.any() else 0.0
