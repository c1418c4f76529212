"""How many requests a second the compiled queues serve, beside their SimPy twin and LINE's simulation engine in C++.

    python benchmarks/queues.py [--requests 5000000] [--twin 20000] [--line-python PATH] [--repeats 3]

The first table is one model, four servers at 70% load, Poisson arrivals and exponential demands of mean 1 s (for
priority three equal classes; for round robin a quantum of 0.1 s), in CPU seconds of one core:

- fused: `models.queues.fused.simulate`, random numbers and a histogram of response times included;
- arrays: `models.queues.open.times` on arrays drawn beforehand, which are not timed;
- twin: `sim.queues.readable.serve`, the same on the same arrays;
- LINE: LDES, the discrete-event engine in C++ that `line-solver` ships, asked for means alone (no confidence intervals,
  no warm-up test), one replication. Its rate is the further requests of a longer run over its further CPU seconds, so
  that starting it and reading the model cost nothing. It has no round robin. `--line-python` is a Python that can
  import `line_solver`, best in an environment of its own, as it asks for other versions than the project.

`times` is how many times longer than the fused form it takes. Mean response times beside the rates show that the models
are the same. The second table is the fused form on other
models.
"""

import argparse
import json
import subprocess
import time

import numpy as np

from models.queues import open as queues
from models.queues.draws import draw, traffic
from models.queues.fused import simulate
from models.queues.world import Distribution
from sim.queues import readable

POLICIES = ("fcfs", "ps", "priority", "srpt", "rr")
SERVERS, LOAD, THIRDS = 4, 0.7, (1 / 3, 1 / 3, 1 / 3)
TICK_S = 1e-9
"""The clock's own step: no call is taken to be shorter."""
EXPONENTIAL = Distribution("exponential", mean=1.0)
MODELS = (
    ("4 servers, exponential 1 s", 4, EXPONENTIAL, 1.0),
    ("4 servers, uniform 1 to 2 s", 4, Distribution("uniform", low=1.0, high=2.0), 1.5),
    ("1 server, exponential 1 s", 1, EXPONENTIAL, 1.0),
    ("1 server, uniform 1 to 2 s", 1, Distribution("uniform", low=1.0, high=2.0), 1.5),
)
STRATEGY = {"fcfs": "FCFS", "ps": "PS", "priority": "FCFSPRPRIO", "srpt": "SRPT"}
"""What LINE calls the policies."""
CHILD = """
import json, resource, sys
from line_solver import LDES, Exp, Network, OpenClass, Queue, SchedStrategy, Sink, Source
strategy, servers, load, classes, repeats, *lengths = sys.argv[1:]
model = Network("queue")
source, queue = Source(model, "source"), Queue(model, "queue", getattr(SchedStrategy, strategy))
sink = Sink(model, "sink")
queue.setNumberOfServers(int(servers))
for number in range(int(classes)):
    job = OpenClass(model, "class" + str(number), number)
    source.setArrival(job, Exp(float(load) * int(servers) / int(classes)))
    queue.setService(job, Exp(1.0))
model.link(Network.serialRouting(source, queue, sink))
def run(samples):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    options = dict(samples=samples, seed=1, verbose="silent", cimethod="none", tranfilter="none")
    table = LDES(model, **options).avg_table()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    present = sum(table["QLen"]) / (float(load) * int(servers))
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, present
runs = [min(run(int(length)) for _ in range(int(repeats))) for length in lengths]
print(json.dumps({"seconds": [run[0] for run in runs], "response_s": runs[-1][1]}))
"""


def shares(policy):
    """Return the shares of the classes."""
    return THIRDS if policy == "priority" else (1.0,)


