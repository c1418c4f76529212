"""How long cross-platform prediction takes: many worlds with every method, one prediction, and a cluster's router.

    python benchmarks/crossplatform.py [--worlds 100] [--requests 1000000] [--twin 10000] [--repeats 3]

- worlds: 100 worlds of each of three applications are simulated on eleven platforms, and every method is calibrated and
  judged on ten of them, in as many processes as there are processors; wall seconds, their start included. Fewer worlds
  with ``--worlds``: what 100 would take is in proportion, a little too much.
- prediction: `wsc predict` from a CSV log of ten hours to ten platforms, from the start of the process to its exit, and
  the call alone: reading the log, calibrating, predicting.
- router: requests per CPU second of `models.queues.dispatch.dispatch` on four machines beside its SimPy twin, on the
  same requests; `times` is how many times longer the twin takes.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from models.queues.dispatch import PREDICTING, ROUTERS, dispatch
from sim.queues import readable

APPLICATIONS = ("cross_rubis", "cross_stockonline", "cross_tpcw")
HUNDRED = 100
CORES, LOAD, TYPES = (1, 2, 4, 4), 0.7, 5
TICK_S = 1e-9
"""The clock's own step: no call is taken to be shorter."""
ORIGIN, BINARY = "piii", Path(sys.executable).with_name("wsc")


def least(call, repeats, clock=time.process_time):
    """Return the fewest seconds that a call took, and what it returned."""
    seconds = []
    for _ in range(repeats):
        start = clock()
        found = call()
        seconds.append(clock() - start)
    return max(min(seconds), TICK_S), found


def judged(name, worlds):
    """Return the wall seconds that so many worlds of an application took, and how many were judged."""
    from scenarios.crossplatform.worlds import worlds as judge
    from scenarios.files.loader import load, settings

    scenario = load(name, settings([f"analyses.crossplatform.worlds={worlds}"]))
    with tempfile.TemporaryDirectory() as out:
        wall_s, made = least(lambda: judge(scenario, Path(out), True, lambda *_: None), 1, time.perf_counter)
    return wall_s, len(made)


def many_worlds(worlds):
    """Print the first table and return what 100 worlds of all applications take."""
    print(f"{'worlds':>20} | {'judged':>6} {'wall s':>8} {'100 take s':>10}")
    total_s = 0.0
    for name in APPLICATIONS:
        wall_s, made = judged(name, worlds)
        total_s += wall_s * HUNDRED / made
        print(f"{name:>20} | {made:>6} {wall_s:>8.1f} {wall_s * HUNDRED / made:>10.1f}", flush=True)
    return total_s


def ten_hours(folder, horizon_s=36000.0):
    """Write the log that a service left on one platform, a row an interval, and return the file."""
    from models.services.world import ServiceWorld
    from sim.services.run import services

    tables = services(ServiceWorld(horizon_s=horizon_s, platforms=(ORIGIN,)), throughput=False, types=False)
    counts = tables["service_counts"].pivot_table(index="start_s", columns="type", values="requests")
    rows = counts.add_prefix("requests_").reset_index()
    for name in ("service_log", "service_cpu"):
        rows = rows.merge(tables[name].drop(columns="platform"), on="start_s")
    rows.to_csv(folder / "service.csv", index=False)
    return folder / "service.csv"


def predicted(log, targets):
    """Return the seconds of a `wsc predict` process."""
    start = time.perf_counter()
    words = [str(BINARY), "predict", str(log), "--from", ORIGIN, "--to", ",".join(targets), "--json"]
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    child = os.posix_spawn(words[0], words, os.environ, file_actions=silent)
    _, status = os.waitpid(child, 0)
    if status:
        raise SystemExit("wsc predict failed")
    return time.perf_counter() - start


