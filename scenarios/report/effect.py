"""The effect of a run's feature in a report: the recommended estimate, and what the guards warn of."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from models.fleet.metrics import METRICS
from models.fleet.world import Feature
from scenarios.effects.effect import EffectAnswer, effect
from scenarios.files.schema import ProfileScenario, Scenario
from scenarios.report.fleet import wsmeter_settings
from scenarios.report.subject import Subject
from scenarios.runs.rundir import Run
from scenarios.views.section import Command, Section, Verdict, says
from scenarios.views.terminal import Progress

_COMPARES: Mapping[str, str] = {
    "concurrent": "machines with the feature beside machines without it in the same periods",
    "paired": "the same machines with the feature and without it, in turn",
    "crossover": "the same machines with the feature and without it, in turn",
    "staged": "machines that have the feature beside those that do not have it yet",
    "before": "the same machines before and after, so that whatever else changed meanwhile is in it",
}
"""What an estimate compares, by its design."""


def concluded(subject: Subject, progress: Progress) -> Iterator[Section]:
    """Yield what `wsc effect` says of a run's feature, beside the truth; nothing of a run without one."""
    scenario, run = subject.scenario, subject.run
    if not isinstance(scenario, Scenario | ProfileScenario) or scenario.feature is None:
        return
    progress("estimating the effect", 0.0)
    settings = wsmeter_settings(subject)
    answer = effect([run.path], by_job=True, metric=settings.metric)
    named_jobs = answer if answer.per_job is None else replace(answer, per_job=_named(answer.per_job, run))
    yield Section(
        "The feature's effect: what experiment and guards say",
        (
            *says(*_explained(scenario.name, scenario.feature, settings.jobs, answer)),
            *named_jobs.section().blocks,
            Command(f"wsc effect {run.path} --metric {settings.metric} --per-job"),
            _verdict(scenario.feature, answer),
        ),
        answer,
    )


def _named(rows: pd.DataFrame, run: Run) -> pd.DataFrame:
    """Return what is said of jobs with their names in place of their numbers; both where two are called alike."""
    jobs = run.table("jobs", ["job", "name"])
    twice = set(jobs.loc[jobs["name"].duplicated(), "name"])
    names = {job: f"{name} ({job})" if name in twice else name for job, name in jobs.itertuples(index=False)}
    return rows.assign(job=[names.get(job, job) for job in rows["job"]])


def named(feature: Feature) -> str:
    """Return what a feature is called and what it changes."""
    changes = [f"{old} becomes {new}" for old, new in feature.platforms.items()]
    changes += [f"governor {feature.governor.policy.rpartition('/')[2]}"] if feature.governor is not None else []
    changes += [f"new code of {', '.join(software.jobs)}" for software in feature.software]
    return f"{feature.name} ({'; '.join(changes)})" if changes else feature.name


def _explained(name: str, feature: Feature, jobs: Sequence[str] | None, answer: EffectAnswer) -> Iterator[str]:
    """Yield what the feature is, what is estimated of it, and where the truth would come from if it is not there."""
    design = answer.effect.design
    of = "all jobs" if jobs is None else f"the jobs {', '.join(jobs)}"
    yield f"The feature is {named(feature)}."
    yield (
        f"What is estimated: the change of {_measured(answer)} over {of}, weighted by CPU quota, if the "
        f"whole fleet had it. What is compared: {_COMPARES.get(design, f'machines in a design called {design}')}."
    )
    if not math.isfinite(answer.true_change):
        yield (
            "The truth is not known: the run does not hold the fleet without the feature and with it everywhere; "
            f"wsc run {name} --set recording.truth=true --force simulates both."
        )


def _measured(answer: EffectAnswer) -> str:
    return "performance" if answer.metric is None else METRICS[answer.metric].words


def _verdict(feature: Feature, answer: EffectAnswer) -> Verdict:
    true = answer.true_change
    line = f"{named(feature)}, {_measured(answer)}: {answer.verdict}"
    if not math.isfinite(true):
        return Verdict("The feature", f"{line}; the truth is not known")
    holds = bool(answer.effect.low <= true <= answer.effect.high)
    line = f"{line}; the truth, {true:+.2%}, is {'inside' if holds else 'outside'}"
    return Verdict("The feature", line, holds if answer.trusted else None)
