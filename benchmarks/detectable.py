"""How often growth by what `wsc profile regress` says to be needed is named: `python benchmarks/detectable.py`.

Draws fleets that the project's simulator has no part in: three services of thirty functions with weights of a Pareto
law, 16 machines a side, loads and costs lognormal. What a function of 1% must grow by to be reported is worked out
from a healthy pair of one fleet; growth by that factor, and by half of it, 1 + (factor − 1) / 2, is planted in another
pair of the same fleet, at a function of 0.5 to 2% drawn by seed. With `--cheaper`, functions become cheaper instead, by
1 / factor. Prints how many of the planted functions were named, and how many others, with standard errors.
"""

import argparse
import math

import numpy as np
import pandas as pd

from analysis.profiling.regressions.comparison import CostComparison
from models.arrays import Floats
from models.randomness import stream

_SERVICES, _OWN, _MACHINES, _SAMPLES = 3, 30, 16, 300
_SPREAD, _LOAD = 0.2, 0.4
_DRAWS_OF_A_FLEET = 10


def weights_of(rng: np.random.Generator) -> Floats:
    """Return (services, functions) shares within services."""
    weight = rng.pareto(1.2, (_SERVICES, _OWN)) + 0.1
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def profile(weights: Floats, rng: np.random.Generator, changed: int = -1, factor: float = 1.0) -> pd.DataFrame:
    """Return samples of machines that run every service."""
    rows = []
    for machine in rng.integers(1 << 40, size=_MACHINES).tolist():
        for service, weight in enumerate(weights):
            cost = weight * rng.lognormal(0.0, _SPREAD, _OWN)
            if changed // _OWN == service:
                cost[changed % _OWN] *= factor
            seen = rng.multinomial(rng.poisson(_SAMPLES * rng.lognormal(0.0, _LOAD)), cost / cost.sum())
            rows += [(f"f{service * _OWN + at}", f"s{service}", machine, n, 10 * n) for at, n in enumerate(seen) if n]
    return pd.DataFrame(rows, columns=["function", "application", "machine", "samples", "value"])


def main() -> None:
    """Print the shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="number of the first draw, for others than those before")
    parser.add_argument("--cheaper", action="store_true")
    asked = parser.parse_args()
    named, others = {"whole": 0, "half": 0}, 0
    for draw in range(asked.first, asked.first + asked.draws):
        fleet, rng = draw // _DRAWS_OF_A_FLEET, stream(draw, "detectable draw")
        weights = weights_of(stream(fleet, "detectable fleet"))
        share = weights.ravel() / _SERVICES
        healthy = CostComparison.of(profile(weights, rng), profile(weights, rng))
        (factor,) = healthy.detectable(None, (0.01,))["factor"].tolist()
        changed = int(rng.choice(np.flatnonzero((share > 0.005) & (share < 0.02))))
        for size, multiple in (("whole", factor), ("half", 1.0 + (factor - 1.0) / 2.0)):
            after = profile(weights, rng, changed, 1.0 / multiple if asked.cheaper else multiple)
            compared = CostComparison.of(profile(weights, rng), after)
            rows = compared.improvements() if asked.cheaper else compared.alarms()
            functions = set(rows["function"])
            named[size] += f"f{changed}" in functions
            others += len(functions - {f"f{changed}"})
    for size, count in named.items():
        rate = count / asked.draws
        error = math.sqrt(rate * (1.0 - rate) / asked.draws)
        print(f"{size} of the stated growth: named in {rate:.1%} ± {error:.1%} of {asked.draws} draws")
    print(f"other functions named: {others} in {2 * asked.draws} comparisons")


if __name__ == "__main__":
    main()
