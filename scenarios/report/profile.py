"""A profiled fleet in a report: where its cycles went, how stable that was, and what its served services met."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console

from scenarios.files.schema import ProfileScenario
from scenarios.profiling.measure import measure, render
from scenarios.profiling.served import service_table, services
from scenarios.profiling.stability import show_stability, stability
from scenarios.report.figures import saved
from scenarios.report.printed import printed
from scenarios.report.subject import Subject, composed
from scenarios.views.numbers import large
from scenarios.views.output import Progress
from scenarios.views.section import Section, Verdict

_PICTURED = {
    "functions": "The hottest functions and their shares of cycles, with intervals, beside the truth",
    "rollouts": "Shares of compilers, kernels and platforms in the cycles, day by day",
}


def cycles(subject: Subject, progress: Progress) -> Iterator[Section]:
    """Yield where a profiled fleet's cycles went: hottest functions, applications' CPI, roll-outs; of no other run.

    Examples
    --------
    >>> from scenarios.report.subject import example
    >>> list(cycles(example(), lambda what, share: None))
    []
    """
    scenario, run = subject.scenario, subject.run
    if not isinstance(scenario, ProfileScenario):
        return
    payload = measure(scenario, run, run.path.parent, progress)
    told = printed(payload | {"services": []}, render)
    yield composed(
        "The profile: where the cycles go",
        told.says,
        told.tables,
        saved((file for file in payload["figures"] if scenario.days > 1 or "rollouts" not in file), _PICTURED),
        (f"wsc run {run.path}", f"wsc profile query {run.path} --by function,job", f"wsc serve {run.path}"),
        (_verdict(payload),),
        payload,
    )


def stable(subject: Subject, progress: Progress) -> Iterator[Section]:
    """Yield how stable a profile of several days is; nothing of a single day, nor of other runs.

    Examples
    --------
    >>> from scenarios.report.subject import example
    >>> list(stable(example(), lambda what, share: None))
    []
    """
    if not isinstance(subject.scenario, ProfileScenario) or subject.scenario.days < 2:
        return
    progress("comparing days", 0.0)
    payload = stability([subject.run.path])
    told = printed(payload, show_stability)
    yield composed(
        "The profile's stability",
        told.says,
        told.tables,
        commands=(f"wsc profile stability {subject.run.path}",),
        payload=payload,
    )


def served(subject: Subject, progress: Progress) -> Iterator[Section]:
    """Yield what the Occupancy Law says of services of which every request was served; nothing of a run without such.

    Examples
    --------
    >>> from scenarios.report.subject import example
    >>> list(served(example(), lambda what, share: None))
    []
    """
    progress("applying the Occupancy Law", 0.0)
    rows = services(subject.run)
    if not rows:
        return
    told = printed(rows, _show)
    says = "; ".join(map(_responds, rows))
    yield composed(
        "The requests: what the Occupancy Law says of each service",
        ("Utilisation and queueing from nothing but when requests came and went.", *_left(rows)),
        told.tables,
        verdicts=(Verdict("Requests", says),),
        payload=rows,
    )


def _responds(row: Mapping[str, Any]) -> str:
    left = f", {row['unfinished']:,} of {row['requests']:,} without a departure" if row["unfinished"] else ""
    return (
        f"{row['service']} {row['utilisation']:.1%} busy, {row['queueing_ratio']:.2f} of service time in queueing, "
        f"responds in {row['response_time_s']:.2f} s (median {row['response_median_s']:.2f} s){left}"
    )


def _left(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield how many requests had not departed, if any."""
    unfinished, requests = (sum(int(row[name]) for row in rows) for name in ("unfinished", "requests"))
    if unfinished:
        yield (
            f"{unfinished:,} of {requests:,} requests have no departure: their stay ended before they did. They count "
            "as present, and not in response times."
        )


def _show(rows: list[dict[str, Any]], console: Console) -> None:
    console.print(service_table(rows))


def _verdict(payload: Mapping[str, Any]) -> Verdict:
    seconds, hottest = payload["core_seconds"], payload["functions"][:1]
    known = [row for row in payload["functions"] if math.isfinite(row["true"])]
    held = sum(row["low"] <= row["true"] <= row["high"] for row in known)
    says = [f"hottest is {row['function']} with {row['share']:.2%} of the jobs' cycles" for row in hottest]
    says += [f"intervals of {held} of the {len(known)} hottest hold their true shares"] if known else []
    monitored = math.isfinite(seconds["monitor_s"]) and math.isfinite(seconds["low"])
    holds = bool(seconds["low"] <= seconds["monitor_s"] <= seconds["high"]) if monitored else None
    if monitored:
        says.append(
            f"core-seconds {large(seconds['core_s'])} ({large(seconds['low'])} to {large(seconds['high'])}), "
            f"by the monitor {large(seconds['monitor_s'])}"
        )
    return Verdict("The profile", "; ".join(says), holds)
