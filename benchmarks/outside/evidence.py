"""Methods of other people on the scorecard: every corner of the sweep, beside three of ours on the same draws.

    python benchmarks/outside/evidence.py [--fleets 2] [--draws 100] [--machines 100] [--sizes 25] [--designs day]
        [--methods adjusted,cuped,published,gbstats-cuped,clustered-ols,machine-bootstrap] [--csv docs/outside.csv]

--fleets are those of each corner, --draws those of each fleet. The figures of the methods take the place of older ones
in the file; those of other methods stay. The environments are made on the first call, in .venv-outside; fleets are kept
in runs/ as they are done, and what was interrupted goes on. Remove those pieces after a change of the environments,
which their names do not cover.
"""

import argparse
import os
import subprocess
import venv
from pathlib import Path

import pandas as pd

import wsc
from scenarios.effects.scorecard.corners import CORNERS

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""For a process on each processor, whose threads would only wait for each other."""
HERE = Path(__file__).absolute().parent
ENVIRONMENTS = HERE.parents[1] / ".venv-outside"
METHODS = {
    "gbstats-cuped": ("gbstats_cuped.py:GbstatsCuped", "gbstats"),
    "clustered-ols": ("clustered_ols.py:ClusteredOLS", "cluster-experiments"),
    "mixed-model": ("mixed_model.py:MixedModel", "statsmodels"),
    "machine-bootstrap": ("machine_bootstrap.py:MachineBootstrap", None),
}
"""The file of each method, and the library whose environment it needs."""
QUICK = "adjusted,cuped,published,gbstats-cuped,clustered-ols,machine-bootstrap"
"""All but the mixed model, which takes three quarters of the time of all."""
COLUMNS = ("fleets", "draws", "answered", "coverage", "coverage_error", "bias", "bias_error", "sd", "margin", "power")


def environment(library: str) -> str:
    """Make a library's environment if it is not there as it is pinned, and return the pinned version."""
    folder, pins = ENVIRONMENTS / library, HERE / f"{library}.txt"
    stamp = folder / "pins.txt"
    if not stamp.is_file() or stamp.read_text() != pins.read_text():
        print(f"making {folder}", flush=True)
        venv.create(folder, clear=True, with_pip=True)
        pip = [folder / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", pins], check=True)
        stamp.write_text(pins.read_text())
    return next(line for line in pins.read_text().split() if line.startswith(f"{library}=="))


def figures(card) -> pd.DataFrame:
    """Return a row for each corner, design, size and estimator, and such rows over the corners not drawn at random."""
    rows = pd.concat([card.corners, card.overall.assign(corner="all")])
    return rows[["corner", "design", "machines", "estimator", *COLUMNS]].round(6)


def table(rows: pd.DataFrame) -> str:
    """Return the figures as they stand in docs/effects.md, a line for each design and method."""
    drawn = rows["corner"].str.startswith("drawn_")
    corners, whole = rows[~drawn & (rows["corner"] != "all")], rows[rows["corner"] == "all"]
    lines = [
        "| method | draws | coverage | least: corner | bias, greatest: corner | margin, median corner | finds +1% |"
    ]
    lines += ["|---|---|---|---|---|---|---|"]
    for (design, name), each in corners.groupby(["design", "estimator"], sort=False):
        total = whole[(whole["design"] == design) & (whole["estimator"] == name)].iloc[0]
        least, most = each.loc[each["coverage"].idxmin()], each.loc[each["bias"].abs().idxmax()]
        bias, worst = 100 * total["bias"], f"{100 * most['bias']:+.2f} `{most['corner']}`"
        cells = [
            f"`{name}`" + ("" if design == "day" else f", {design}"),
            f"{total['draws']:,.0f}",
            f"{total['coverage']:.1%} ± {100 * total['coverage_error']:.1f}",
            f"{least['coverage']:.0%} `{least['corner']}`",
            f"{bias:+.2f} ± {100 * total['bias_error']:.2f}, {worst}",
            f"{100 * each['margin'].median():.2f}",
            f"{total['power']:.0%}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Judge, print the card and the versions, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fleets", type=int, default=2)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--machines", type=int, default=100)
    parser.add_argument("--sizes", default="25")
    parser.add_argument("--designs", default="day")
    parser.add_argument("--methods", default=QUICK)
    parser.add_argument("--corners", default=",".join(CORNERS))
    parser.add_argument("--csv", type=Path, default=Path("docs/outside.csv"))
    given = parser.parse_args()
    os.environ.update(ONE_THREAD)
    corners, estimators = given.corners.split(","), []
    for name in given.methods.split(","):
        file, library = METHODS.get(name, (None, None))
        print(f"{name}: {environment(library) if library else 'in this environment'}", flush=True)
        estimators.append(str(HERE / file) if file else name)
    card = wsc.scorecard(
        estimators,
        corners=corners,
        designs=given.designs.split(","),
        fleets=given.fleets * len(corners),
        draws=given.draws,
        machines=given.machines,
        sizes=[int(size) for size in given.sizes.split(",")],
    )
    rows = figures(card.card)
    if given.csv.is_file():
        older = pd.read_csv(given.csv)
        rows = pd.concat([older[~older["estimator"].isin(rows["estimator"])], rows])
    rows.to_csv(given.csv, index=False)
    print(table(rows))


if __name__ == "__main__":
    main()
