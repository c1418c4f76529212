"""How far apart slots of fleets of another making are though nothing differs, beside random pairs and the best of them.

Usage: python -m tests.helpers.outside_slots [--fleets 300] [--conditions base,three_platforms] [--machines 400]
       python -m tests.helpers.outside_slots --at-once [--fleets 20] [--machines 2000]

Of each fleet the past alone is known when it is cut. Then the change between two slots is estimated on later days,
in which nothing differs either. Rivals are as many pairs of random sets of machines of the same size, and as many times
the best of a thousand such pairs: the one that is closest in the past in all that slots are balanced by
(rerandomisation), and the one whose plain A/A difference is smallest in the past. Ratios are of root mean squares;
errors are over fleets. As slots are five pairs of a fleet, so are the best: with one of each in 200 fleets errors were
0.06, and a ratio was 1.13 by chance.

`--at-once` counts how often intervals hold the truth where many experiments run together: `pairs`, 50 features on a
slot each beside 50 slots of controls; `shared`, the same with all of these as controls of each; `crossed`, 10 features
on half of 16 slots each, every two of them together on a quarter (columns of a Hadamard matrix).
"""

import argparse
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.linalg import hadamard

from analysis.effects.cells import of_machines
from analysis.effects.estimators.adjusted import Adjusted
from analysis.effects.estimators.in_slots import InSlots
from analysis.effects.methods import method
from analysis.effects.overlaps import SlotExperiment, taken_out
from analysis.effects.slots import cut
from analysis.effects.strata import StratifiedFleet
from analysis.effects.study import Study, potential
from tests.helpers.outside_fleets import CONDITIONS, fleet

SLOTS, RANDOM = 10, 1000
ESTIMATORS = ("adjusted", "own-past", "cuped", "unadjusted")


