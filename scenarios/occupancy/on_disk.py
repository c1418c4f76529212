"""`wsc occupancy --on-disk`: what the laws say of a table that is read part by part."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from analysis.occupancy.law import table as interval_table
from analysis.occupancy.logs.clocks import LogClock, zone_of
from analysis.occupancy.logs.log import LogOptions
from analysis.occupancy.logs.rates import CompletionRates, Saturation, ServersTest
from analysis.occupancy.on_disk import DiskTotals, read_on_disk
from analysis.occupancy.streaming import alerts
from scenarios.files.faults import Fault, FaultsError, faults_in
from scenarios.occupancy.discipline import Discipline
from scenarios.occupancy.occupancy import (
    LONGEST_QUEUE,
    LogPercentiles,
    OccupancyConclusion,
    doubts,
    files_of,
    handy,
    named,
    quantiles,
    refuse_together,
)
from scenarios.occupancy.question import OccupancyQuery

if TYPE_CHECKING:
    from analysis.occupancy.logs.portions import Sizes

WHOLE = "needs the whole log in memory: leave --on-disk away"


def occupancy_on_disk(
    log: Path | Sequence[Path],
    query: OccupancyQuery,
    options: LogOptions | None = None,
    *,
    name: str | None = None,
    sizes: "Sizes | None" = None,
) -> OccupancyConclusion:
    """Return what the laws say of a table, read part by part: all but what other servers or another load would change.

    Parameters
    ----------
    log : the file, the files of its rotation in any order, or the folder of a queue's run
    query : servers, and perhaps the length of intervals and an alert
    options : what the file does not say itself
    name : what people call the file, if it is a copy
    sizes : how much is in memory at a time

    Raises
    ------
    FaultsError
        If the file cannot be used, or more is asked than can be answered so.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "log.csv"
    ...     _ = file.write_text("arrival_s,departure_s\\n0,2\\n1,3\\n")
    ...     answer = occupancy_on_disk(file, OccupancyQuery(servers=1))
    >>> answer.service_time_s, answer.queueing_time_s, answer.peak
    (3.0, 1.0, 2)
    """
    refuse_together(query, None)
    stated, called = options or LogOptions(), name or named(log)
    refuse_whole(query, stated)
    files, of_others = files_of(log, query)

    def interval_of(length_s: float) -> float:
        return query.interval_s or handy(length_s)

    with faults_in(Path(called) if name is not None or len(files) == 1 else files[0]):
        totals = read_on_disk(files, query.servers, interval_of, stated, sizes)
    answer = _conclusion(totals, query)
    clock = LogClock(None if stated.zone is None else zone_of(stated.zone).key, totals.clock)
    return replace(answer, log=called, notes=(*answer.notes, *of_others), clock=clock)


def refuse_whole(query: OccupancyQuery, options: LogOptions, out: Path | None = None) -> None:
    """Raise the faults of what cannot be answered part by part.

    Parameters
    ----------
    query, options : as of `occupancy_on_disk`
    out : folder for a picture, if one is wanted

    Raises
    ------
    FaultsError
        With all of them.
    """
    rows = query.rows
    asked_of_rows = (
        {}
        if rows is None
        else {
            "--where": rows.where,
            "--from": rows.since,
            "--until": rows.until,
            "--by": rows.by,
            "--hosts": rows.hosts,
        }
    )
    texts: dict[str, str | None] = {
        **query.of_other_servers(),
        "--scalability": "--scalability" if query.scalability else "",
        **asked_of_rows,
        "--priority": options.priority,
        "--network-delay": "" if query.network_delay_s is None else f"{query.network_delay_s:g}",
        "--out": "" if out is None else str(out),
    }
    faults = [Fault(option, 0, 0, "", WHOLE, text) for option, text in texts.items() if text]
    if faults:
        raise FaultsError(faults)


def _conclusion(totals: DiskTotals, query: OccupancyQuery) -> OccupancyConclusion:
    """Return what the sums of a log say, without what takes the whole log."""
    length_s = totals.end_s - totals.start_s
    available_s = length_s if length_s > 0 else math.nan
    parts = interval_table(totals.intervals, query.servers)
    busy, waiting = pd.Series(totals.busy_s / available_s), pd.Series(totals.waiting_s / available_s)
    unknown = Saturation(None, math.nan, math.nan, "not looked for on disk")
    rates = pd.DataFrame(columns=["jobs", "time_s", "completions", "rate_per_s", "low", "high"])
    test = ServersTest("not tested", "that needs the whole log in memory")
    by_clock = (totals.clock.note(),) if totals.clock is not None and totals.clock.matters else ()
    return OccupancyConclusion(
        requests=totals.requests,
        unfinished=totals.unfinished,
        repaired=totals.repaired,
        servers=query.servers,
        start_s=totals.start_s,
        end_s=totals.end_s,
        service_time_s=totals.service_time_s,
        queueing_time_s=totals.queueing_time_s,
        response_time_s=totals.service_time_s + totals.queueing_time_s,
        utilisation=totals.service_time_s / (query.servers * available_s),
        peak=totals.peak,
        busy=busy.tolist(),
        busy_quantiles=quantiles(busy),
        waiting=waiting.head(LONGEST_QUEUE).tolist(),
        waiting_quantiles=quantiles(waiting),
        discipline=Discipline(query.servers),
        interval_s=totals.interval_s,
        intervals=parts,
        capacity=(),
        speeds=(),
        completion_rates=CompletionRates(rates, unknown, unknown),
        servers_test=test,
        findings=totals.findings,
        notes=(*totals.notes, *by_clock, *doubts(test, Discipline(query.servers))),
        percentiles=LogPercentiles(totals.percentiles, ()),
        alerts=None if query.alert is None else alerts(parts, query.alert),
        origin_s=totals.origin_s,
    )
