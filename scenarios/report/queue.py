"""A request server's hours in a report: the operational laws beside what the servers did, and its course."""

import math
from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from models.queues.world import Contention
from scenarios.files.schema import QueueScenario
from scenarios.occupancy.measure import QueueConclusion, measure
from scenarios.occupancy.network import NetworkConclusion
from scenarios.occupancy.scaled import ScaledConclusion
from scenarios.report.figures import saved
from scenarios.report.subject import Subject
from scenarios.views.section import Command, Section, Table, Verdict, table
from scenarios.views.terminal import Progress

_PICTURED = {
    "occupancy": "Requests present over time, split into those in service and those that wait, and utilisation",
    "servers": "Requests present over time, and the servers that were on, or ordered",
    "stations": "Mean time at each station, served and waiting, and its utilisation and share of the response",
    "utilisation": "Utilisation by the Occupancy Law beside what the counter sampled, interval by interval",
}
_COURSE_MOST = 24


def laws(subject: Subject, progress: Progress) -> Iterator[Section]:
    """Yield what the laws say of a queue's log beside the truth, and what its hours were; nothing of other runs."""
    scenario, run = subject.scenario, subject.run
    if not isinstance(scenario, QueueScenario):
        return
    answer = measure(scenario, run, run.path.parent, progress)
    if isinstance(answer, ScaledConclusion):
        figures = saved(answer.figures, _PICTURED)
        shown = (*answer.beside_truth(), *answer.notes(), *figures, Command(f"wsc run {run.path}"))
        yield Section("Servers that come and go", shown, answer)
        return
    if isinstance(answer, NetworkConclusion):
        figures = saved(answer.figures, _PICTURED)
        yield Section(
            "Several stations", (*answer.blocks(), *answer.notes(), *figures, Command(f"wsc run {run.path}")), answer
        )
        return
    figures, occupancy = saved(answer.figures, _PICTURED), answer.occupancy
    again = f"wsc occupancy {run.path} --servers {scenario.station.servers}"
    happened = replace(occupancy, notes=(), capacity=()).section().blocks
    rows = course(occupancy.intervals)
    yield Section("What happened", (*happened, *figures[:1], *rows, Command(again)), occupancy)
    verdict = _verdict(answer, lawful=scenario.contention == Contention())
    shown = (*answer.beside_truth(), *answer.notes(), *figures[1:], Command(f"wsc run {run.path}"), verdict)
    yield Section("The Occupancy Law beside the truth", shown, answer)


def course(intervals: pd.DataFrame) -> tuple[Table, ...]:
    """Return how busy a server was over time, a row for every so many intervals; no table of a single one.

    Sums of the intervals that a row takes together; utilisation is their mean, weighed by their lengths.

    Parameters
    ----------
    intervals : start_s, end_s, utilisation, service_time_s, queueing_time_s, peak
    """
    if len(intervals) < 2:
        return ()
    step = -(-len(intervals) // _COURSE_MOST)
    rows = list[tuple[str, ...]]()
    for at in range(0, len(intervals), step):
        part = intervals.iloc[at : at + step]
        length_s = math.fsum(part["end_s"] - part["start_s"])
        busy_s = math.fsum(part["utilisation"] * (part["end_s"] - part["start_s"]))
        sums = (math.fsum(part[name]) for name in ("service_time_s", "queueing_time_s"))
        share = f"{busy_s / length_s:.1%}" if length_s > 0 and math.isfinite(busy_s) else ""
        minutes = f"{part['start_s'].iloc[0] / 60.0:,.1f}"
        rows.append((minutes, share, *(f"{total:,.1f}" for total in sums), f"{part['peak'].max():,}"))
    heads = ("from, min", "busy", "service, s", "queueing, s", "most present")
    return (table(heads, rows, title="the course", words=0),)


def _verdict(answer: QueueConclusion, *, lawful: bool) -> Verdict:
    busy, truly = answer.occupancy.utilisation, answer.truth.utilisation
    says = f"{busy:.2%} busy by the law"
    if not math.isfinite(truly):
        return Verdict("The Occupancy Law", f"{says}; the truth is not known")
    parts = [says, f"{truly:.2%} in truth ({round(100 * (busy - truly), 2) + 0.0:+.2f} points)"]
    if math.isfinite(answer.errors.queueing):
        parts.append(f"queueing time off by {round(answer.errors.queueing, 4) + 0.0:+.2%} of service time")
    if not lawful:
        parts.append("requests block, lock or run in parallel here, which breaks the law")
    return Verdict("The Occupancy Law", "; ".join(parts))
