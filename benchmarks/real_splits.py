"""How often intervals hold no change when there is none: random splits of real one-value-per-machine tables.

Usage: python benchmarks/real_splits.py FILE… [--splits 500] [--machines 30,100,300] [--seed 1] [--json]

Each split takes half of a file's machines as the current fleet and some of the other half as the test cluster. Nothing
changed, so an interval is right when it holds 0. The nominal level at t = 2 is 95.4%. "warned" is the share of splits
with a warning that there are too few machines for such tails; "else" is the share of the other splits that hold 0.
"""

import argparse
from pathlib import Path

import pandas as pd

from analysis.audit.intervals import heavy_tails_of_samples
from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.estimators import WSMeter
from analysis.wsmeter.measurements import read_measurements
from analysis.wsmeter.summaries import Current
from models.randomness import stream
from scenarios.effects.validate import binomial_interval
from scenarios.views.section import Section, table
from scenarios.views.terminal import console, dumps, show

LEGEND = (
    "holds 0: splits whose interval holds 0, the truth, with the 95% interval of that share; warned: splits with a "
    "warning of heavy tails; else: holds 0 among the others; below, above: splits whose interval is below, above 0"
)
KINDS = ("population", "sample")
ESTIMATORS = tuple(WSMeter(widening=w, current_is=kind) for kind in KINDS for w in (1.0, 1.2))
"""With one job and one value per machine, the machine baseline is the same as WSMeter without widening."""


def splits(table, sizes, repeats, seed):
    """Return one row per split, size and estimator: change, low, high, margin, and whether tails were warned of."""
    rng, half = stream(seed, "splits"), len(table) // 2
    if max(sizes) > half:
        raise NotEnoughDataError(2 * max(sizes), len(table), "machines")
    rows = []
    for split in range(repeats):
        order = rng.permutation(len(table))
        current = Current.of(table.take(order[:half]))
        for size in sizes:
            new = Current.of(table.take(order[half : half + size]))
            values = current.machine_value, new.machine_value
            warned = {kind: bool(heavy_tails_of_samples(*values, whole=kind == "population")) for kind in KINDS}
            for each in ESTIMATORS:
                made = each.estimate(current, new)
                rows.append(
                    {"split": split, "machines": size, "estimator": each.name, "current_is": each.current_is}
                    | {"warned": warned[each.current_is]}
                    | {name: getattr(made, name) for name in ("change", "low", "high", "margin")}
                )
    return pd.DataFrame(rows)


def coverage(made):
    """Return the share of splits whose interval holds 0, with its 95% interval, by size and estimator."""
    rows = []
    for (size, kind, name), group in made.groupby(["machines", "current_is", "estimator"], sort=False):
        right = (group["low"] <= 0) & (group["high"] >= 0)
        hits, quiet = int(right.sum()), right[~group["warned"]]
        low, high = binomial_interval(hits, len(group))
        rows.append(
            {
                "machines": size,
                "current_is": kind,
                "estimator": name,
                "splits": len(group),
                "covers": hits / len(group),
                "covers_low": low,
                "covers_high": high,
                "warned": float(group["warned"].mean()),
                "covers_else": float(quiet.mean()) if len(quiet) else None,
                "margin": group["margin"].mean(),
                "bias": group["change"].mean(),
                "too_low": float((group["high"] < 0).mean()),
                "too_high": float((group["low"] > 0).mean()),
            }
        )
    return rows


def sections(payload):
    """Yield how often the intervals held 0, file by file."""
    headings = ("machines", "current is", "estimator", "holds 0", "95% interval", "warned", "else", "margin")
    for file in payload["files"]:
        shape = f"{file['machines']:,} machines, σ {file['std']:.1%} of the mean, skewness {file['skewness']:+.2f}"
        rows = [
            (
                str(row["machines"]),
                f"a {row['current_is']}",
                row["estimator"],
                f"{row['covers']:.1%}",
                f"{row['covers_low']:.1%}–{row['covers_high']:.1%}",
                f"{row['warned']:.0%}",
                "" if row["covers_else"] is None else f"{row['covers_else']:.1%}",
                f"±{row['margin']:.2%}",
                f"{row['too_low']:.1%}",
                f"{row['too_high']:.1%}",
            )
            for row in file["rows"]
        ]
        title = f"{file['file']}: {shape}"
        yield Section("", (table((*headings, "below", "above"), rows, title, words=3, keys=3, caption=LEGEND),))


def judged(path, sizes, repeats, seed):
    table = read_measurements(path).table
    value = table["value"]
    shape = {"machines": len(table), "std": value.std() / value.mean(), "skewness": float(value.skew())}
    return {"file": path.name} | shape | {"rows": coverage(splits(table, sizes, repeats, seed))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--splits", type=int, default=500)
    parser.add_argument("--machines", default="30,100,300")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    sizes = [int(size) for size in asked.machines.split(",")]
    files = [judged(path, sizes, asked.splits, asked.seed) for path in asked.files]
    payload = {"kind": "splits", "files": files}
    if asked.json:
        print(dumps(payload))
    else:
        for section in sections(payload):
            show(section, console())


if __name__ == "__main__":
    main()
