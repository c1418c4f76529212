"""How near predictions from the log of a real server come to what that server does with more CPUs, or a larger load.

    python benchmarks/live_predictions.py FOLDER                        five times three runs, an hour; then the table
    python benchmarks/live_predictions.py FOLDER --csv FILE --repeats 1

Each of five repetitions serves three loads, drawn apart, on this machine (`wsc live`, two CPUs): the first on one CPU
that is busy for 60% of the time; as many requests a second on two CPUs; 1.3 times as many on one. From the log of the
first alone, as a client wrote it, the p99 of the other two is predicted: `wsc occupancy --policy auto` names the policy
and says what the network may take, then `--network-delay` with `--to 2`, and with `--slo` and `--load 1.3`. Runs that
are there are not made again, unless the server's CPU was taken from it for more than 1% of the time, which is seen
without any response time. On two CPUs of two the client takes more than that; those runs are kept.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.occupancy.objective import Objective
from analysis.occupancy.percentiles import Percentile, percentiles
from scenarios.live.gate import MOST_STOLEN, MOST_UNEXPLAINED
from scenarios.live.measurement import REQUESTS, SUMMARY, LiveOptions, live
from scenarios.occupancy.occupancy import OccupancyConclusion, occupancy
from scenarios.occupancy.question import OccupancyQuery
from scenarios.views.terminal import progress

LEVEL = 0.99
DEMAND_S, LOAD, MORE = 0.003, 0.6, 1.3
REQUESTS_A_RUN = 51_000
_ATTEMPTS = 4
"""To find the machine quiet enough."""
_NETWORK = re.compile(r"--network-delay (\d[\d.e-]*)")


@dataclass(frozen=True, slots=True)
class Served:
    """How a load is served."""

    name: str
    servers: int
    load: float
    """Of one server at `DEMAND_S`, before it is divided by the servers."""

    def options(self, seed: int) -> LiveOptions:
        """Return what `wsc live` is asked for, with as many workers as CPUs, so that requests are served in order."""
        length_s = REQUESTS_A_RUN * DEMAND_S / self.load
        load = self.load / self.servers
        return LiveOptions(self.servers, length_s, seed, pool=self.servers, mean_demand_s=DEMAND_S, utilisation=load)


FIRST, WIDER, BUSIER = Served("first", 1, LOAD), Served("two", 2, LOAD), Served("busier", 1, MORE * LOAD)
ALL = (FIRST, WIDER, BUSIER)


def serve(folder: Path, repeats: int) -> None:
    """Make the runs that are not there."""
    for repeat in range(repeats):
        for at, served in enumerate(ALL):
            place = folder / f"{served.name}-{repeat}"
            for _ in range(_ATTEMPTS):
                if _stands(place / SUMMARY):
                    break
                with progress() as tell:
                    answer = live(served.options(len(ALL) * repeat + at), place, tell)
                print(place.name, answer.summary.requests, *answer.circumstances.reasons, sep="; ", file=sys.stderr)


def _stands(summary: Path) -> bool:
    """Return whether a run is there whose server had its CPU, but for what a client on the same CPU took."""
    if not summary.exists():
        return False
    known = json.loads(summary.read_text(encoding="utf-8"))
    most = {"unexplained_share": MOST_UNEXPLAINED, "stolen_share": MOST_STOLEN}
    taken = any((known["during"][name] or 0.0) > limit for name, limit in most.items())
    return known["machine"]["client_shares_cpu"] or not taken


def measured(folder: Path, served: Served, repeat: int) -> float:
    """Return the p99 of a run, seconds."""
    log = pd.read_csv(folder / f"{served.name}-{repeat}" / REQUESTS).dropna()
    response_s = (log["departure_s"] - log["arrival_s"]).to_numpy()
    return percentiles(response_s, log["arrival_s"].to_numpy(), [LEVEL])[0].value_s


def network_delay_s(answer: OccupancyConclusion) -> float | None:
    """Return what an answer says that the network may take; None if it says nothing of it."""
    found = (_NETWORK.search(text) for text in (*answer.notes, *map(str, answer.findings)))
    return next((float(match[1]) for match in found if match), None)


def predicted(log: Path) -> tuple[str, float, Percentile, Percentile]:
    """Return policy, network delay, and the p99 on two servers and with the larger load, without that delay."""
    delay_s = network_delay_s(occupancy(log, OccupancyQuery(servers=1, identify=True)))
    query = OccupancyQuery(
        servers=1,
        identify=True,
        to=(2,),
        objective=Objective(LEVEL, 1.0),
        load=MORE,
        network_delay_s=delay_s,
    )
    answer = occupancy(log, query)
    if answer.policy is None or answer.slo is None:
        raise SystemExit(f"{log}: no policy: {'; '.join(answer.notes)}")
    wider = next(at for at in answer.capacity[0].percentiles if at.level == LEVEL)
    return answer.policy, delay_s or 0.0, wider, answer.slo.needs[0].at_load


def judged(folder: Path, repeats: int) -> Iterator[dict[str, object]]:
    """Yield a row for each prediction: policy, network_delay_s, predicted, its bracket and measured p99, seconds."""
    for repeat in range(repeats):
        policy, delay_s, *each = predicted(folder / f"{FIRST.name}-{repeat}" / REQUESTS)
        for served, at in zip((WIDER, BUSIER), each, strict=True):
            yield {
                "repeat": repeat,
                "served": served.name,
                "policy": policy,
                "network_delay_s": delay_s,
                "predicted_s": at.value_s + delay_s,
                "low_s": at.low_s + delay_s,
                "high_s": at.high_s + delay_s,
                "measured_s": measured(folder, served, repeat),
                "first_s": measured(folder, FIRST, repeat),
            }


def main() -> None:
    """Serve what is missing, predict, and print the errors beside how much the runs themselves differ."""
    parser = argparse.ArgumentParser(description="Predictions from a real server's log beside what it did.")
    parser.add_argument("folder", type=Path, help="of the runs")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--csv", type=Path, help="write the rows")
    options = parser.parse_args()
    serve(options.folder, options.repeats)
    rows = pd.DataFrame(judged(options.folder, options.repeats))
    rows["error"] = rows["predicted_s"] / rows["measured_s"] - 1
    print(rows.to_string(index=False, float_format=lambda value: f"{value:.5f}"))
    for name, part in rows.groupby("served", sort=False):
        spread = np.log(part["measured_s"]).std()
        inside = (part["measured_s"].between(part["low_s"], part["high_s"])).sum()
        print(
            f"{name}: median error {part['error'].abs().median():.1%}, greatest {part['error'].abs().max():.1%}; "
            f"in its bracket {inside} of {len(part)}; runs themselves differ by {spread:.1%} (standard deviation)"
        )
    if options.csv is not None:
        rows.round(6).to_csv(options.csv, index=False)


if __name__ == "__main__":
    main()
