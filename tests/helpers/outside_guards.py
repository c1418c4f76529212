"""How often guards alarm on healthy experiments of another making: 12 kinds of fleet, each data set a new one.

Usage: python -m tests.helpers.outside_guards [--sets 504] [--seed 1]

Nothing is wrong with these experiments: machines were drawn at random, and intervals hold the truth. Counted are
warnings and errors, of each guard, and data sets with any error.
"""

import argparse
from collections import Counter

import numpy as np
import pandas as pd

from analysis.audit.case import examine
from analysis.audit.guards import GUARDS
from tests.helpers.outside_fleets import CONDITIONS, fleet

HEALTHY = (
    "base", "no_change", "half", "twelve_treated", "plus_30", "effect_by_size", "lognormal_noise", "season_and_churn",
    "missing_rows", "many_jobs", "one_day", "no_shards",
)  # fmt: skip


def findings(name, seed, number):
    """Return what the guards find in one healthy data set."""
    rng = np.random.default_rng([seed, number, HEALTHY.index(name)])
    made = fleet(CONDITIONS[name], rng)
    table = pd.DataFrame(made.observed(made.assigned(rng)))
    return examine(table, pd.DataFrame(made.jobs), guards=GUARDS).findings


def alarms(sets, seed=1):
    """Return the alarms of each guard in each kind of fleet, and the data sets with any error."""
    counts, errors = Counter(), 0
    for number in range(sets // len(HEALTHY)):
        for name in HEALTHY:
            found = findings(name, seed, number)
            counts.update({(one.code, one.severity, name) for one in found if one.severity != "note"})
            errors += any(one.severity == "error" for one in found)
    return counts, errors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=504)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    counts, errors = alarms(asked.sets, asked.seed)
    sets = asked.sets // len(HEALTHY) * len(HEALTHY)
    for code in sorted({code for code, _, _ in counts}):
        of_code = {key: count for key, count in counts.items() if key[0] == code}
        kinds = ", ".join(f"{kind} {severity} {count}" for (_, severity, kind), count in sorted(of_code.items()))
        print(f"{code}: {sum(of_code.values())} of {sets} ({kinds})")
    print(f"any error: {errors} of {sets}")


if __name__ == "__main__":
    main()
