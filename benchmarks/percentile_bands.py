"""How often bands of percentiles hold, and how often the fewest servers for an objective are right.

Pairs of days are simulated for each policy. The first is recorded, and of its arrivals and departures alone come the
bands for response and waiting times, as in `wsc occupancy --policy`, and the fewest servers for an objective on p99.
The second, with the same rates and other draws, is what happens. The rate of arrivals moves by 30% over a day, and a
tenth of the requests come in bursts of five. Pairs take cases in turn: exponential, lognormal and uniform demands on
1, 4 and 16 servers, whose mean load is 60 to 90%. Random order on several servers, whose demands do not follow from
the log, has brackets for response alone, and no fewest servers. The objective lies anywhere between what two
neighbouring numbers of servers reach in the second day, the log's own number and the next. `blocks` are brackets
from blocks of time, as of a log whose policy is not known, over the cases of all policies. `fcfs by class` and the like
are brackets of classes of requests: six, three and one of ten, whose demands are 0.5, 1 and 4 s in the mean.

`python benchmarks/percentile_bands.py --csv docs/percentile_bands.csv` takes some sixteen minutes of one core.
"""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.occupancy.curve import curve
from analysis.occupancy.logs.log import Cleaned
from analysis.occupancy.objective import Objective
from analysis.occupancy.percentiles import LEVELS, percentiles
from models.arrays import Floats, Ints
from models.queues.policies import POLICIES, PolicyName
from models.queues.serve import serve
from models.randomness import stream
from scenarios.occupancy.discipline import Discipline, settle
from scenarios.occupancy.objective import station_of
from scenarios.occupancy.occupancy import laws, log_percentiles
from scenarios.occupancy.question import OccupancyQuery

REQUESTS = 12_000
LAWS = ("exponential", "lognormal", "uniform")
STATIONS = ((1, 0.6), (1, 0.8), (4, 0.7), (4, 0.85), (16, 0.8), (16, 0.9))
"""Servers and mean load."""
QUANTUM_S, LEVEL = 0.5, 0.99
BY_CLASS: dict[str, tuple[PolicyName, ...]] = {
    "fcfs by class": ("fcfs",),
    "ps by class": ("ps",),
    "blocks by class": ("fcfs", "ps"),
}
"""Policies whose days are classed; `blocks`: without their names."""


@dataclass(frozen=True, slots=True)
class DayCase:
    """What a day is drawn from."""

    policy: PolicyName
    law: str
    servers: int
    load: float
    requests: int = REQUESTS
    """Of a day, in the mean."""

    @property
    def name(self) -> str:
        """By which its days are drawn."""
        return f"Case(policy={self.policy!r}, law={self.law!r}, servers={self.servers}, load={self.load})"

    def day(self, rng: np.random.Generator) -> tuple[Floats, Floats, Ints]:
        """Return arrivals, demands of mean 1 s and classes of a day."""
        grid = np.linspace(0, 1, 1001)
        rate = 1 + 0.3 * np.sin(2 * np.pi * grid)
        share = np.concatenate(([0.0], np.cumsum((rate[1:] + rate[:-1]) / 2)))
        span_s = self.requests / (self.servers * self.load)
        times = np.interp(rng.random(rng.poisson(0.9 * self.requests)), share / share[-1], grid) * span_s
        gap_s = 0.01 / (self.servers * self.load)
        bursts = np.interp(rng.random(rng.poisson(0.1 * self.requests / 5)), share / share[-1], grid) * span_s
        times = np.sort(np.concatenate((times, *(bursts + gap_s * at for at in range(5)))))
        n = len(times)
        if self.law == "exponential":
            demand = rng.exponential(1.0, n)
        else:
            demand = rng.lognormal(-0.5, 1.0, n) if self.law == "lognormal" else rng.uniform(0.5, 1.5, n)
        return times, demand, rng.integers(0, 3, n)

    def response(self, day: tuple[Floats, Floats, Ints], servers: int, rng: np.random.Generator) -> Floats:
        """Return how long each request of a day takes."""
        times, demand, classes = day
        order = POLICIES[self.policy].order
        return (
            serve(
                self.policy,
                times,
                demand,
                servers,
                priority=classes if order == "class" else None,
                choice=rng.random(len(times)) if order == "drawn" else None,
                quantum_s=QUANTUM_S,
            ).departure_s
            - times
        )


