"""A run of several stations: each by the Occupancy Law beside the truth, the bottleneck, and where time went."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis.figures.occupancy.stations import draw_stations
from analysis.occupancy.curve import curve
from analysis.occupancy.law import law
from analysis.occupancy.percentiles import percentiles
from analysis.statistics import ROUNDING
from models.arrays import Floats
from models.queues.network import NetworkQueue, last_places
from models.queues.world import NetworkStation
from scenarios.files.schema import QueueScenario
from scenarios.occupancy.clients import ClientsAnswer, beside_theory
from scenarios.occupancy.occupancy import LogPercentiles
from scenarios.occupancy.steady import Precision, SteadyState
from scenarios.occupancy.truth import LawErrors, QueueTruth, errors
from scenarios.occupancy.unserved import Unserved, unserved
from scenarios.runs.disk import save
from scenarios.runs.rundir import Run
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import duration, number, plural, seconds, share
from scenarios.views.section import Block, Place, Says, Section, note_lines, table
from sim.queues.network import queues_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class StationAnswer:
    """What is concluded of one station, or of all as if they were one."""

    station: str
    servers: int
    utilisation: float
    """By the law, as is what follows until `truth`; from the first arrival there to the last departure."""
    service_time_s: float
    queueing_time_s: float
    truth: QueueTruth
    """NaN where nobody knows."""
    errors: LawErrors
    mean_response_s: float = math.nan
    p99_response_s: float = math.nan
    mean_waiting_s: float = math.nan
    """In truth, as `p99_waiting_s`: beyond the service demand."""
    p99_waiting_s: float = math.nan
    threads: int | None = None
    """Of its pool; None: one for everybody."""
    mean_thread_wait_s: float = math.nan
    """In truth, as `p99_thread_wait_s`: of the waiting, until a thread was free; NaN without a pool."""
    p99_thread_wait_s: float = math.nan
    demand_per_server_s: float = math.nan
    """Mean demand over servers, in truth: the station carries one request in so much time."""
    of_response: float = math.nan
    """Share of all response time in which a request was here and nothing else held it up; NaN if none took any."""

    @property
    def need_s(self) -> float:
        """Mean demand over servers, in truth if that is known, and else what the law says of all requests together."""
        known = math.isfinite(self.demand_per_server_s)
        return self.demand_per_server_s if known else self.service_time_s / self.servers


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NetworkConclusion(Conclusion):
    """What `wsc run` says of a run of several stations."""

    run: Path
    scenario: str
    seed: int
    counts: Mapping[str, int]
    stations: tuple[StationAnswer, ...]
    whole: StationAnswer
    """All stations as if they were one."""
    percentiles: LogPercentiles
    unserved: Unserved
    arrivals_per_s: float
    carried_s: float = math.nan
    """Time in which the stations carry one request, in truth."""
    clients: ClientsAnswer | None = None
    """Where a fixed number of clients sends the requests."""
    figures: tuple[str, ...] = ()
    steady: SteadyState | None = None
    precision: Precision | None = None
    """Both if the run was lengthened for a precision."""

    @property
    def bottleneck(self) -> StationAnswer:
        """The station that more load would fill first, which of several that are full is the one that needs most."""
        return max(self.stations, key=lambda row: row.need_s)

    def brief(self) -> str:
        """Return the bottleneck, and how long requests take."""
        slow = self.percentiles.response[3]
        return f"{self._narrow('bottleneck')}; {slow.name} {slow.value_s:.4g} s"

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        return {
            "kind": "queue",
            "run": str(self.run),
            "scenario": self.scenario,
            "seed": self.seed,
            "counts": self.counts,
            "stations": [asdict(row) for row in self.stations],
            "whole": asdict(self.whole),
            "bottleneck": self.bottleneck.station if self.bottleneck.need_s > 0 else None,
            "most_per_s": self.most_per_s,
            "arrivals_per_s": self.arrivals_per_s,
            "clients": None if self.clients is None else asdict(self.clients),
            "percentiles": self.percentiles.payload(),
            "unserved": asdict(self.unserved),
            "figures": list(self.figures),
            **({} if self.steady is None else {"steady": asdict(self.steady)}),
            **({} if self.precision is None else {"precision": asdict(self.precision)}),
        }

    @property
    def most_per_s(self) -> float:
        """Return how many requests a second the stations carry."""
        return 1.0 / self.carried_s if self.carried_s > 0 else math.nan

    def frame(self) -> pd.DataFrame:
        """Return a row for each station."""
        rows = [asdict(row) for row in self.stations]
        columns = [name for name in rows[0] if name not in {"truth", "errors"}]
        return pd.DataFrame(rows, columns=columns)

    def figure(self) -> "Figure":
        """Return the mean time at each station, served and waiting by the law, and how busy its servers are."""
        requests = self.counts["requests"]
        columns = ("station", "service_s", "waiting_s", "utilisation", "of_response")
        times_s = [(row.service_time_s / requests, row.queueing_time_s / requests) for row in self.stations]
        rows = [
            (row.station, *times, row.utilisation, row.of_response)
            for row, times in zip(self.stations, times_s, strict=True)
        ]
        return draw_stations(pd.DataFrame(rows, columns=columns))

    def section(self) -> Section:
        """Return what people see."""
        first = f"{self.scenario} (seed {self.seed}): {plural(self.counts['requests'], 'request')}"
        blocks = (Says(f"{first}, {plural(len(self.stations), 'station')}"), *self.blocks(), *self.notes())
        return Section("", (*blocks, Place(f"tables and figures: {self.run}")))

    def blocks(self) -> Iterator[Block]:
        """Yield the stations, the bottleneck, the law beside the truth, and percentiles of the whole."""
        rows = [
            (
                row.station, str(row.servers), share(row.utilisation, 1), _time(row.mean_waiting_s),
                _time(row.p99_waiting_s), _time(row.mean_response_s), _time(row.p99_response_s),
                share(row.of_response, 1, "none"),
            )
            for row in self.stations
        ]  # fmt: skip
        heads = ("station", "servers", "busy", "waiting", "its p99", "response", "its p99", "of response")
        yield table(heads, rows, "the stations")
        yield Says(self._bottleneck())
        for row in self.stations:
            if row.threads is not None and math.isfinite(row.mean_thread_wait_s):
                line = f"{_time(row.mean_thread_wait_s)} of its waiting is for one of them"
                yield Says(f"threads: {row.station} has {row.threads}; {line} (p99 {_time(row.p99_thread_wait_s)})")
        if self.clients is not None:
            yield from self.clients.blocks(self.bottleneck.station)
        yield self._law()
        yield from self.percentiles.blocks(self.counts["requests"])
        yield from self.unserved.blocks()
        if self.steady is not None and self.precision is not None:
            yield from map(Says, (*self.steady.lines(), *self.precision.lines()))

    def notes(self) -> Iterator[Says]:
        """Yield what must be known to read the numbers."""
        timed = any(math.isfinite(row.of_response) for row in self.stations)
        yield from note_lines(
            [
                *([] if self.clients is None else self.clients.notes()),
                *([] if timed else ["of response: no request took any time, so none of it was at any station"]),
                "waiting: time at a station beyond the service demand; of response: the share of response times in "
                "which a request was there, of stations at a time the one whose answer it waited for",
                "all as one: the law with all requests present and all servers; it takes requests that wait at one "
                "station for busy servers of another, so ask station by station",
            ]
        )

    def _narrow(self, before: str) -> str:
        """Return the bottleneck and how busy it is, or that there is none because nothing is needed of any station."""
        busiest = self.bottleneck
        if not busiest.need_s > 0:
            return f"{before} none, requests need no service"
        return f"{before} {busiest.station}, {share(busiest.utilisation, 1)} busy"

    def _bottleneck(self) -> str:
        text = self._narrow("bottleneck:")
        if math.isfinite(self.most_per_s) and self.clients is None:
            text += f"; the stations carry {self.most_per_s:.4g} requests a second at most"
            text += f", {self.most_per_s / self.arrivals_per_s:.3g} times as many as came"
        return text

    def _law(self) -> Block:
        rows = []
        for row in (*self.stations, self.whole):
            off = row.errors.queueing
            true = seconds(row.truth.queueing_time_s)
            error = f"{round(off, 4) + 0.0:+.2%} of service" if math.isfinite(off) else ""
            busy = (share(row.utilisation, 1, "unknown"), share(row.truth.utilisation, 1))
            rows.append((row.station, *busy, seconds(row.queueing_time_s), true, error))
        heads = ("station", "busy by law", "in truth", "queueing by law", "in truth", "error")
        return table(heads, rows, "the Occupancy Law")


def measure_network(scenario: QueueScenario, run: Run) -> NetworkConclusion:
    """Return what is concluded of a run of several stations; without its ``truth_`` table the truth is NaN.

    Its figure goes into the run's directory.
    """
    log = run.table("requests", ["arrival_s", "departure_s"])
    arrival_s, departure_s = log["arrival_s"].to_numpy(), log["departure_s"].to_numpy()
    queues = queues_of(scenario.stations)
    came_s, left_s = _stamps(run, len(queues))
    response_s = float((departure_s - arrival_s).sum())
    shares = critical_s(queues, came_s, left_s).sum(axis=1) / (response_s or math.nan)
    known = run.has("truth_station_requests")
    columns = ["request", "start_s", "waiting_s", "demand_s"]
    truth = run.table("truth_station_requests", columns) if known else None
    n, clients = len(log), scenario.load.clients
    rows = []
    for place, station in enumerate(scenario.stations):
        true = None if truth is None else truth.iloc[place * n : (place + 1) * n]
        alone = _answer(station, came_s[place], left_s[place], true)
        rows.append(replace(alone, of_response=float(shares[place]), threads=station.threads))
    answer = NetworkConclusion(
        run=run.path,
        scenario=scenario.name,
        seed=scenario.seed,
        counts=run.manifest["counts"],
        stations=tuple(rows),
        whole=_whole(came_s.min(axis=0), left_s[last_places(queues)].max(axis=0), rows, float(left_s.max())),
        percentiles=LogPercentiles(percentiles(departure_s - arrival_s, arrival_s), ()),
        unserved=unserved(run, log, scenario.analyses.occupancy.within_s),
        arrivals_per_s=n / scenario.horizon_s,
        carried_s=carried_s(queues, [row.demand_per_server_s for row in rows]),
        clients=None
        if clients is None
        else beside_theory(
            scenario,
            clients,
            (arrival_s, departure_s),
            (came_s, left_s),
            None if truth is None else _by_request(truth, "demand_s", len(queues)),
        ),
    )
    return replace(answer, figures=tuple(map(str, save(answer.figure(), run.path / "stations"))))


def carried_s(queues: Sequence[NetworkQueue], demand_s: Sequence[float]) -> float:
    """Return in what time stations carry one request: as long as the slowest of those whose answer is needed.

    Of stations before one that needs some of their answers only, as many count as it needs, the fastest.

    Parameters
    ----------
    queues : s stations
    demand_s : of each the mean demand over its servers

    Examples
    --------
    >>> split = [NetworkQueue("ps", 1), NetworkQueue("ps", 1, (0,)), NetworkQueue("ps", 1, (0,))]
    >>> carried_s([*split, NetworkQueue("ps", 1, (1, 2), needs=1)], [0.1, 0.2, 9.0, 0.3])
    0.3
    """
    needed = set(last_places(queues))
    for queue in queues:
        fastest = sorted(queue.after, key=lambda place: demand_s[place])
        needed.update(fastest[: queue.needs or None])
    return max((demand_s[place] for place in needed), default=math.nan)


def critical_s(queues: Sequence[NetworkQueue], arrival_s: Floats, departure_s: Floats) -> Floats:
    """Return how long each request was at each station while nothing else held it up.

    From its end a request is followed back: at each station to the one whose departure let it come there; of several
    at the same moment the first in the list. So a request's times sum to the time from its arrival to its end.

    Parameters
    ----------
    queues : s stations
    arrival_s, departure_s : (s, n) arrays

    Examples
    --------
    >>> split = [NetworkQueue("ps", 1), NetworkQueue("ps", 1, (0,)), NetworkQueue("ps", 1, (0,))]
    >>> came_s, left_s = np.array([[0.0], [1.0], [1.0]]), np.array([[1.0], [4.0], [3.0]])
    >>> critical_s(split, came_s, left_s).ravel().tolist()
    [1.0, 3.0, 0.0]
    """
    passed = np.zeros(arrival_s.shape, np.bool_)
    last = np.array(last_places(queues))
    slowest = last[np.argmax(departure_s[last], axis=0)]
    passed[slowest, np.arange(arrival_s.shape[1])] = True
    for place in range(len(queues) - 1, 0, -1):
        open_yet = passed[place].copy()
        for before in queues[place].after:
            here = open_yet & (departure_s[before] == arrival_s[place])
            passed[before] |= here
            open_yet &= ~here
    return np.where(passed, departure_s - arrival_s, 0.0)


def _stamps(run: Run, stations: int) -> tuple[Floats, Floats]:
    """Return when requests came to stations and left them, (s, n) arrays in order of requests."""
    logs = run.table("station_requests", ["request", "arrival_s", "departure_s"])
    return _by_request(logs, "arrival_s", stations), _by_request(logs, "departure_s", stations)


def _by_request(logs: pd.DataFrame, name: str, stations: int) -> Floats:
    """Return a column of all stations' logs, (s, n) in order of requests."""
    request = logs["request"].to_numpy().reshape(stations, -1)
    column = np.empty(request.shape)
    np.put_along_axis(column, request, logs[name].to_numpy().reshape(stations, -1), axis=1)
    return column


