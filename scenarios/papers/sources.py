"""What rows of papers are made from: runs obtained once, fleets cut in halves, judged worlds, studies by simulation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

import pandas as pd

from analysis.figures.wsmeter.draws import Halves
from models.errors import InputError
from models.fleet.metrics import MetricName
from scenarios.files.schema import WSMeter
from scenarios.runs.rundir import Run
from scenarios.views.terminal import Progress
from scenarios.wsmeter.measurements import halves_of, run_measurements

Kept: TypeAlias = dict[str, Any]
"""What a study keeps in a file, read back."""
Obtain = Callable[[str, Mapping[str, object], Progress], Run]
"""From scenario, overrides and progress to the run, found or simulated."""
Judge = Callable[[str, Mapping[str, object], Progress], list[Kept]]
"""From scenario, overrides and progress to its worlds, as `crossplatform.trial.judge` judges each; of a profiled
fleet, to what `profiling.validate.validate` says."""
Trial = Callable[..., Kept]
"""From progress, and what else is asked by name, to what a study by simulation says."""
_T = TypeVar("_T")


OBSERVED: Final[Mapping[str, object]] = {"recording.truth": False, "recording.loop": None}
"""What a recorded fleet is without where its tables are all that is looked at: its counterfactual twins and the rounds
of the roll-out loop. Neither changes a table."""


def no_worlds(scenario: str, _overrides: Mapping[str, object], _progress: Progress) -> list[Kept]:
    """Be the `Judge` of those who have no worlds: refuse."""
    raise InputError(f"{scenario}: its worlds are not to be had here")


@dataclass(frozen=True, slots=True, eq=False)
class Sources:
    """Runs by scenario, each obtained and measured once."""

    obtain: Obtain
    progress: Progress
    judge: Judge = no_worlds
    trials: Mapping[str, Trial] = field(default_factory=dict)
    """Studies by simulation, by name."""
    world: int = 1
    """Seed of every run whose seed is not said."""
    changed: Mapping[str, object] = field(default_factory=dict)
    """What every run is with or without, such as a cause that is removed; what is said of a run goes before."""
    cache: dict[tuple[object, ...], Any] = field(default_factory=dict)

    def _once(self, make: Callable[[], _T], *key: object, **overrides: object) -> _T:
        """Return what was made before under this key, or make it."""
        whole = (*key, *sorted(overrides.items()))
        if whole not in self.cache:
            self.cache[whole] = make()
        answer: _T = self.cache[whole]
        return answer

    def run(self, scenario: str, **overrides: object) -> Run:
        """Return the run of a scenario of the library, found or simulated."""
        values = {"seed": self.world, **self.changed, **overrides}
        return self._once(lambda: self.obtain(scenario, values, self.progress), scenario, **values)

    def worlds(self, scenario: str, count: int, **overrides: object) -> list[Kept]:
        """Return many worlds of a cross-platform scenario, each judged as `crossplatform.trial.judge` does."""
        values = {"analyses.crossplatform.worlds": count, **overrides}
        return self._once(lambda: self.judge(scenario, values, self.progress), "worlds", scenario, count, **overrides)

    def trial(self, name: str, **options: object) -> Kept:
        """Return what a study by simulation says; refuse one that is not to be had here."""
        if name not in self.trials:
            raise InputError(f"{name}: it is not to be had here")
        return self._once(lambda: self.trials[name](progress=self.progress, **options), "trial", name, **options)

    def collectors(self, scenario: str, draws: int, **overrides: object) -> Kept:
        """Return how right many collectors of one profiled fleet were, as `profiling.validate.summary` says it."""
        values = {"analyses.profiling.draws": draws, **overrides}
        judged = self._once(
            lambda: self.judge(scenario, values, self.progress), "collectors", scenario, draws, **overrides
        )
        return judged[0]

    def fleet(self, scenario: str, metric: MetricName, **overrides: object) -> Halves:
        """Return a whole recorded fleet as `current`, whatever has the feature; `new` is empty."""
        run = self.run(scenario, **OBSERVED, **overrides)
        whole = run_measurements(run, WSMeter(metric=metric))
        return Halves(whole, whole.iloc[:0], _jobs(run))

    def halves(self, scenario: str, metric: MetricName, **overrides: object) -> Halves:
        """Return the halves of a recorded fleet without and with the feature."""

        def cut() -> Halves:
            whole = self.fleet(scenario, metric, **overrides)
            return Halves(*halves_of(whole.current), whole.jobs)

        return self._once(cut, "halves", scenario, metric, **overrides)


def _jobs(run: Run) -> pd.DataFrame:
    jobs = run.table("jobs", ["job", "name", "quota_vcpu", "instances"])
    return jobs.rename(columns={"quota_vcpu": "quota"})