def cases(policy: PolicyName, requests: int) -> list[DayCase]:
    """Return the cases of a policy."""
    return [DayCase(policy, law, k, load, requests) for law, (k, load) in product(LAWS, STATIONS)]


def _in_turn(policies: Iterable[PolicyName], requests: int) -> list[DayCase]:
    """Return the first case of each policy, then the second of each, and so on."""
    return [case for same in zip(*(cases(policy, requests) for policy in policies), strict=True) for case in same]


def quantiles(times_s: Floats) -> Floats:
    """Return the percentiles of a day."""
    return np.quantile(times_s, LEVELS, method="inverted_cdf")


def judged(case: DayCase, pair: int) -> Iterator[dict[str, object]]:
    """Yield for each percentile of a pair of days the band of the first and what the second shows."""
    rng = stream(pair, f"bands {case.name}")
    first, other = case.day(rng), case.day(rng)
    response = case.response(first, case.servers, rng)
    classes = first[2] if POLICIES[case.policy].order == "class" else None
    log = Cleaned(first[0], first[0] + response, (), 0, True, classes)
    known = settle(log, Discipline(case.servers, case.policy, QUANTUM_S), float(first[1].sum()))
    about = {**asdict(case), "pair": pair}
    station = None  # a log that the policy is not seen in has bands of blocks of time, and none for waiting
    if known.reconstruction is not None:
        station = station_of(log, case.policy, case.servers, known.reconstruction.demand_s, QUANTUM_S)
    bands = log_percentiles(log, station, case.servers, known.policy)
    assert bands is not None
    real = case.response(other, case.servers, rng)
    waits = np.maximum(real - other[1], 0.0)
    waits[waits < 1e-9] = 0.0
    for what, rows, times in (("response", bands.response, real), ("waiting", bands.waiting, waits)):
        for row, truth in zip(rows, quantiles(times).tolist(), strict=False):
            band = {"value": row.value_s, "low": row.low_s, "high": row.high_s, "real": truth}
            yield about | {"what": what, "level": row.name} | band


def by_class(name: str, pairs: range, requests: int) -> Iterator[dict[str, object]]:
    """Yield for each percentile of each class of a pair of days the band of the first and what the second shows."""
    every = _in_turn(BY_CLASS[name], requests)
    for pair in pairs:
        case = every[pair % len(every)]
        rng = stream(pair, f"classes {case.name}")
        (times, response, code), (_, later, others) = (_classed(case, rng) for _ in range(2))
        log = Cleaned(times, times + response, (), 0, True, label=tuple(code.astype(str)))
        stated = case.policy if len(BY_CLASS[name]) == 1 else None
        query = OccupancyQuery(case.servers, policy=stated, quantum_s=QUANTUM_S)
        answer = laws(log, curve(times, times + response), query)
        for row in answer.classes:
            real = later[others == int(row.name)]
            for at in (row.p50, row.p99):
                about = {**asdict(case), "pair": pair, "policy": name, "what": f"class {row.name}"}
                band = {"value": at.value_s, "low": at.low_s, "high": at.high_s}
                truth = float(np.quantile(real, at.level, method="inverted_cdf"))
                yield about | {"level": at.name, "real": truth} | band


def _classed(case: DayCase, rng: np.random.Generator) -> tuple[Floats, Floats, Ints]:
    """Return arrivals, response times and classes of a day."""
    times, demand, _ = case.day(rng)
    code = rng.choice(3, len(times), p=[0.6, 0.3, 0.1])
    return times, case.response((times, demand * np.array([0.5, 1.0, 4.0])[code], code), case.servers, rng), code


def blocks(pairs: range, requests: int) -> Iterator[dict[str, object]]:
    """Yield what `judged` does of brackets from blocks of time, which need no policy, in the cases of each policy."""
    every = _in_turn(POLICIES, requests)
    for pair in pairs:
        case = every[pair % len(every)]
        rng = stream(pair, f"blocks {case.name}")
        first, other = case.day(rng), case.day(rng)
        rows = percentiles(case.response(first, case.servers, rng), first[0])
        for row, truth in zip(rows, quantiles(case.response(other, case.servers, rng)).tolist(), strict=True):
            about = {**asdict(case), "pair": pair, "policy": "blocks", "what": "response", "level": row.name}
            yield about | {"value": row.value_s, "low": row.low_s, "high": row.high_s, "real": truth}