def untreated(condition, rng):
    """Return a fleet's observations without the feature, past and study, each platform in each of four clusters."""
    rows = fleet(condition, rng).rows
    table = pd.DataFrame({name: values for name, values in rows.items() if name not in {"on", "off"}})
    return table.assign(value=rows["off"], treated=0, cluster=rows["machine"] // 3 % 4)


def differences(cells, first, other, estimators=ESTIMATORS):
    """Return what estimators say of machines `first` against `other` where nothing differs."""
    having, others = cells.machines.isin(first), cells.machines.isin(other)
    both = of_machines(cells, having | others)
    return [float(method(name).many(both, having[having | others][None]).change[0]) for name in estimators]


def of_fleet(condition, rng, slots=SLOTS):
    """Return A/A differences by how the pair was chosen, (pairs, estimators) each."""
    table = untreated(condition, rng)
    later = table["period"] >= condition.before
    past, cells = table[~later], potential(table[~later], table[later], table[later])
    machines = StratifiedFleet.of(past)
    done = cut(machines, slots, seed=int(rng.integers(2**31)))
    names, size = machines.names, len(machines.names) // slots
    pairs = {"slots": [(names[done.slot == k], names[done.slot == k + 1]) for k in range(0, slots - 1, 2)]}
    by = machines.variables.index("past performance")
    pairs |= {name: [] for name in ("random", "closest", "least_difference")}
    for _ in pairs["slots"]:
        drawn = [rng.permutation(len(names))[: 2 * size].reshape(2, size) for _ in range(RANDOM)]
        apart = np.array([machines.scaled[a].sum(axis=0) - machines.scaled[b].sum(axis=0) for a, b in drawn])
        best = {
            "random": 0,
            "closest": (apart**2).sum(axis=1).argmin(),
            "least_difference": np.abs(apart[:, by]).argmin(),
        }
        for name, number in best.items():
            a, b = drawn[number]
            pairs[name].append((names[a], names[b]))
    return {name: np.array([differences(cells, *pair) for pair in chosen]) for name, chosen in pairs.items()}


def ratios(fleets, rng):
    """Return the root mean square of each kind of pair, and that of slots over it with its bootstrap error."""
    squares = {name: np.array([(found[name] ** 2).mean(axis=0) for found in fleets]) for name in fleets[0]}
    drawn = rng.integers(len(fleets), size=(1000, len(fleets)))
    rows = []
    for name, of in squares.items():
        ratio = np.sqrt(squares["slots"][drawn].mean(axis=1) / of[drawn].mean(axis=1))
        for place, estimator in enumerate(ESTIMATORS):
            rms = np.sqrt(of[:, place].mean())
            whole = np.sqrt(squares["slots"][:, place].mean()) / rms
            rows.append((name, estimator, rms, whole, ratio[:, place].std()))
    return pd.DataFrame(rows, columns=["pairs", "estimator", "rms", "slots_over", "error"])


def at_once(condition, rng, arrangement, elsewhere=True):
    """Return change, half-width and truth of experiments that run together in one new fleet, (E, 3)."""
    drawn = fleet(replace(condition, change=0.06), rng)
    table = pd.DataFrame({name: values for name, values in drawn.rows.items() if name not in {"on", "off"}})
    off, gain = drawn.rows["off"], drawn.rows["on"] / drawn.rows["off"] / 1.06
    during, slots = (table["period"] >= condition.before).to_numpy(), 16 if arrangement == "crossed" else 100
    machines = StratifiedFleet.of(table[~during].assign(value=off[~during], cluster=table["machine"][~during] // 3 % 4))
    done = cut(machines, slots, seed=int(rng.integers(2**31)))
    table["treated"] = 0
    table["slot"] = pd.Series(done.slot.astype(str), machines.names).reindex(table["machine"]).to_numpy()
    planned = list(_plan(arrangement, slots, condition.before, rng))
    effects, value, jobs = rng.uniform(-0.05, 0.05, len(planned)), off.copy(), pd.DataFrame(drawn.jobs)
    for experiment, effect in zip(planned, effects, strict=True):
        times = (1.0 + effect) * (1.0 if arrangement == "crossed" else gain)
        value = np.where(during & table["slot"].isin(experiment.treated).to_numpy(), value * times, value)
    table["value"], answers = value, []
    estimator = InSlots(Adjusted(), pd.Series(machines.stratum, machines.names))

    def estimated(number, observed):
        experiment, others = planned[number], [*planned[:number], *planned[number + 1 :]]
        parts = [experiment.rows(observed), experiment.elsewhere(observed, others)]
        study = Study.of(pd.concat(parts[: 1 + elsewhere], ignore_index=True), jobs)
        return estimator.many(study.cells, study.treated[None])

    numbers = range(len(planned))
    if arrangement == "crossed":
        first = [float(estimated(number, table).change[0]) for number in numbers]
        beside = [[(planned[at], first[at]) for at in numbers if at != number] for number in numbers]
    for number, effect in enumerate(effects):
        said = estimated(number, taken_out(table, beside[number]) if arrangement == "crossed" else table)
        mean_gain = 1.0 if arrangement == "crossed" else (1.0 + drawn.truth["instances"]) / 1.06
        answers.append((float(said.change[0]), float(said.margin()[0]), (1.0 + effect) * mean_gain - 1.0))
    return np.array(answers)


def _plan(arrangement, slots, since, rng):
    """Yield the experiments of an arrangement."""
    order = [str(slot) for slot in rng.permutation(slots)]
    for number in range(10 if arrangement == "crossed" else 50):
        if arrangement == "crossed":
            having = hadamard(slots)[:, 1 + number] > 0
            arms = [frozenset(np.array(order)[of].tolist()) for of in (having, ~having)]
            yield SlotExperiment(str(number), *arms, since)
        else:
            controls = order[50:] if arrangement == "shared" else [order[50 + number]]
            yield SlotExperiment(str(number), frozenset([order[number]]), frozenset(controls), since)


def coverage(fleets):
    """Return the share of intervals that hold the truth, its error over fleets, bias and mean half-width in points."""
    change, margin, truth = np.moveaxis(np.array(fleets), -1, 0)
    held = (np.abs(change - truth) <= margin).mean(axis=1)
    error = held.std(ddof=1) / np.sqrt(len(held))
    return f"{held.mean():.4f} ± {error:.4f}, bias {100 * (change - truth).mean():+.3f}, half {100 * margin.mean():.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fleets", type=int, default=300)
    parser.add_argument("--machines", type=int, default=400)
    parser.add_argument("--conditions", default="base,three_platforms,no_shards,machines_persist,season_and_churn")
    parser.add_argument("--at-once", action="store_true", help="count coverage of experiments that run together")
    asked = parser.parse_args()
    for name in asked.conditions.split(","):
        condition = replace(CONDITIONS[name], machines=asked.machines, change=0.0)
        for arrangement in ("pairs", "crossed", "shared") if asked.at_once else ():
            fleets = [
                at_once(condition, np.random.default_rng([1, number]), arrangement) for number in range(asked.fleets)
            ]
            print(name, arrangement, coverage(fleets), flush=True)
        if not asked.at_once:
            fleets = [of_fleet(condition, np.random.default_rng([1, number])) for number in range(asked.fleets)]
            print(name, flush=True)
            print(ratios(fleets, np.random.default_rng(2)).round(4).to_string(index=False), flush=True)


if __name__ == "__main__":
    main()