def least(call, repeats):
    """Return the fewest CPU seconds that a call took, and what it returned."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        found = call()
        seconds.append(time.process_time() - start)
    return max(min(seconds), TICK_S), found


def fused(policy, requests, repeats, model=MODELS[0]):
    """Return requests per CPU second and mean response of the fused form."""
    _, servers, demand, mean_s = model

    def call():
        return simulate(policy, LOAD * servers / mean_s, demand, servers, requests, seed=1, class_shares=shares(policy))

    seconds, found = least(call, repeats)
    return requests / seconds, found.response_s


def arrays(policy, requests, repeats, serve=None):
    """Return requests per CPU second and mean response of the array form, or of what has its signature."""
    arrival_s, demand_s, classes = draw(traffic(LOAD * SERVERS, EXPONENTIAL, 1, shares(policy)), requests)
    seconds, departure_s = least(lambda: (serve or compiled)(policy, arrival_s, demand_s, classes), repeats)
    return requests / seconds, np.mean(departure_s - arrival_s)


def compiled(policy, arrival_s, demand_s, classes):
    """Return departures by the compiled array form."""
    return queues.times(policy, arrival_s, demand_s, SERVERS, classes)[1]


def twin(policy, arrival_s, demand_s, classes):
    """Return departures by the SimPy twin."""
    return readable.serve(policy, arrival_s, demand_s, SERVERS, priority=classes).departure_s


def line(policy, python, samples, repeats):
    """Return requests per CPU second and mean response of LINE's engine; not a number where it has no such policy."""
    if policy not in STRATEGY:
        return float("nan"), float("nan")
    asked = (STRATEGY[policy], SERVERS, LOAD, len(shares(policy)), repeats, samples // 5, samples)
    child = [python, "-c", CHILD, *map(str, asked)]
    done = subprocess.run(child, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"LINE failed for {policy}:\n{done.stderr}")
    told = json.loads(done.stdout.splitlines()[-1])
    short_s, long_s = told["seconds"]
    return (samples - samples // 5) / (long_s - short_s), told["response_s"]


def beside(rate, other):
    """Return another's rate, its mean response and how many times slower it is, in words."""
    if np.isnan(other[0]):
        return f" | {'-':>10} {'-':>8} {'-':>8}"
    return f" | {other[0]:>10,.0f} {other[1]:>8.3f} {rate / other[0]:>8.1f}"


def compare(requests, small, python, repeats):
    """Print the first table and return the smallest ratios to the twin and to LINE."""
    print(f"{'':>8} | {'fused /s':>10} {'mean s':>8} | {'arrays /s':>10} {'mean s':>8} {'times':>8} | "
          f"{'twin /s':>10} {'mean s':>8} {'times':>8} | {'LINE /s':>10} {'mean s':>8} {'times':>8}")  # fmt: skip
    ratios = []
    for policy in POLICIES:
        own = fused(policy, requests, repeats)
        others = [arrays(policy, requests, repeats), arrays(policy, small, 1, twin)]
        others.append(line(policy, python, requests, repeats) if python else (float("nan"),) * 2)
        ratios.append([own[0] / other[0] for other in others[1:]])
        print(f"{policy:>8} | {own[0]:>10,.0f} {own[1]:>8.3f}" + "".join(beside(own[0], each) for each in others))
    return np.array(ratios)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=5_000_000, help="for the compiled forms and for LINE")
    parser.add_argument("--twin", type=int, default=20_000, help="for the SimPy twin")
    parser.add_argument("--line-python", help="a Python that can import line_solver")
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    for policy in POLICIES:
        fused(policy, 100, 1)
        arrays(policy, 100, 1)
    ratios = compare(asked.requests, asked.twin, asked.line_python, asked.repeats)
    print(f"the SimPy twin takes at least {ratios[:, 0].min():,.0f} times as long")
    if asked.line_python:
        print(f"LINE's engine takes at least {np.nanmin(ratios[:, 1]):,.1f} times as long where it has the policy")
    else:
        print("LINE is left out: no --line-python was given")
    print("\n" + " | ".join([f"{'fused, million /s':>28}", *(f"{policy:>8}" for policy in POLICIES)]))
    for model in MODELS:
        rates = (fused(policy, asked.requests, asked.repeats, model)[0] / 1e6 for policy in POLICIES)
        print(" | ".join([f"{model[0]:>28}", *(f"{rate:>8.2f}" for rate in rates)]), flush=True)


if __name__ == "__main__":
    main()