def tried(case: DayCase, pair: int) -> dict[str, object]:
    """Return the fewest servers for an objective by the first day of a pair, and by the second."""
    rng = stream(pair, f"servers {case.name}")
    first, other = case.day(rng), case.day(rng)
    response = case.response(first, case.servers, rng)
    log = Cleaned(first[0], first[0] + response, (), 0, True, first[2] if case.policy == "priority" else None)
    known = settle(log, Discipline(case.servers, case.policy, QUANTUM_S), float(first[1].sum()))
    row = {**asdict(case), "pair": pair, "what": "servers", "level": f"p{100 * LEVEL:g}"}
    if known.reconstruction is None:
        return row
    most = case.servers + int(rng.integers(0, 2))
    ends = np.log([_p99(case, other, servers) for servers in (most, max(most - 1, 1))])
    ends[1] = max(ends[1], ends[0] + 0.02)  # one server has none below it
    objective = Objective(LEVEL, float(np.exp(rng.uniform(*ends))))
    station = station_of(log, case.policy, case.servers, known.reconstruction.demand_s, QUANTUM_S)
    truly = next(k for k in range(1, 4 * most) if _p99(case, other, k) <= objective.bound_s)
    return row | {"value": station.least_servers(objective) or np.inf, "real": truly}


def _p99(case: DayCase, day: tuple[Floats, Floats, Ints], servers: int) -> float:
    response = case.response(day, servers, np.random.default_rng(0))
    return float(np.quantile(response, LEVEL, method="inverted_cdf"))


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the share of pairs that are right, with its Monte-Carlo error, in percent, of those that have a band."""
    rows = rows[(rows["what"] == "servers") | rows["high"].notna()].copy()
    holds, near = rows["real"].between(rows["low"], rows["high"]), (rows["value"] - rows["real"]).abs() <= 1
    rows["right"] = np.where(rows["what"] == "servers", near, holds)
    every = rows[rows["policy"].isin(POLICIES)].assign(policy="all")
    groups = pd.concat((rows, every)).groupby(["policy", "what", "level"], sort=False)["right"]
    answer = groups.agg(["size", "mean"]).reset_index()
    answer["error"] = 100 * np.sqrt((answer["mean"] * (1 - answer["mean"])).clip(lower=0.005) / answer["size"])
    answer["right"] = 100 * answer.pop("mean")
    return answer.rename(columns={"size": "pairs"})


def main() -> None:
    """Print the table, and write it if options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=216, help="of each policy, in 18 cases")
    parser.add_argument("--first", type=int, default=1000, help="number of the first pair, from which it is drawn")
    parser.add_argument("--policies", default=",".join((*POLICIES, "blocks", *BY_CLASS)))
    parser.add_argument("--requests", type=int, default=REQUESTS, help="of a day, in the mean")
    parser.add_argument("--csv", type=Path, help="file for the table")
    options = parser.parse_args()
    parts = []
    for policy in options.policies.split(","):
        if policy == "blocks":
            parts.append(
                pd.DataFrame(blocks(range(options.first, options.first + 5 * options.pairs), options.requests))
            )
            print(table(parts[-1].copy()).to_string(index=False, float_format="%.1f"), flush=True)
            continue
        if policy in BY_CLASS:
            pairs = range(options.first, options.first + options.pairs)
            parts.append(pd.DataFrame(by_class(policy, pairs, options.requests)))
            print(table(parts[-1].copy()).to_string(index=False, float_format="%.1f"), flush=True)
            continue
        rows, all_cases = list[dict[str, object]](), cases(policy, options.requests)
        for pair in range(options.first, options.first + options.pairs):
            case = all_cases[pair % len(all_cases)]
            hidden = case.servers > 1 and POLICIES[policy].hidden
            rows += [*judged(case, pair), *(() if hidden else (tried(case, pair),))]
        parts.append(pd.DataFrame(rows))
        print(table(parts[-1].copy()).query("policy != 'all'").to_string(index=False, float_format="%.1f"), flush=True)
    answer = table(pd.concat(parts))
    print(answer.query("policy == 'all'").to_string(index=False, float_format="%.1f"))
    if options.csv:
        answer.to_csv(options.csv, index=False, float_format="%.1f")


if __name__ == "__main__":
    main()
