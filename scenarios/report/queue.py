"""A request server's hours in a report: the operational laws beside what the servers did, and its course."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from models.queues.world import Contention
from scenarios.files.schema import QueueScenario
from scenarios.occupancy.measure import measure, render
from scenarios.occupancy.text import show_occupancy
from scenarios.report.figures import saved
from scenarios.report.printed import printed
from scenarios.report.subject import Subject, composed
from scenarios.views.output import Progress
from scenarios.views.section import Section, Table, Verdict, table

_PICTURED = {
    "occupancy": "Requests present over time, split into those in service and those that wait, and utilisation",
    "utilisation": "Utilisation by the Occupancy Law beside what the counter sampled, interval by interval",
}
_COURSE_MOST = 24


def laws(subject: Subject, progress: Progress) -> Iterator[Section]:
    """Yield what the laws say of a queue's log beside the truth, and what its hours were like; nothing of other runs.

    Raises
    ------
    RunError
        If the log, the servers' counters or a column of them is not there.

    Examples
    --------
    >>> from scenarios.report.subject import example
    >>> next(laws(example(), lambda what, share: None))
    Traceback (most recent call last):
    scenarios.runs.rundir.RunError: runs/rush: no table requests; there are none
    """
    scenario, run = subject.scenario, subject.run
    if not isinstance(scenario, QueueScenario):
        return
    payload = measure(scenario, run, run.path.parent, progress)
    told, figures = printed(payload, render), saved(payload["figures"], _PICTURED)
    said = payload["occupancy"]
    servers = scenario.station.servers
    asked = f"wsc occupancy {run.path} --servers {servers}"
    again = printed({"origin_s": 0.0, "findings": [], **said, "notes": [], "capacity": []}, show_occupancy)
    rows = course(said["intervals"])
    yield composed("What happened", again.says, (*again.tables, *rows), figures[:1], (asked,), payload=said)
    yield composed(
        "The Occupancy Law beside the truth",
        told.says,
        told.tables,
        figures[1:],
        (f"wsc run {run.path}",),
        (_verdict(payload, lawful=scenario.contention == Contention()),),
        payload,
    )


def course(intervals: list[dict[str, Any]]) -> tuple[Table, ...]:
    """Return how busy a server was over time, a row for every so many intervals; no table of a single one.

    Sums of the intervals that a row takes together; utilisation is their mean, weighed by their lengths.

    Parameters
    ----------
    intervals : of what `wsc occupancy` says: start_s, end_s, utilisation, service_time_s, queueing_time_s, peak

    Examples
    --------
    >>> one = {"start_s": 0.0, "end_s": 60.0, "utilisation": 0.5, "service_time_s": 60.0, "queueing_time_s": 30.0}
    >>> made = course([one | {"peak": 3}, one | {"start_s": 60.0, "end_s": 120.0, "utilisation": 0.7, "peak": 9}])
    >>> [cell.text for cell in made[0].rows[1]]
    ['1.0', '70.0%', '60.0', '30.0', '9']
    """
    if len(intervals) < 2:
        return ()
    step = -(-len(intervals) // _COURSE_MOST)
    rows = list[tuple[str, ...]]()
    for at in range(0, len(intervals), step):
        part = intervals[at : at + step]
        length_s = math.fsum(one["end_s"] - one["start_s"] for one in part)
        busy_s = math.fsum(one["utilisation"] * (one["end_s"] - one["start_s"]) for one in part)
        sums = (math.fsum(one[name] for one in part) for name in ("service_time_s", "queueing_time_s"))
        share = f"{busy_s / length_s:.1%}" if length_s > 0 and math.isfinite(busy_s) else ""
        minutes = f"{part[0]['start_s'] / 60.0:,.1f}"
        rows.append((minutes, share, *(f"{total:,.1f}" for total in sums), f"{max(one['peak'] for one in part):,}"))
    heads = ("from, min", "busy", "service, s", "queueing, s", "most present")
    return (table(heads, rows, title="the course", words=0),)


def _verdict(payload: Mapping[str, Any], *, lawful: bool) -> Verdict:
    said, true, off = payload["occupancy"], payload["truth"], payload["errors"]
    says = f"{said['utilisation']:.2%} busy by the law"
    if not math.isfinite(true["utilisation"]):
        return Verdict("The Occupancy Law", f"{says}; the truth is not known")
    points = round(100 * (said["utilisation"] - true["utilisation"]), 2) + 0.0
    parts = [says, f"{true['utilisation']:.2%} in truth ({points:+.2f} points)"]
    if math.isfinite(off["queueing"]):
        parts.append(f"queueing time off by {round(off['queueing'], 4) + 0.0:+.2%} of service time")
    if not lawful:
        parts.append("requests block, lock or run in parallel here, which breaks the law")
    return Verdict("The Occupancy Law", "; ".join(parts))
