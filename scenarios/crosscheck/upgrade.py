"""New processors on trial: the prediction from the old machines beside WSMeter's estimate and the truth."""

from collections.abc import Iterator, Mapping

import pandas as pd

from analysis.crosscheck.check import Check
from analysis.crosscheck.upgrade import Change, agree, covered, known, predicted, tried
from analysis.crossplatform.methods import METHODS
from scenarios.runs.rundir import Run
from scenarios.runs.stays import logged

METHOD = "testbed"
"""The way to predict: the one that says how sure it is."""
_TRUTH = ("truth_trial_nowhere_counters", "truth_trial_everywhere_counters")


def checks(run: Run) -> Iterator[Check]:
    """Yield the checks of a run's trial of new processors: for the fleet, and for each service that is served.

    Without the ``truth_`` tables only prediction and estimate are compared.

    Parameters
    ----------
    run : a finished run
    """
    for old, new in _tried(run).items():
        tables = {name: run.table(name) for name in ("counters", "instances", "jobs")}
        instances = tables["instances"]
        tables["instances"] = instances[instances["platform"].isin([old, new])].reset_index(drop=True)
        tables["jobs"] = tables["jobs"].rename(columns={"quota_vcpu": "quota"})
        on_trial = covered(tables["counters"], tables["instances"], tables["jobs"], old, new)
        estimate, true = _estimate(tables, old, new), _true(run, {**tables, "jobs": on_trial})
        if estimate is not None and true is not None:
            yield agree("upgrade_wsmeter", estimate, true)
        for name, job in _served(run, tables["jobs"]).items():
            yield from _of_service(run, tables, (old, new), (name, job))


def _tried(run: Run) -> Mapping[str, str]:
    """Return what replaces which platform on trial; nothing in a run without a trial, or without its tables."""
    resolved = run.manifest.get("resolved")
    trial = resolved.get("trial") if isinstance(resolved, Mapping) else None
    complete = all(run.has(name) for name in ("counters", "instances", "jobs"))
    return dict(trial["platforms"]) if trial and complete else {}


def _served(run: Run, jobs: pd.DataFrame) -> dict[str, int]:
    """Return the numbers of the services that are served, by name."""
    if not (run.has("stay_requests") and run.has("instance_epochs") and run.has("samples")):
        return {}
    names = [str(service["job"]) for service in run.manifest["resolved"]["served"]]
    number = jobs.set_index("name")["job"]
    return {name: int(number[name]) for name in names}


def _of_service(
    run: Run, tables: Mapping[str, pd.DataFrame], platforms: tuple[str, str], service: tuple[str, int]
) -> Iterator[Check]:
    """Yield the checks of one service."""
    name, job = service
    instances = tables["instances"]
    own = {**tables, "instances": instances[instances["job"] == job].reset_index(drop=True)}
    prediction = _prediction(run, own["instances"], platforms, name)
    estimate, true = _estimate(own, *platforms), _true(run, own)
    if prediction is not None and true is not None:
        yield agree(f"upgrade_predicted:{name}", prediction, true)
    if prediction is not None and estimate is not None:
        yield agree(f"upgrade_tried:{name}", prediction, estimate)


def _estimate(tables: Mapping[str, pd.DataFrame], old: str, new: str) -> Change | None:
    instances = tables["instances"]
    counters = tables["counters"][tables["counters"]["residence"].isin(instances["residence"])]
    return None if counters.empty else tried(counters, instances, tables["jobs"], old, new)


def _true(run: Run, tables: Mapping[str, pd.DataFrame]) -> Change | None:
    """Return the true change of the stays that count; None without the truth, or such stays."""
    if not all(run.has(name) for name in _TRUTH):
        return None
    stays = tables["instances"]["residence"]
    before, after = (part[part["residence"].isin(stays)] for part in (run.table(name) for name in _TRUTH))
    return None if before.empty or after.empty else known(before, after, tables["instances"], tables["jobs"])


def _prediction(run: Run, instances: pd.DataFrame, platforms: tuple[str, str], name: str) -> Change | None:
    """Return what is predicted of a service from its stays on the old platform; None if it has none there."""
    old, new = (run.sheets[side] for side in platforms)
    stays = instances.loc[instances["platform"] == old.name, "residence"]
    log = logged(run, pd.Index(stays), old, name)
    if log is None:
        return None
    return predicted(log, old, new, next(method for method in METHODS if method.name == METHOD))
