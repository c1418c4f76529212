"""The effect of a run's feature in a report: the recommended estimate, and what the guards warn of."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scenarios.effect import effect, show
from scenarios.output import Progress
from scenarios.report.fleet import asked
from scenarios.report.printed import printed
from scenarios.report.section import Section, Subject, Verdict
from scenarios.rundir import Run
from scenarios.schema import ProfileScenario, Scenario


def concluded(subject: Subject, progress: Progress) -> Iterator[Section]:
    """Yield what `wsc effect` says of a run's feature, beside the truth; nothing of a run without one.

    Examples
    --------
    >>> from scenarios.report.section import example
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
    yield Section(
        "The feature's effect: what experiment and guards say",
        told.says,
        told.tables,
        commands=(f"wsc effect {run.path} --metric {metric} --per-job",),
        verdicts=(_verdict(payload, payload["truth"]["change"]),),
        payload=payload,
    )


def _named(rows: Sequence[Mapping[str, Any]], run: Run) -> list[Mapping[str, Any]]:
    """Return what is said of jobs with their names in place of their numbers; both where two are called alike."""
    jobs = run.table("jobs", ["job", "name"])
    twice = set(jobs.loc[jobs["name"].duplicated(), "name"])
    names = {job: f"{name} ({job})" if name in twice else name for job, name in jobs.itertuples(index=False)}
    return [{**row, "job": names.get(row["job"], row["job"])} for row in rows]


def _verdict(payload: Mapping[str, Any], true: float) -> Verdict:
    says = payload["verdict"]
    if not math.isfinite(true):
        return Verdict("The feature", says)
    holds = bool(payload["low"] <= true <= payload["high"])
    told = f"{says}; the truth, {true:+.2%}, is {'inside' if holds else 'outside'}"
    return Verdict("The feature", told, holds if payload["trusted"] else None)