def one_prediction(repeats):
    """Print how long a prediction takes, and return the seconds of the process."""
    from models.platforms import SERVERS_2008
    from scenarios.crossplatform.predict import ServiceQuestion, predict

    targets = tuple(platform.name for platform in SERVERS_2008 if platform.name != ORIGIN)
    with tempfile.TemporaryDirectory() as folder:
        log = ten_hours(Path(folder))
        asked = ServiceQuestion(log, ORIGIN, targets)
        call_s, found = least(lambda: predict(asked), repeats, time.perf_counter)
        process_s = min(predicted(log, targets) for _ in range(repeats))
    print(f"a prediction for {len(found.targets)} platforms from {found.log.intervals} intervals: "
          f"{call_s:.2f} s the call, {process_s:.2f} s the process")  # fmt: skip
    return process_s


def traffic(n, seed=1):
    """Return arrivals, demands, types and predicted times of requests on four machines at 70% load."""
    rng = np.random.default_rng(seed)
    predicted_s, kind = rng.uniform(0.5, 1.5, (TYPES, len(CORES))), rng.integers(0, TYPES, n)
    arrival_s = np.cumsum(rng.exponential(1.0 / (LOAD * sum(CORES)), n))
    return arrival_s, predicted_s[kind] * rng.exponential(1.0, (n, 1)), kind, predicted_s


def looked_up(router, kind, predicted_s):
    """Return what a router looks up, a row a request and a table; who knows no times goes by cores."""
    if router == "fixed":
        return np.repeat(np.arange(len(CORES)), CORES)[np.arange(kind.size) % sum(CORES)], predicted_s
    return kind, predicted_s if router in PREDICTING else np.tile(CORES, (TYPES, 1))


def routed(router, n, repeats):
    """Return requests per CPU second and mean response time of the compiled router."""
    arrival_s, demand_s, kind, predicted_s = traffic(n)
    rows, table = looked_up(router, kind, predicted_s)
    asked = {"choice": rows} if router == "fixed" else {"kind": rows}
    asked |= {"predicted_s" if router in PREDICTING else "weights": table}
    seconds, done = least(lambda: dispatch(router, arrival_s, demand_s, CORES, **asked), repeats)
    return n / seconds, float((done.departure_s - arrival_s).mean())


def twin(router, n):
    """Return the same of the SimPy twin."""
    arrival_s, demand_s, kind, predicted_s = traffic(n)
    rates = [np.arange(1.0, cores + 1) for cores in CORES]
    rows, table = looked_up(router, kind, predicted_s)
    seconds, done = least(lambda: readable.dispatch(router, arrival_s, demand_s, rates, rows=rows, table=table), 1)
    return n / seconds, float((done.departure_s - arrival_s).mean())


def routers(requests, small, repeats):
    """Print the last table and return the smallest ratio."""
    print(f"{'router':>20} | {'compiled /s':>12} {'mean s':>8} | {'twin /s':>10} {'mean s':>8} {'times':>8}")
    ratios = []
    for router in ROUTERS:
        routed(router, 10, 1)
        (fast, mean_s), (slow, same_s) = routed(router, requests, repeats), twin(router, small)
        ratios.append(fast / slow)
        print(f"{router:>20} | {fast:>12,.0f} {mean_s:>8.3f} | {slow:>10,.0f} {same_s:>8.3f} {ratios[-1]:>8.0f}")
    return min(ratios)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=HUNDRED, help="of each application; 0: none")
    parser.add_argument("--requests", type=int, default=1_000_000, help="for the compiled router")
    parser.add_argument("--twin", type=int, default=10_000, help="for its SimPy twin")
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    if asked.worlds:
        total_s = many_worlds(asked.worlds)
        print(f"{HUNDRED} worlds of each take {total_s:.0f} s on {os.cpu_count()} processors\n")
    one_prediction(asked.repeats)
    print()
    print(f"the SimPy twin takes at least {routers(asked.requests, asked.twin, asked.repeats):,.0f} times as long")


if __name__ == "__main__":
    main()
