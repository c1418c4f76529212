"""`one_day` with fewer machines and longer requests, for tests."""

from pathlib import Path

from scenarios.files.loader import load, settings
from scenarios.runs.execution import obtain
from scenarios.runs.rundir import Run

_SERVICE = "core_cpi: {0}, memory_accesses_per_instruction: {1}, utilisation: 0.5, open_load: true, quota_vcpu: 2.0"
_SEARCH = "{name: search, instances: 24, instructions_per_request: 4.0e+10, " + _SERVICE.format(0.85, 0.010) + "}"
_REPORT = "{name: report, instances: 16, instructions_per_request: 4.0e+10, " + _SERVICE.format(1.1, 0.006) + "}"
OVERRIDES = (
    *("fleet.machines=64", "fleet.machines_per_rack=4", "population.jobs=30", "population.common_jobs=20"),
    *("population.heavyweights=8", f"population.services=[{_SEARCH}, {_REPORT}]", "trial.machines=12"),
    *("profiling.programs.functions=12", "profiling.collector.one_in=4", "profiling.collector.samples_per_s=8.0"),
)


def small_day(out: Path) -> Run:
    """Return the run of the reduced day, in a folder of runs."""
    return obtain(load("one_day", settings(OVERRIDES)), out, False, lambda _what, _share: None)
