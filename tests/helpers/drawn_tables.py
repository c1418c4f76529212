"""What every drawn row of the papers and of the world measures in a small made-up world, ready to be drawn."""

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from analysis.figures.criteria import numbers, printed
from analysis.figures.crossplatform import choices, prediction, traits
from analysis.figures.gwp import profiles, square_root
from analysis.figures.occupancy import accuracy, capacity, staircases
from analysis.figures.world import designs, mechanism, variations
from analysis.figures.wsmeter import (
    cost,
    dependence,
    motivation,
    plans,
    sampling,
    selection,
    studies,
    throughput,
)
from models.queues.serve import serve
from scenarios.papers.rows import published
from scenarios.papers.variations import SWITCHES
from tests.helpers.reproduce_worlds import fleet

DRAWS = 12
MIX = np.arange(1, 31) ** -1.0 / (np.arange(1, 31) ** -1.0).sum()


def _fleet(**world):
    effect = 0.04 * np.sign(np.arange(60) % 2 - 0.5)
    return fleet(**{"machines": 900, "slots": 8, "effect": effect, "instance_sd": 0.15, **world})


def _two_wscs():
    first, second = (_fleet(seed=seed) for seed in (1, 2))
    return (
        first,
        first.jobs,
        second.jobs.assign(job=second.jobs["job"] + 30, name=second.jobs["name"].shift(-30, fill_value="other")),
    )


def _served(servers, *stamps):
    rng = np.random.default_rng(1)
    arrival = np.sort(np.concatenate([rng.uniform(0, 1800, 300), rng.uniform(600, 660, 60)]))
    demand = rng.uniform(1, 2, arrival.size)
    parts = []
    for k in servers:
        of = serve("fcfs", arrival, demand, k)
        columns = {"servers": k, "arrival_s": arrival, "departure_s": of.departure_s, "demand_s": demand}
        parts.append(pd.DataFrame({**columns, "start_s": of.start_s}))
    return pd.concat(parts, ignore_index=True)


def _utilisation(error):
    counted = 0.5 + 0.45 * np.sin(np.arange(60) / 6)
    law = counted + error * np.random.default_rng(2).standard_normal(60)
    raw = np.abs(law - counted)
    columns = {"start_s": 60.0 * np.arange(60), "counted": counted, "law": law, "raw": raw, "normalised": raw / counted}
    return pd.DataFrame({**columns, "jobs": 6 * counted, "fewest": 3 * counted, "most": 12 * counted})


def _day():
    rng, hours = np.random.default_rng(1), np.linspace(0, 10, 200)
    volume, share = 300 * (1 + 0.6 * np.sin(2.5 * hours)), 1 / (1 + 3 ** np.sin(hours))
    counts = {"a": rng.poisson(volume * share) + 1, "b": rng.poisson(volume * (1 - share)) + 1}
    long = [pd.DataFrame({"start_s": 3600 * hours, "type": name, "requests": n}) for name, n in counts.items()]
    return pd.concat(long), pd.DataFrame(
        {"start_s": 3600 * hours, "instructions": 1e7 * (9 * counts["a"] + counts["b"])}
    )


def _sweep():
    size, rng = 2.0 ** np.arange(14, 25), np.random.default_rng(2)
    parts = []
    for name, slope in traits.SLOPES.items():
        misses = 0.1 * (size / 2**14) ** slope * np.exp(rng.normal(0, 0.05, size.size))
        parts.append(
            pd.DataFrame({"application": name, "seed": 1, "size_bytes": size, "misses_per_instruction": misses})
        )
    return pd.concat(parts)


def _mixes():
    rng, actual = np.random.default_rng(3), np.geomspace(1e8, 1e10, 100)
    metrics = {"instructions": 1.0, "l1_misses": 0.01, "l2_misses": 0.001}
    parts = [
        pd.DataFrame(
            {
                "metric": name,
                "seed": 1,
                "actual": scale * actual,
                "predicted": scale * actual * rng.uniform(0.9, 1.1, 100),
            }
        )
        for name, scale in metrics.items()
    ]
    return pd.concat(parts)


def _errors(benchmark=True):
    rng = np.random.default_rng(4)
    medians = {
        "cycle_scalar": 0.4,
        "cycle_mix": 0.3,
        "benchmark": 0.2,
        "published": 0.1,
        "calibrated": 0.08,
        "testbed": 0.05,
    }
    rows = [
        (name, target, seed, error * rng.uniform(0.7, 1.3))
        for name, error in medians.items()
        if benchmark or name != "benchmark"
        for target in prediction.TARGETS
        for seed in range(4)
    ]
    return prediction.measure_errors(pd.DataFrame(rows, columns=["method", "target", "seed", "service_error"]))


