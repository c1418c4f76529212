"""Causes of what does not hold in the papers' rows, on worlds beside those that the rows are judged on.

    python benchmarks/paper_causes.py crossplatform [--seeds 11-20] [--runs runs]

For each criterion that has a suspected cause: in how many worlds it holds as they are, without the cause, and without
something else of like size. It explains as `wsc reproduce --explain` says it. What is measured is kept in the folder of
runs, so that it goes on where it stopped.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from scenarios.papers.catalogue import ROWS
from scenarios.papers.causes import CAUSES, SuspectedCause
from scenarios.papers.judged import EXPLAINED_FROM, judge
from scenarios.papers.reproduce import row_pool
from scenarios.papers.rows import Changed, published
from scenarios.papers.worlds import RowWorld, measured_tables
from scenarios.views.terminal import progress


def pieces(cause: SuspectedCause, changed: Changed, seeds: Sequence[int]) -> list[RowWorld]:
    """Return the row of a cause in worlds that are changed, if they are."""
    return [RowWorld(cause.row, seed, changed) for seed in seeds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("paper", help="wsmeter, occupancy, crossplatform or gwp")
    parser.add_argument("--seeds", default="11-20", metavar="FIRST-LAST", help="worlds (default: 11-20)")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where what is measured is kept")
    options = parser.parse_args()
    first, last = map(int, options.seeds.split("-"))
    seeds = range(first, last + 1)
    causes = [cause for cause in CAUSES if cause.row.startswith(f"{options.paper}/")]
    wanted = {cause: [pieces(cause, how, seeds) for how in ((), cause.removed, cause.instead)] for cause in causes}
    with progress() as bar:
        tables = measured_tables(
            [piece for hows in wanted.values() for how in hows for piece in how], options.runs, bar
        )
    print(f"{'criterion':52} {'here':>5} {'without':>8} {'sham':>5}  of {len(seeds)} worlds")
    for cause, hows in wanted.items():
        held = [_holds_in(cause.row, [tables[piece] for piece in how]) for how in hows]
        for name in cause.criteria:
            here, without, sham = (counts[name] for counts in held)
            verdict = "explained" if without >= EXPLAINED_FROM * len(seeds) > sham else "not explained"
            print(f"{cause.row + ' ' + name:52} {here:5} {without:8} {sham:5}  {verdict}")


def _holds_in(row, worlds):
    """Return in how many worlds each criterion of a row holds."""
    return {
        criterion.name: criterion.holds_in for criterion in judge(worlds, published(row), row_pool(ROWS[row], worlds))
    }


if __name__ == "__main__":
    main()
