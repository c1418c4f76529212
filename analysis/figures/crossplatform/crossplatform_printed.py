"""What follows from the numbers that Stewart et al. (2008) print: medians, best methods, mis-rankings, wrong choices.

The functions take the numbers of a table as `series, x, value`, so a simulated table is judged like the printed one.
Methods are named as in the tables of predictions; `published` is what the paper calls ours.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
import pandas as pd

from analysis.crossplatform.choice import wrong_choices
from analysis.figures.criteria import curve, measures, number, numbers, rows
from models.arrays import Floats

ERRORS: Final = "error_"
"""How the series of a method's errors begins, over the number of the target."""
RANKS: Final = "rank_"
"""How the series of a method's ranks begins, over the number of the platform."""
OURS: Final = "published"
"""The method of the paper, without any addition."""
ACTUAL: Final = "actual"
"""Stands in the place of a method for what was measured on the platforms."""
XEON: Final = 10
"""Number of the target that the text calls XEON: all of it switched on."""
TOP: Final = (1, 2, 3)
PLATFORM_NAMES: Final[Mapping[str, str]] = {
    "piii": "PIII",
    "pres": "PRES",
    "pd4": "PD4",
    "xeon": "XEON",
    **{f"xeon_{h}h_{c}c_{p}p": f"XEON {h}H/{c}C/{p}P" for h in (1, 2) for c in (1, 2) for p in (1, 2)},
}
"""How the paper writes platforms: #H/#C/#P are hardware threads a core, cores a processor, processors."""


def _by_method(table: pd.DataFrame, start: str) -> dict[str, Floats]:
    names = [name for name in dict.fromkeys(table["series"]) if name.startswith(start)]
    return {name.removeprefix(start): np.asarray(curve(table, name)[1]) for name in names}


def measure_table1(log: pd.DataFrame) -> pd.DataFrame:
    """Return misses per 10,000 instructions of the intervals of a log, and the power law's slope between two caches.

    l1_per_10k and l2_per_10k over the interval, interval_s, slope, and both if only the instructions were in ten
    thousands: l1_per_10k_unscaled.

    Parameters
    ----------
    log : series, x, value: start_s, instructions, l1_misses, l2_misses over the interval; size_l1_kb, size_l2_kb
    """
    at = {name: np.asarray(curve(log, name)[1]) for name in ("start_s", "instructions", "l1_misses", "l2_misses")}
    l1, l2 = (1e4 * at[name] / at["instructions"] for name in ("l1_misses", "l2_misses"))
    growth = np.log(number(log, "size_l2_kb") / number(log, "size_l1_kb"))
    intervals = np.arange(1, l1.size + 1)
    return measures(
        rows("l1_per_10k", intervals, l1),
        rows("l2_per_10k", intervals, l2),
        interval_s=float(np.diff(at["start_s"]).mean()),
        slope=float(np.log(l2.sum() / l1.sum()) / growth),
        l1_per_10k_unscaled=float(1e-4 * l1.mean()),
    )


def measure_table4(errors: pd.DataFrame) -> pd.DataFrame:
    """Return medians over targets and how often the published method is the best; for Tables 4, 5 and 6.

    median_{method}; best_published, targets where no rival has less error; beats_benchmark, the same of that one (NaN
    without it); third_share, the share of rivals' errors that are over three times the published one's;
    largest_published; xeon_published.

    Parameters
    ----------
    errors : series, x, value: error_{method} over the number of the target, `published` among the methods
    """
    by_method = _by_method(errors, ERRORS)
    ours = by_method[OURS]
    rivals = np.array([values for name, values in by_method.items() if name != OURS])
    beaten = ours <= by_method["benchmark"] if "benchmark" in by_method else np.nan
    values = {f"median_{name}": float(np.median(values)) for name, values in by_method.items()} | {
        "best_published": float((ours <= rivals.min(axis=0)).sum()),
        "beats_benchmark": float(np.sum(beaten)),
        "third_share": float((rivals > 3 * ours).mean()),
        "largest_published": float(ours.max()),
        "xeon_published": number(errors, f"{ERRORS}{OURS}", XEON),
    }
    return numbers(**values)


def measure_table7(ranks: pd.DataFrame) -> pd.DataFrame:
    """Return the largest mis-ranking of every method.

    misrank_{method}; best_found_{method}, whether the best platform is named.

    Parameters
    ----------
    ranks : series, x, value: rank_actual and rank_{method} over the number of the platform
    """
    by_method = _by_method(ranks, RANKS)
    actual = by_method.pop(ACTUAL)
    worst = {f"misrank_{name}": float(np.abs(values - actual).max()) for name, values in by_method.items()}
    best = {f"best_found_{name}": float(values.argmin() == actual.argmin()) for name, values in by_method.items()}
    return numbers(**worst, **best)


def measure_fig7(ranks: pd.DataFrame) -> pd.DataFrame:
    """Return in how many subsets of five platforms a method does not name the best, the top two, the top three.

    wrong_{method} over 1, 2, 3 (shares of the subsets; the top ones as sets); right_{method}, subsets whose best is
    named; times_{method}, wrong ones over those of `published`.

    Parameters
    ----------
    ranks : series, x, value: rank_actual and rank_{method} over the number of the platform
    """
    by_method = _by_method(ranks, RANKS)
    actual = by_method.pop(ACTUAL)
    subsets = int(np.prod([(actual.size - i) / (i + 1) for i in range(5)]).round())
    wrong = {name: wrong_choices(-actual, -values, top=TOP) for name, values in by_method.items()}
    with np.errstate(divide="ignore", invalid="ignore"):
        times = {f"times_{name}": float(values[0] / wrong[OURS][0]) for name, values in wrong.items()}
    right = {f"right_{name}": round(subsets * (1 - values[0])) for name, values in wrong.items()}
    return measures(*(rows(f"wrong_{name}", TOP, values) for name, values in wrong.items()), **right, **times)


def measure_table8(responses: pd.DataFrame) -> pd.DataFrame:
    """Return for how many request types the better of two platforms is named, and the errors of the predictions.

    error_{platform} over the type; right_choices, error_median, error_max.

    Parameters
    ----------
    responses : series, x, value: actual_{platform} and predicted_{platform} over the number of the type
    """
    actual, predicted = (_by_method(responses, f"{name}_") for name in ("actual", "predicted"))
    errors = {name: np.abs(predicted[name] / actual[name] - 1.0) for name in actual}
    best = [np.array([table[name] for name in actual]).argmin(axis=0) for table in (actual, predicted)]
    every = np.concatenate(list(errors.values()))
    return measures(
        *(rows(f"error_{name}", range(1, values.size + 1), values) for name, values in errors.items()),
        right_choices=float((best[0] == best[1]).sum()),
        error_median=float(np.median(every)),
        error_max=float(every.max()),
    )
