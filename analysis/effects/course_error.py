"""What courses that are learnt from machines that never switch add to the error of a crossover.

If machines switch at times of their own, what a course is wrong by hits them with either sign and is part of how they
differ. The more they switch at the same times, the more it is the same for all of them.
"""

import numpy as np

from analysis.effects.levels import FEW, courses, levels
from analysis.effects.switching import Switched
from models.arrays import Floats, Ints


def course_variance(made: Switched) -> float:
    """Return the variance that courses add to the relative change that all machines of a crossover show together.

    Two parts: that of a mean over machines that never switch, by each machine's influence (the infinitesimal jackknife;
    Efron 1982, chapter 6), and the square of what is left of a course that few instances tell, as far as they show it.
    Of both, the share is taken off that units of machines would have if their plans were independent: how the units
    differ tells that already.

    Parameters
    ----------
    made : all its machines, with the plan that was followed

    Examples
    --------
    >>> from analysis.effects.switching import example
    >>> course_variance(example())
    0.0
    """
    beside, common = made.beside, made.common
    if not len(beside.machine):
        return 0.0
    by_job, by_rack, together = _slopes(made)
    influence, left = _part(by_job, common.job_held, common.job_sum, (beside.job, beside.period, beside.apart[:, 0]))
    if common.rack_held.any():
        rows = (beside.rack, beside.period, beside.apart[:, 1])
        more, rest = _part(by_rack, common.rack_held, common.rack_sum, rows)
        influence, left = influence + more, left + rest
    _, machine = np.unique(beside.machine, return_inverse=True)
    each = np.bincount(machine, beside.there * influence)
    return together * float((each**2).sum() * len(each) / max(len(each) - 1, 1) + left**2)


def _slopes(made: Switched) -> tuple[Floats, Floats, float]:
    """Return by how much the change moves with the course of each job, and of each rack, (jobs or racks, P).

    The third is the share of the slopes' squares, each by what it is known from, that units do not have on their own.
    """
    rows, own, stays = made.rows, made.own, made.stays
    machine = np.repeat(np.arange(len(made.plan)), rows.end - rows.start)
    rack = rows.rack[machine]
    of_job, of_rack = courses(rows, made.common, np.zeros(0, dtype=np.int64))
    level = np.full((len(stays), 2), np.nan)
    levels(rows, (of_job, of_rack), own, np.arange(len(made.plan)), level)
    seen = np.isfinite(level).all(axis=1)
    level = np.where(seen[:, None], level, 0.0)
    job = np.zeros(len(stays), dtype=np.int64)
    job[rows.stay] = rows.job
    presence = np.where(seen, stays["presence"].to_numpy(dtype=np.float64), 0.0)
    counted = presence * stays["quota"].to_numpy(dtype=np.float64) * made.scale
    below, above = (np.bincount(job, presence * level[:, state]) for state in (0, 1))
    # A job counts by the quota of its stays; of its mean level without the feature, a stay has its share of presence.
    per = np.bincount(job, counted) / max(counted.sum(), 1e-300) / np.maximum(below, 1e-300)
    typical = above / np.maximum(below, 1e-300)
    part = own.by * (1.0 + of_job[rows.job, rows.period]) * (1.0 + of_rack[rack, rows.period])
    whole = np.stack([np.bincount(rows.stay, np.where(own.state == state, part, 0.0), len(stays)) for state in (0, 1)])
    share = part / np.maximum(whole[own.state, rows.stay], 1e-300)
    sign = np.where(own.state == 1, -1.0, typical[rows.job])
    moved = (per[job] * presence)[rows.stay] * sign * level[rows.stay, own.state] * share
    alone, whole_square, slopes = 0.0, 0.0, []
    for group, course, held in ((rows.job, of_job, made.common.job_held), (rack, of_rack, made.common.rack_held)):
        change = moved / (1.0 + course[group, rows.period])
        place = group.astype(np.int64) * course.shape[1] + rows.period
        slope = np.bincount(place, change, course.size).astype(np.float64)
        known = 1.0 / (held.ravel() + FEW) if held.any() else np.zeros(course.size)
        _, first, unit = np.unique(
            made.unit[machine].astype(np.int64) * course.size + place, return_index=True, return_inverse=True
        )
        alone += float((np.bincount(unit, change) ** 2 * known[place[first]]).sum())
        whole_square += float((slope**2 * known).sum())
        slopes.append(slope.reshape(course.shape))
    return slopes[0], slopes[1], max(1.0 - alone / whole_square, 0.0) if whole_square > 0 else 0.0


def _part(slope: Floats, held: Floats, total: Floats, rows: tuple[Ints, Ints, Floats]) -> tuple[Floats, float]:
    """Return each row's influence by way of these courses, per presence, and what is left of them in the change."""
    group, period, apart = rows
    number = np.maximum(held.sum(axis=0), 1e-300)
    whole = total.sum(axis=0) / number
    mean = np.where(held > 0, total / np.maximum(held, 1e-300), whole)
    drawn = (slope * FEW / (held + FEW)).sum(axis=0)
    one = slope[group, period] * (apart - mean[group, period]) / (held[group, period] + FEW)
    influence = one + drawn[period] * (apart - whole[period]) / number[period]
    return influence, float((slope * (mean - whole) * FEW / (held + FEW)).sum())