def _directions():
    rng, parts = np.random.default_rng(5), []
    for application in traits.APPLICATIONS:
        for origin, target in prediction.DIRECTIONS:
            for method in (prediction.OURS, prediction.NAIVE, prediction.SCORED):
                named = {"application": application, "direction": f"{origin}_to_{target}", "method": method, "seed": 1}
                parts.append(pd.DataFrame({**named, "error": rng.uniform(0, 0.25, 50)}))
    means = pd.DataFrame({"platform": ["piii", "pres", "xeon"], "response_time_s": [0.26, 0.11, 0.09]})
    return pd.concat(parts), means


def _situations():
    rows = [(name, 1, *of) for name in traits.APPLICATIONS for of in (("workload", 0.06, 0.05), ("platform", 0.3, 0.1))]
    return pd.DataFrame(rows, columns=["application", "seed", "situation", "network", "ours"])


def _worth():
    rng, parts = np.random.default_rng(6), []
    for seed in range(3):
        actual = 1.1 ** np.arange(10)
        for method, sd in {"actual": 0.0, "cycle_scalar": 0.6, "benchmark": 0.3, "published": 0.1}.items():
            worth = actual * np.exp(rng.normal(0, sd, 10))
            parts.append(
                pd.DataFrame(
                    {"seed": seed, "platform": prediction.TARGETS, "method": method, "throughput_per_watt": worth}
                )
            )
    return choices.wrong(pd.concat(parts))


def _days(samples=20_000, drift=0.0):
    rng = np.random.default_rng(7)
    mixes = [(1 - w) * MIX + w * np.roll(MIX, 1) for w in drift * rng.uniform(size=14)]
    parts = [
        pd.DataFrame({"day": day, "entry": range(30), "samples": rng.multinomial(samples, mix)})
        for day, mix in enumerate(mixes)
    ]
    return pd.concat(parts, ignore_index=True)


def _instances():
    rng, parts, flat = np.random.default_rng(8), [], MIX**0.3 / (MIX**0.3).sum()
    for machine in range(60):
        drawn = rng.multinomial(int(10 ** rng.uniform(1, 4)), (MIX, flat)[machine % 2])
        parts.append(pd.DataFrame({"machine": machine, "entry": range(30), "samples": drawn, "state": machine % 2}))
    return pd.concat(parts, ignore_index=True)


def _by_machine():
    rng = np.random.default_rng(9)
    counts = pd.DataFrame([rng.multinomial(2000, mix) for mix in rng.dirichlet(20 * MIX, 64)])
    return counts.rename_axis("machine").reset_index().melt("machine", var_name="entry", value_name="samples")


def _ablation():
    rng = np.random.default_rng(10)
    base = {
        "change": 0.06,
        "machine_cv": 0.12,
        "job_cv": 0.1,
        "slowdown": 1.3,
        "speed": 2e9,
        "margin": 0.02,
        "coverage": 0.9,
        "moved": 0.0,
    }
    rows = [
        {
            "seed": seed,
            "switch": switch,
            "rack_variance_ratio": 2.0,
            **{name: value * rng.uniform(0.7, 1.2) for name, value in base.items()},
        }
        for seed in range(3)
        for switch in SWITCHES
    ]
    return variations.measure_ablation(pd.DataFrame(rows))


def _covariance():
    rows = [
        {"seed": seed, "axis": axis, "level": level, "correlation": 4 * level, "draws": 100}
        | {
            "covered": 0.95 - level,
            "truth": 0.93 - level,
            "covered_widened": 0.98 - level,
            "truth_widened": 0.96 - level,
        }
        for axis in variations.AXES
        for level in (0.0, 0.02, 0.05, 0.1)
        for seed in range(3)
    ]
    return variations.measure_covariance(pd.DataFrame(rows))


def _draws(names):
    rng, parts = np.random.default_rng(11), []
    for name in names:
        composed = 0.07 + 0.005 * rng.standard_normal(24)
        draw = {"design": name, "seed": np.repeat(range(6), 4), "draw": np.tile(range(4), 6), "composed": composed}
        settled = {"margin": 0.02, "composed_margin": 0.02, "truth": 0.07, "reference": 0.07, "quota_coverage": 0.9}
        parts.append(pd.DataFrame({**draw, "real": composed + 0.003 * rng.standard_normal(24), **settled}))
    return pd.concat(parts, ignore_index=True)


def _mechanism():
    rng = np.random.default_rng(12)
    stall, capped = rng.random(300), rng.random(300)
    gain = 0.03 - 0.1 * stall + 0.05 * capped + 0.01 * rng.standard_normal(300)
    return mechanism.measure_mechanism(pd.DataFrame({"gain": gain, "stall_share": stall, "capped_share": capped}), 0.65)


def _calibration():
    facts = printed(published("world/calibration"))
    rng = np.random.default_rng(13)
    return numbers(**dict(zip(facts["series"], facts["value"] * rng.uniform(0.6, 2.6, len(facts)), strict=True)))


def _both_changes():
    rng = np.random.default_rng(14)
    ipc = rng.normal(0.05, 0.05, 60)
    return pd.DataFrame({"job": range(60), "ipc": ipc, "throughput": ipc + rng.normal(0, 0.02, 60), "instances": 30})


def _gwp(measure, *frames):
    return lambda: measure(*frames)


