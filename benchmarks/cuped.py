"""Our machine-level ratios, plain and regression-adjusted, beside those of gbstats on the same draws of test machines.

    pip install --no-deps gbstats==0.8.0
    python benchmarks/cuped.py [--corner base] [--machines 300] [--draws 200] [--sizes 25,100]

Without --no-deps it cannot be installed: its metadata ask for numpy and pandas before 2, which what is used here needs
not. Version 0.8.0, the last on PyPI, has ratios, and the regression adjustment of means; the adjusted ratio is put
together from both: machines linearised by the delta method (Deng et al. 2018), then adjusted by `compute_theta`.

- ratio: greatest relative difference of change, standard error and degrees of freedom over all draws; rounding only.
- cuped: mean and greatest difference of the change in standard errors, and of the standard error, relative; with
  gbstats' own slope, and with the slope to which both arms count alike. Two things differ by design: gbstats pools
  machines of both arms into one slope and so counts the larger arm more; and in the variance of a relative change it
  scales the adjusted control by the unadjusted ratio of the arms, where ours scales only what is not the past.
- seconds for all draws, ours and gbstats'.
"""

import argparse
import time
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from analysis.effects.cells import JobMachineSums
from analysis.effects.classic import Ratio
from models.randomness import stream


@dataclass(frozen=True, slots=True)
class Arm:
    """Sums of each machine of one arm: performance times quota, and quota, in the study and before."""

    above: np.ndarray
    below: np.ndarray
    above_before: np.ndarray
    below_before: np.ndarray


def arms(cells: JobMachineSums, treated: np.ndarray) -> tuple[Arm, Arm]:
    """Return the arm without the feature and the one with it, of one draw; (M,) booleans."""
    machine = np.repeat(np.arange(len(cells.machines)), np.diff(cells.start))
    both = []
    for on, chosen in ((0, ~treated), (1, treated)):
        above = np.zeros(len(cells.machines))
        below = np.zeros(len(cells.machines))
        np.add.at(above, machine, cells.quota * cells.scale[cells.job] * cells.y[:, on] / cells.count)
        np.add.at(below, machine, cells.quota)
        both.append(Arm(above[chosen], below[chosen], cells.before[chosen, 0], cells.before[chosen, 1]))
    return both[0], both[1]


def ratio(control: Arm, treated: Arm) -> tuple[float, float, float]:
    """Return change, standard error and degrees of freedom of gbstats' ratio."""
    from gbstats.models.statistics import RatioStatistic

    def of(arm: Arm) -> object:
        product = float(arm.above @ arm.below)
        return RatioStatistic(len(arm.above), _mean(arm.above), _mean(arm.below), product)

    return _said(_test(of(control), of(treated)))


def adjusted(control: Arm, treated: Arm, theta: float | None = None) -> tuple[float, float, float]:
    """Return the same of the regression-adjusted ratio, with gbstats' slope if none is given."""
    from gbstats.models.statistics import RegressionAdjustedStatistic

    def of(arm: Arm) -> RegressionAdjustedStatistic:
        now, past = linearised(arm.above, arm.below), linearised(arm.above_before, arm.below_before)
        return RegressionAdjustedStatistic(len(now), _mean(now), _mean(past), float(now @ past), 0.0)

    test = _test(of(control), of(treated))  # sets the slope
    if theta is not None:
        test.stat_a.theta = test.stat_b.theta = theta
    return _said(test)


def alike(control: Arm, treated: Arm) -> float:
    """Return the slope to which both arms count alike."""
    both = [
        np.cov(linearised(a.above, a.below), linearised(a.above_before, a.below_before)) for a in (control, treated)
    ]
    return float(sum(one[0, 1] for one in both) / sum(one[1, 1] for one in both))


def linearised(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Return a value of each machine whose mean is the ratio of the sums, and its variance the delta method's."""
    level = above.sum() / below.sum()
    return level + (above - level * below) / below.mean()


def _mean(values: np.ndarray) -> object:
    from gbstats.models.statistics import SampleMeanStatistic

    return SampleMeanStatistic(len(values), float(values.sum()), float(values @ values))


def _test(control: object, treated: object) -> Any:
    from gbstats.frequentist.tests import FrequentistConfig, TwoSidedTTest

    return TwoSidedTTest(control, treated, FrequentistConfig(difference_type="relative"))


def _said(test: Any) -> tuple[float, float, float]:
    return float(test.point_estimate), float(np.sqrt(test.variance)), float(test.dof)


def main() -> None:
    """Print a block for every size."""
    from scenarios.effects.scorecard.designs import designs

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corner", default="base")
    parser.add_argument("--machines", type=int, default=300)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--sizes", default="25,100")
    asked = parser.parse_args()
    if find_spec("gbstats") is None:
        print("gbstats is not there to compare with: pip install --no-deps gbstats==0.8.0")
        return
    cells = next(iter(designs(asked.corner, 1, asked.machines, ("day",)))).courses[0]
    for size in map(int, asked.sizes.split(",")):
        rng, treated = stream(1, f"benchmark of {size} machines"), np.zeros((asked.draws, len(cells.machines)), bool)
        for draw in treated:
            draw[rng.permutation(len(draw))[:size]] = True
        start = time.perf_counter()
        plain, ours = (np.stack(Ratio(cuped=use).many(cells, treated), axis=1) for use in (False, True))
        ours_s, start = time.perf_counter() - start, time.perf_counter()
        drawn = [arms(cells, draw) for draw in treated]
        theirs_plain = np.array([ratio(*both) for both in drawn])
        theirs = np.array([adjusted(*both) for both in drawn])
        theirs_s = time.perf_counter() - start
        same_slope = np.array([adjusted(*both, theta=alike(*both)) for both in drawn])
        print(
            f"{size} of {len(cells.machines)} machines, {asked.draws} draws: {ours_s:.2f} s, gbstats {theirs_s:.2f} s"
        )
        print(f"  ratio: {np.abs(plain / theirs_plain - 1).max():.1e}")
        for name, other in (("their slope", theirs), ("same slope", same_slope)):
            off, error = np.abs(ours[:, 0] - other[:, 0]) / other[:, 1], np.abs(ours[:, 1] / other[:, 1] - 1)
            print(
                f"  cuped, {name}: change off by {off.mean():.1e} errors, at most {off.max():.1e}; "
                f"error off by {error.mean():.2%}, at most {error.max():.2%}"
            )


if __name__ == "__main__":
    main()
