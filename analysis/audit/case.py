"""What a guard is given: the observations as they came and as codes, what is said of them, the plain estimates."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from analysis.audit import contrast
from analysis.audit.about import About
from analysis.audit.contrast import Contrast
from analysis.audit.findings import Finding
from analysis.audit.table import Table


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One experiment under audit.

    Examples
    --------
    >>> rows = {"period": 1, "job": "a", "machine": range(4), "weight": 1.0, "treated": [0, 0, 1, 1]}
    >>> case = Case.of(pd.DataFrame(rows | {"value": [1.0, 3.0, 2.0, 3.0]}))
    >>> case.plain.change, case.prior
    (0.25, None)
    """

    given: pd.DataFrame
    table: Table
    about: About
    plain: Contrast | None
    """Of the study: treated rows against concurrent untreated rows."""
    prior: Contrast | None
    """Of the pre-period: the same machines."""

    @classmethod
    def of(cls, given: pd.DataFrame, jobs: pd.DataFrame | None = None, about: About | None = None) -> "Case":
        """Prepare what guards look at.

        Raises
        ------
        ObservationsError
            If the table cannot be audited.
        """
        about = about or About()
        table = Table.of(given, jobs, by_rack=about.clusters == "rack")
        return cls(given, table, about, contrast.study(table), contrast.before(table))


Guard = Callable[[Case], list[Finding] | None]
"""A guard's findings; None if the case lacks what it looks at."""
