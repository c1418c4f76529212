"""The effect of a run's feature in a report: the recommended estimate, and what the guards warn of."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from scenarios.effect import effect, show
from scenarios.output import Progress
from scenarios.report.fleet import asked
from scenarios.report.printed import printed
from scenarios.report.section import Section, Subject, Verdict
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
    told = printed(payload, show)
    yield Section(
        "The feature's effect: what experiment and guards say",
        told.says,
        told.tables,
        commands=(f"wsc effect {run.path} --metric {metric} --per-job",),
        verdicts=(_verdict(payload, payload["truth"]["change"]),),
        payload=payload,
    )


def _verdict(payload: Mapping[str, Any], true: float) -> Verdict:
    worst = [one for one in payload["findings"] if one["severity"] == "error"]
    warned = f"not to be trusted ({', '.join(one['code'] for one in worst)}): " if worst else ""
    says = f"{warned}{payload['verdict']}"
    if not math.isfinite(true):
        return Verdict("The feature", says)
    holds = bool(payload["low"] <= true <= payload["high"])
    return Verdict("The feature", f"{says}; the truth, {true:+.2%}, is {'inside' if holds else 'outside'}", holds)