def _answer(station: NetworkStation, came_s: Floats, left_s: Floats, true: pd.DataFrame | None) -> StationAnswer:
    """Return what is concluded of a station by itself."""
    servers = station.servers
    total = law(curve(came_s, left_s), servers)
    truth, waiting_s, demand_s = QueueTruth(), math.nan, math.nan
    p99_waiting_s, mean_line_s, p99_line_s = math.nan, math.nan, math.nan
    if true is not None:
        whole_s, span_s = float(true["demand_s"].sum()), float(left_s.max() - came_s.min())
        truth = QueueTruth(
            whole_s / (servers * span_s) if span_s else math.nan, whole_s, float((left_s - came_s).sum()) - whole_s
        )
        waits_s = true["waiting_s"].to_numpy()
        waits_s = np.where(waits_s > ROUNDING * left_s.max(), waits_s, 0.0)
        waiting_s, demand_s = float(waits_s.mean()), whole_s / len(true) / servers
        p99_waiting_s = _p99(waits_s)
        if station.threads is not None:
            line_s = true["start_s"].to_numpy() - np.sort(came_s)
            mean_line_s, p99_line_s = float(line_s.mean()), _p99(line_s)
    return StationAnswer(
        station.name,
        servers,
        total.utilisation,
        total.service_time_s,
        total.queueing_time_s,
        truth,
        errors(total.service_time_s, total.queueing_time_s, truth),
        float((left_s - came_s).mean()),
        _p99(left_s - came_s),
        waiting_s,
        p99_waiting_s,
        mean_thread_wait_s=mean_line_s,
        p99_thread_wait_s=p99_line_s,
        demand_per_server_s=demand_s,
    )


def _whole(arrival_s: Floats, departure_s: Floats, rows: Sequence[StationAnswer], until_s: float) -> StationAnswer:
    """Return all stations as if they were one, which requests enter and leave as a whole.

    They work until `until_s`, which is later where an answer was not needed.
    """
    servers, span_s = sum(row.servers for row in rows), float(until_s - arrival_s.min())
    total = law(curve(arrival_s, departure_s), servers)
    service_s, queueing_s = (math.fsum(getattr(row.truth, f"{name}_time_s") for row in rows) for name in _TIMES)
    truth = QueueTruth(service_s / (servers * span_s) if span_s else math.nan, service_s, queueing_s)
    off = errors(total.service_time_s, total.queueing_time_s, truth)
    return StationAnswer(
        "all as one", servers, total.utilisation, total.service_time_s, total.queueing_time_s, truth, off
    )


_TIMES = ("service", "queueing")


def _p99(time_s: Floats) -> float:
    return float(np.quantile(time_s, 0.99, method="inverted_cdf"))


def _time(value_s: float) -> str:
    return duration(value_s) if math.isfinite(value_s) else number(value_s)
