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
from scenarios.papers.judged import Criterion, judge, trial
from scenarios.papers.reproduce import row_pool
from scenarios.papers.rows import Changed, published
from scenarios.papers.worlds import RowWorld, measured_tables
from scenarios.views.terminal import progress


def pieces(cause: SuspectedCause, changed: Changed, seeds: Sequence[int]) -> list[RowWorld]:
    """Return the row of a cause in worlds that are changed, if they are."""
    return [RowWorld(cause.row, seed, changed) for seed in seeds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("paper", help="wsmeter, occupancy, crossplatform or gwp, or one row such as wsmeter/fig17")
    parser.add_argument("--seeds", default="11-20", metavar="FIRST-LAST", help="worlds (default: 11-20)")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where what is measured is kept")
    options = parser.parse_args()
    first, last = map(int, options.seeds.split("-"))
    seeds = range(first, last + 1)
    causes = [cause for cause in CAUSES if options.paper in (cause.row, cause.row.split("/")[0])]
    wanted = {cause: [pieces(cause, how, seeds) for how in ((), cause.removed, cause.instead)] for cause in causes}
    with progress() as bar:
        tables = measured_tables(
            [piece for hows in wanted.values() for how in hows for piece in how], options.runs, bar
        )
    print(f"{'criterion':52} {'here':>14} {'without':>14} {'sham':>14}  of {len(seeds)} worlds, pooled")
    for cause, hows in wanted.items():
        here, without, sham = ([tables[piece] for piece in how] for how in hows)
        row = ROWS[cause.row]
        for criterion in judge(here, published(cause.row), row_pool(row, here)):
            if criterion.name in cause.criteria:
                tried = trial(row, criterion, cause, without, sham)
                cells = " ".join(f"{_held(held):>14}" for held in (tried.here, tried.without_cause, tried.without_sham))
                verdict = "explained" if tried.explains else "not explained"
                print(f"{cause.row + ' ' + criterion.name:52} {cells}  {verdict}")


def _held(criterion: Criterion) -> str:
    """Return in how many worlds a criterion holds, and the rate of all draws if it is one."""
    return f"{criterion.holds_in}" if criterion.pooled is None else f"{criterion.holds_in}, {criterion.pooled:.4f}"


if __name__ == "__main__":
    main()
