"""Whether an estimator does what every estimator should: `wsc.check_estimator`."""

from dataclasses import dataclass

import pandas as pd

from analysis.effects.checks import DRAWS, FALSE_ALARM, EstimatorCheck, check
from analysis.effects.estimator import OnTables
from scenarios.effects.own import OwnEstimator, estimator_of
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.section import Says, Section, table
from scenarios.views.terminal import Progress


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EstimatorChecks(Conclusion):
    """What an estimator does right and wrong, check by check."""

    estimator: str
    checks: tuple[EstimatorCheck, ...]

    @property
    def passed(self) -> bool:
        """Whether it passes all checks."""
        return all(check.passed for check in self.checks)

    @property
    def failed(self) -> tuple[str, ...]:
        """The checks that it does not pass."""
        return tuple(check.check for check in self.checks if not check.passed)

    def brief(self) -> str:
        """Return how many checks the estimator passes."""
        passed = len(self.checks) - len(self.failed)
        return f"{self.estimator} passes {passed} of {len(self.checks)} checks"

    def section(self) -> Section:
        """Return the verdict, and a row a check."""
        rows = [("yes" if check.passed else "NO", check.check, check.found) for check in self.checks]
        chance = f"Chance fails a check that counts intervals in {FALSE_ALARM:.1%} of cases where they are right."
        shown = table(("holds", "check", "found"), rows, words=3)
        return Section("", (Says(self.brief(), "strong"), shown, Says(chance)))

    def frame(self) -> pd.DataFrame:
        """Return a row a check: check, passed, found."""
        return pd.DataFrame(self.checks)

    def payload(self) -> Payload:
        """Return the checks, and whether all passed."""
        checks = [check._asdict() for check in self.checks]
        return {"kind": "estimator_checks", "estimator": self.estimator, "passed": self.passed, "checks": checks}


def check_estimator(given: object, progress: Progress, draws: int = DRAWS) -> EstimatorChecks:
    """Return what an estimator does right and wrong.

    Parameters
    ----------
    given : an estimator, its class, a function, a name of ours, or ``mine.py:Mine``
    progress : told the share that is done
    draws : experiments of each check that counts
    """
    chosen = estimator_of(given)
    estimator = chosen if isinstance(chosen, OwnEstimator) else OnTables(chosen)
    checks = check(estimator.estimate, draws, lambda done: progress("experiments", done))
    return EstimatorChecks(chosen.name, tuple(checks))
