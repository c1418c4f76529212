"""The guard about looks: an interval for one look, looked at again and again."""

import numpy as np

from analysis.audit.case import Case
from analysis.audit.findings import Finding, Severity

_LOOKS = (1, 2, 3, 4, 5, 10, 20, 50, 100)
_FALSE = (0.05, 0.083, 0.107, 0.126, 0.142, 0.193, 0.248, 0.320, 0.374)
"""Chance of at least one false positive at equally spaced looks (Armitage, McPherson and Rowe 1969, table 2)."""
_MOST = 0.10


def peeking(case: Case) -> list[Finding] | None:
    """Find a result that was looked at several times with an interval that is made for one look.

    Examples
    --------
    >>> import pandas as pd
    >>> from analysis.audit.about import About
    >>> rows = {"period": 1, "job": "a", "machine": range(4), "weight": 1.0, "value": 2.0, "treated": [0, 1] * 2}
    >>> found = peeking(Case.of(pd.DataFrame(rows), about=About(looks=14)))
    >>> round(found[0].evidence["false_positives"], 2)
    0.22
    """
    looks = case.about.looks
    if looks is None:
        return None
    if looks == 1 or case.about.interval == "always-valid":
        return []
    chance = false_positives(looks)
    severity: Severity = "error" if chance > 2 * _MOST else "warning" if chance > _MOST else "note"
    what = f"{looks} looks at an interval for one look: {chance:.0%} false positives in place of 5%"
    remedy = "decide at the look that was planned, or use an always-valid confidence sequence"
    return [Finding("peeking", severity, what, {"looks": looks, "false_positives": chance}, remedy)]


def false_positives(looks: int) -> float:
    """Return the chance that any of so many equally spaced looks at a nominal 5% is a false positive.

    Examples
    --------
    >>> false_positives(5), round(false_positives(28), 2)
    (0.142, 0.27)
    """
    return float(np.interp(np.log(looks), np.log(_LOOKS), _FALSE))
