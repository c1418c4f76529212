"""The effect of a run's feature in a report: the recommended estimate, and what the guards warn of."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from models.fleet.world import Feature
from models.metrics import METRICS
from scenarios.effects.effect import effect, show
from scenarios.files.schema import ProfileScenario, Scenario
from scenarios.report.fleet import asked
from scenarios.report.printed import printed
from scenarios.report.subject import Subject, composed
from scenarios.runs.rundir import Run
from scenarios.views.output import Progress
from scenarios.views.section import Section, Verdict

_COMPARES: Mapping[str, str] = {
    "concurrent": "machines with the feature beside machines without it in the same periods",
    "paired": "the same machines with the feature and without it, in turn",
    "crossover": "the same machines with the feature and without it, in turn",
    "staged": "machines that have the feature beside those that do not have it yet",
    "before": "the same machines before and after, so that whatever else changed meanwhile is in it",
}
"""What an estimate compares, by its design."""


def concluded(subject: Subject, progress: Progress) -> Iterator[Section]:
    """Yield what `wsc effect` says of a run's feature, beside the truth; nothing of a run without one.

    Examples
    --------
    >>> from scenarios.report.subject import example
    >>> list(concluded(example(), lambda what, share: None))
    []
    """
    scenario, run = subject.scenario, subject.run
    if not isinstance(scenario, Scenario | ProfileScenario) or scenario.feature is None:
        return
    progress("estimating the effect", 0.0)
    settings = asked(subject)
    metric = settings.metric if settings.jobs is None else "ips"
    payload = effect([run.path], by_job=True, metric=metric)
    told = printed(payload | {"per_job": _named(payload.get("per_job", ()), run)}, show)
    yield composed(
        "The feature's effect: what experiment and guards say",
        (*_explained(scenario.name, scenario.feature, payload), *told.says),
        told.tables,
        commands=(f"wsc effect {run.path} --metric {metric} --per-job",),
        verdicts=(_verdict(scenario.feature, payload),),
        payload=payload,
    )


def _named(rows: Sequence[Mapping[str, Any]], run: Run) -> list[Mapping[str, Any]]:
    """Return what is said of jobs with their names in place of their numbers; both where two are called alike."""
    jobs = run.table("jobs", ["job", "name"])
    twice = set(jobs.loc[jobs["name"].duplicated(), "name"])
    names = {job: f"{name} ({job})" if name in twice else name for job, name in jobs.itertuples(index=False)}
    return [{**row, "job": names.get(row["job"], row["job"])} for row in rows]


def named(feature: Feature) -> str:
    """Return what a feature is called and what it changes.

    Examples
    --------
    >>> named(Feature("hardware refresh", {"haswell_2698v3": "skylake_6148"}))
    'hardware refresh (haswell_2698v3 becomes skylake_6148)'
    """
    changes = [f"{old} becomes {new}" for old, new in feature.platforms.items()]
    changes += [f"governor {feature.governor.policy}"] if feature.governor is not None else []
    changes += [f"new code of {', '.join(each.jobs)}" for each in feature.software]
    return f"{feature.name} ({'; '.join(changes)})" if changes else feature.name


def _explained(name: str, feature: Feature, payload: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the feature is, what is estimated of it, and where the truth would come from if it is not there."""
    yield f"The feature is {named(feature)}."
    compares = _COMPARES.get(payload["design"], f"machines in a design called {payload['design']}")
    words = METRICS[payload["metric"]].words
    yield (
        f"What is estimated: the change of {words} over all jobs, weighted by CPU quota, if the whole fleet had it. "
        f"What is compared: {compares}."
    )
    if not math.isfinite(payload["truth"]["change"]):
        yield (
            "The truth is not known: the run does not hold the fleet without the feature and with it everywhere; "
            f"wsc run {name} --set recording.truth=true --force simulates both."
        )


def _verdict(feature: Feature, payload: Mapping[str, Any]) -> Verdict:
    true = payload["truth"]["change"]
    says = f"{named(feature)}, {METRICS[payload['metric']].words}: {payload['verdict']}"
    if not math.isfinite(true):
        return Verdict("The feature", f"{says}; the truth is not known")
    holds = bool(payload["low"] <= true <= payload["high"])
    told = f"{says}; the truth, {true:+.2%}, is {'inside' if holds else 'outside'}"
    return Verdict("The feature", told, holds if payload["trusted"] else None)
