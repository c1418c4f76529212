"""How often guards alarm on experiments of another making: healthy ones of 12 kinds, and planted faults.

Usage: python -m tests.helpers.outside_guards [--sets 504] [--seed 1] [--planted 50] [--only early_feature,spill_over]

Nothing is wrong with the healthy experiments: machines were drawn at random, as many as were planned, and intervals
hold the truth. Counted are warnings and errors, of each guard, and data sets with any error. A planted fault has three
strengths; counted are the data sets in which its guard gives a warning or an error. Each data set is a new fleet.
"""

import argparse
from collections import Counter

import numpy as np
import pandas as pd

from analysis.audit.about import About
from analysis.audit.case import examine
from analysis.audit.guards import GUARDS
from tests.helpers.outside_fleets import CONDITIONS, Condition, fleet

HEALTHY = (
    "base", "no_change", "half", "twelve_treated", "plus_30", "effect_by_size", "lognormal_noise", "season_and_churn",
    "missing_rows", "many_jobs", "one_day", "no_shards",
)  # fmt: skip


def active_early(made, rows, share, rng):
    """On the last day of the past a share of the machines that get the feature has it already, and no row says so."""
    having = np.unique(rows["machine"][rows["treated"] == 1])
    early = rng.choice(having, round(share * len(having)), replace=False)
    last = (rows["period"] == made.condition.before - 1) & np.isin(rows["machine"], early)
    return rows | {"value": np.where(last, made.rows["on"], rows["value"])}


def spilled(made, rows, slope, rng):
    """Machines without the feature gain by so much times the share of their domain's machines that have it."""
    domain = np.arange(made.condition.machines) // (2 * made.condition.racks)
    having = np.isin(np.arange(made.condition.machines), rows["machine"][rows["treated"] == 1])
    share = (np.bincount(domain, having) / np.bincount(domain))[domain[rows["machine"]]]
    felt = (rows["period"] >= made.condition.before) & (rows["treated"] == 0)
    value = rows["value"] * np.where(felt, 1.0 + slope * share, 1.0)
    return rows | {"value": value, "domain": domain[rows["machine"]]}


def vanished(made, rows, share, rng):
    """The slowest of the machines with the feature report nothing on the last day of the study."""
    treated = rows["treated"] == 1
    relative = rows["value"] / (np.bincount(rows["job"], rows["value"]) / np.bincount(rows["job"]))[rows["job"]]
    count = np.maximum(np.bincount(rows["machine"], treated, made.condition.machines), 1)
    having = np.unique(rows["machine"][treated])
    speed = (np.bincount(rows["machine"], treated * relative, made.condition.machines) / count)[having]
    gone = having[np.argsort(speed)[: round(share * len(having))]]
    there = ~((rows["period"] == rows["period"].max()) & np.isin(rows["machine"], gone))
    return {name: values[there] for name, values in rows.items()}


def controls_treated(made, rows, share, rng):
    """A share of the machines that are told to lack the feature has it in the study."""
    lacking = np.setdiff1d(np.arange(made.condition.machines), rows["machine"][rows["treated"] == 1])
    having = rng.choice(lacking, round(share * len(lacking)), replace=False)
    on = (rows["period"] >= made.condition.before) & np.isin(rows["machine"], having)
    return rows | {"value": np.where(on, made.rows["on"], rows["value"])}


def clocks_late(made, rows, share, rng):
    """The clocks of a share of the machines that get the feature are a day late; what is then after the end is lost."""
    having = np.unique(rows["machine"][rows["treated"] == 1])
    late = np.isin(rows["machine"], rng.choice(having, round(share * len(having)), replace=False))
    period = rows["period"] + late
    treated = (period >= made.condition.before) & np.isin(rows["machine"], having)
    there = period < made.condition.before + made.condition.study
    return {name: values[there] for name, values in (rows | {"period": period, "treated": treated.astype(int)}).items()}


PLANTED = {
    "early_feature": (Condition(), active_early, (0.1, 0.5, 1.0)),
    "contaminated_controls": (CONDITIONS["plus_30"], controls_treated, (0.05, 0.2, 0.5)),
    "shifted_clocks": (Condition(season_sd=0.05), clocks_late, (0.3, 0.7, 1.0)),
    "spill_over": (Condition(racks=5), spilled, (0.02, 0.15, 0.3)),
    "vanished_machines": (Condition(), vanished, (0.05, 0.3, 0.6)),
}
"""By the guard's code: the kind of fleet, how the fault is planted, and its three strengths."""


def planted(code, strength, seed, number):
    """Return the table of observations and the fleet of one data set with a fault."""
    condition, plant, _ = PLANTED[code]
    rng = np.random.default_rng([seed, number, len(HEALTHY)])
    made = fleet(condition, rng)
    return pd.DataFrame(plant(made, made.observed(made.assigned(rng)), strength, rng)), made


def caught(code, strength, sets, seed=1):
    """Return in how many data sets the guard of a fault warns or more."""
    guards, count = {code: GUARDS[code]}, 0
    for number in range(sets):
        table, made = planted(code, strength, seed, number)
        found = examine(table, pd.DataFrame(made.jobs), guards=guards).findings
        count += any(one.severity != "note" for one in found)
    return count


def findings(name, seed, number, guards=GUARDS):
    """Return what the guards find in one healthy data set."""
    rng = np.random.default_rng([seed, number, HEALTHY.index(name)])
    made = fleet(CONDITIONS[name], rng)
    table = pd.DataFrame(made.observed(made.assigned(rng)))
    table["domain"] = table["machine"] // (2 * CONDITIONS[name].racks)
    about = About(selection="random", planned_share=CONDITIONS[name].treated / CONDITIONS[name].machines)
    return examine(table, pd.DataFrame(made.jobs), about, guards=guards).findings


def alarms(sets, seed=1, guards=GUARDS):
    """Return the alarms of each guard in each kind of fleet, and the data sets with any error."""
    counts, errors = Counter(), 0
    for number in range(sets // len(HEALTHY)):
        for name in HEALTHY:
            found = findings(name, seed, number, guards)
            counts.update({(one.code, one.severity, name) for one in found if one.severity != "note"})
            errors += any(one.severity == "error" for one in found)
    return counts, errors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=504)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--planted", type=int, default=50, help="data sets of each strength of a planted fault")
    parser.add_argument("--only", help="codes of guards; all of them if left out")
    asked = parser.parse_args()
    only = asked.only.split(",") if asked.only else list(GUARDS)
    for code in filter(PLANTED.get, only):
        strengths = PLANTED[code][2]
        times = [caught(code, strength, asked.planted, asked.seed) for strength in strengths]
        told = ", ".join(f"{count} at {strength:g}" for count, strength in zip(times, strengths, strict=True))
        print(f"{code}: planted in {asked.planted} sets, caught in {told}", flush=True)
    counts, errors = alarms(asked.sets, asked.seed, {code: GUARDS[code] for code in only})
    sets = asked.sets // len(HEALTHY) * len(HEALTHY)
    for code in sorted({code for code, _, _ in counts}):
        of_code = {key: count for key, count in counts.items() if key[0] == code}
        kinds = ", ".join(f"{kind} {severity} {count}" for (_, severity, kind), count in sorted(of_code.items()))
        print(f"{code}: {sum(of_code.values())} of {sets} ({kinds})")
    print(f"any error: {errors} of {sets}")


if __name__ == "__main__":
    main()