TABLES: Mapping[str, Callable[[], pd.DataFrame]] = {
    "wsmeter/fig1": lambda: motivation.measure_fig1(_fleet()),
    "wsmeter/fig2": lambda: motivation.measure_fig2(_fleet(instance_sd=0.03)),
    "wsmeter/fig3": lambda: motivation.measure_fig3(_fleet()),
    "wsmeter/fig4": lambda: selection.measure_fig4(*_two_wscs()[1:]),
    "wsmeter/fig5": lambda: selection.measure_fig5(*_two_wscs()[1:]),
    "wsmeter/fig6": lambda: selection.measure_fig6(_two_wscs()[0], _two_wscs()[2]),
    "wsmeter/fig7": lambda: sampling.measure_fig7(_fleet(), resamples=20),
    "wsmeter/fig8": lambda: dependence.measure_fig8(_fleet(), most=200, resamples=3),
    "wsmeter/fig9": lambda: dependence.measure_fig9(_fleet(jobs=20, effect=0.0), top=20, resamples=5),
    "wsmeter/fig11": lambda: sampling.measure_fig11(_fleet(), trials=200),
    "wsmeter/fig12": lambda: plans.measure_fig12(_fleet(), tops=(20, 40, 60)),
    "wsmeter/fig13": lambda: cost.measure_fig13(_fleet(), draws=DRAWS),
    "wsmeter/fig16": lambda: cost.measure_fig16(_fleet(), draws=DRAWS),
    "wsmeter/fig17": lambda: studies.measure_fig17(_fleet(), draws=DRAWS),
    "wsmeter/fig18": lambda: studies.measure_fig18(_fleet(), draws=DRAWS),
    "wsmeter/fig19": lambda: studies.measure_fig19(_fleet(), draws=DRAWS),
    "wsmeter/table2-local": lambda: numbers(
        **{f"change_fleet{end}": 0.066 + d for end, d in (("", 0.0), ("_low", -0.01), ("_high", 0.01))},
        **{f"change_local{end}": 0.11 + d for end, d in (("", 0.0), ("_low", -0.01), ("_high", 0.01))},
    ),
    "wsmeter/efficiency": lambda: cost.measure_efficiency(_fleet(), draws=DRAWS),
    "wsmeter/ipc-vs-throughput": lambda: throughput.measure_ipc_vs_throughput(_both_changes(), _both_changes(), 20),
    "occupancy/fig2": staircases.measure_fig2,
    "occupancy/fig3": lambda: staircases.measure_fig3(_served((2,)), 2),
    "occupancy/fig4": lambda: staircases.measure_fig4(_served((2, 4)), 2, 4),
    "occupancy/fig5": lambda: staircases.measure_fig5(_served((1, 2))),
    "occupancy/fig6": lambda: accuracy.measure_fig6(*(_utilisation(error) for error in (0.003, 0.005, 1e-12, 0.004))),
    "occupancy/load": lambda: capacity.measure_load(_served((4,))),
    "occupancy/tightness": lambda: capacity.measure_tightness(_served((1, 2, 3, 4))),
    "crossplatform/fig2": lambda: traits.measure_fig2(*_day()),
    "crossplatform/fig3": lambda: traits.measure_fig3(_sweep()),
    "crossplatform/fig4": lambda: traits.measure_fig4(_mixes()),
    "crossplatform/table4": _errors,
    "crossplatform/table5": _errors,
    "crossplatform/table6": lambda: _errors(benchmark=False),
    "crossplatform/fig5": lambda: prediction.measure_fig5(*_directions()),
    "crossplatform/fig6": lambda: prediction.measure_fig6(_situations()),
    "crossplatform/fig7": lambda: choices.measure_fig7(_worth()),
    "gwp/fig4": lambda: profiles.measure_fig4(_days()),
    "gwp/fig5": lambda: profiles.measure_fig5(_days(), _instances()),
    "gwp/fig6a": lambda: profiles.measure_fig6a(_days(), 0.01),
    "gwp/fig6b": lambda: profiles.measure_fig6b({event: _days(drift=0.3) for event in profiles.EVENTS}),
    "gwp/fig7": lambda: profiles.measure_fig7(range(14), 1.9 + 0.002 * np.sin(np.arange(14)), 1.9),
    "gwp/sqrt-law": lambda: square_root.measure(_by_machine(), np.random.default_rng(1)),
    "world/calibration": _calibration,
    "world/ablation": _ablation,
    "world/covariance": _covariance,
    "world/dvfs-mechanism": _mechanism,
    "world/rollouts": lambda: designs.measure_rollouts(_draws(designs.DESIGNS)),
    "world/packing": lambda: designs.measure_packing(_draws(designs.WORLDS)),
}
"""Row to what makes its table."""
FURTHER: Mapping[str, Callable[[], pd.DataFrame]] = {
    "crossplatform/fig5": lambda: prediction.by_direction(_directions()[0]),
}
"""Row to what makes its further numbers, where these are drawn too."""
