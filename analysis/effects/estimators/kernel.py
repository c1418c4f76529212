"""The compiled part of `adjusted`: many draws of treated machines, and several ways to adjust and pool, at once.

Treated machines are few: their sums are made draw by draw. All others are gone through once for a block of draws, which
lie side by side in memory, so that a processor works on several of them with one instruction. No sum runs over draws,
so an answer does not depend on what else is in its block.

All compiled helpers live in this file because numba's cache does not look into others."""

from typing import NamedTuple

import numpy as np
from numba import njit

from models.arrays import Bools, Floats, Ints

LEAST = 0.1
"""What is left of a cluster's residual at least: one machine that holds nearly all of a job must not decide all."""
_FEWEST = 1.2
"""Effective clusters of an arm below which nothing can be said."""


class How(NamedTuple):
    """The power of leverage, whether to correct for few clusters, whether the level is known, and racks are split."""

    leverage: float
    few: bool
    known: bool
    split: bool
    """Whether a cluster may have machines of both arms."""


@njit(cache=True)
def by_draw(total: Floats, weight: Floats) -> Floats:
    """Return of each way and draw the clustered sum of squares, and the effective number of clusters; (2, H, B).

    Both come from each cluster's residual and weight in the estimate, (clusters, H, B). The number is that of equal
    weights with the same Σ w² and Σ w⁴, from which degrees of freedom follow (Satterthwaite 1946) if what the instances
    of a cluster share is most of the error. A job on one cluster of an arm leaves no residual there.

    Examples
    --------
    >>> by_draw(np.array([[[1.0]], [[2.0]]]), np.ones((2, 1, 1))).ravel()
    array([5., 2.])
    """
    size, ways, many = total.shape
    made, fourth = np.zeros((2, ways, many)), np.zeros((ways, many))
    for at in range(size):
        for h in range(ways):
            for b in range(many):
                square = weight[at, h, b] ** 2
                made[0, h, b] += total[at, h, b] ** 2
                made[1, h, b] += square
                fourth[h, b] += square * square
    for h in range(ways):
        for b in range(many):
            made[1, h, b] = made[1, h, b] ** 2 / fourth[h, b] if fourth[h, b] > 0.0 else 0.0
    return made


@njit(cache=True, error_model="numpy")
def grown_by(own: float, leverage: float) -> float:
    """Return (1 - own) to the power of minus the leverage: 0, 0.5 or 1.

    Examples
    --------
    >>> grown_by(0.75, 1.0), grown_by(0.75, 0.5), grown_by(0.75, 0.0)
    (4.0, 2.0, 1.0)
    """
    left = max(1.0 - own, LEAST)
    if leverage < 1.0:
        return 1.0 / np.sqrt(left) if leverage > 0.0 else 1.0
    return 1.0 / left


@njit(cache=True)
def standard_error(squares: Floats, clusters: Floats, left: float, how: How) -> tuple[float, float]:
    """Return the standard error, and its degrees of freedom by Welch and Satterthwaite; NaN of too few clusters.

    Parameters
    ----------
    squares, clusters : (2,) clustered sum of squares and effective number of clusters, without and with the feature
    left : variance besides
    how : whether to correct for few clusters, and whether there is an arm without the feature

    Examples
    --------
    >>> standard_error(np.array([1.0, 3.0]), np.array([9.0, 9.0]), 0.0, How(1.0, False, False, False))
    (2.0, 12.8)
    """
    total, guessed = left, 0.0
    for arm in range(2):
        if arm == 0 and how.known:
            continue
        if clusters[arm] < _FEWEST:
            return np.nan, np.nan
        part = squares[arm] * (clusters[arm] / (clusters[arm] - 1.0) if how.few else 1.0)
        total += part
        guessed += (part + (left if arm == 1 else 0.0)) ** 2 / (clusters[arm] - 1.0)
    return np.sqrt(total), total**2 / max(guessed, 1e-300) if guessed > 0.0 else clusters[1] - 1.0


NONE, SHRUNKEN, RANDOM = range(3)
BLOCK = 16
"""Draws that the machines without the feature are gone through for at once."""
_HELD, _VALUE, _SQUARE, _FIRST = range(4)
"""Columns of rows: instances, values and their squares; then covariates, then their products with values."""
_PRIOR = 10.0
"""Degrees of freedom that the variance over all jobs counts for in the variance of one."""
_RIDGE = 1e-9
_TINY = 1e-12


class Sums(NamedTuple):
    """Cells of M machines and J jobs with K covariates in G pairs of cluster and job, and sums over all machines."""

    start: Ints
    cluster: Ints
    """(M,) of each machine."""
    job: Ints
    group: Ints
    """Number of the cell's pair of cluster and job."""
    rows: Floats
    """(2, C, 3 + 2 K): without the feature, and with it."""
    weight: Floats
    all_rows: Floats
    """(J, 3 + 2 K) without the feature."""
    all_xx: Floats
    """(J, K (K + 1) / 2) of each pair of covariates: the second one up to the first."""
    xx: Floats
    """(K, K) of all jobs."""
    group_cells: Ints
    group_held: Floats
    groups: Floats
    """(J,) clusters that each job is on."""


class Ways(NamedTuple):
    """H ways to pool, those with as many covariates next to each other."""

    used: Ints
    """(V,) numbers of covariates."""
    first: Ints
    """(V + 1,) ways with ``used[v]`` are ``first[v]`` to ``first[v + 1]``."""
    pooling: Ints
    """(H,)"""


class Seen(NamedTuple):
    """What a draw shows of each job, arm by arm."""

    sums: Floats
    """(2, J, 3 + 2 K)"""
    clusters: Floats
    """(2, J)"""


class Fit(NamedTuple):
    """Of one draw: slopes (V, K), means without the feature (J, V) and with it (J, H), what each job counts for."""

    slope: Floats
    off: Floats
    on: Floats
    counts: Floats
    """(J, H), relative to the job's level."""
    level: Floats
    """(J,) mean without the feature, not adjusted: what effects are relative to."""
    left: Floats
    """(H,) variance that residuals do not show."""


class Block(NamedTuple):
    """What the pass over machines without the feature needs to know of B draws, the draws last."""

    control: Floats
    """(M, B) 1 where the machine is without the feature."""
    each: Floats
    """(J, B) 1 over what is held of the job."""
    several: Floats
    """(J, B) 1 where the job is on several clusters."""
    held: Floats
    """(G, B) what treated machines hold of each pair of cluster and job; (0, B) where clusters are not split."""
    slope: Floats
    """(V, K, B)"""
    mean: Floats
    """(J, V, B)"""
    level: Floats
    """(J, B)"""
    change: Floats
    """(H, B) the estimate: what an error of the level, which it is divided by, counts for."""
    counts: Floats
    """(J, H, B)"""


@njit(cache=True)
def draws(sums: Sums, treated: Bools, how: How, ways: Ways, out: Floats) -> None:
    """Write change, standard error and degrees of freedom of each way and draw into `out`, (H, R, 3)."""
    count, size, held = treated.shape[0], ways.pooling.size, np.zeros(sums.group_cells.size)
    for begin in range(0, count, BLOCK):
        many = min(BLOCK, count - begin)
        block = _block(sums, how, ways, many)
        on, left = np.zeros((2, size, many)), np.zeros((size, many))
        for b in range(many):
            chosen = treated[begin + b]
            seen = _seen(sums, chosen, how, held)
            fit = _fit(sums, seen, ways, how.known, out[:, begin + b, 0])
            made = _treated(sums, seen, fit, (chosen, held), (how, ways))
            for h in range(size):
                on[0, h, b], on[1, h, b], left[h, b] = made[0, h, 0], made[1, h, 0], fit.left[h]
            if not how.known:
                _remember(block, b, seen, fit, (chosen, held, ways))
                block.change[:, b] = out[:, begin + b, 0]
        off = np.zeros((2, size, many)) if how.known else _controls(sums, block, how, ways)
        for h in range(size):
            for b in range(many):
                squares = np.array([off[0, h, b], on[0, h, b]])
                clusters = np.array([off[1, h, b], on[1, h, b]])
                out[h, begin + b, 1], out[h, begin + b, 2] = standard_error(squares, clusters, left[h, b], how)


@njit(cache=True)
def _block(sums: Sums, how: How, ways: Ways, many: int) -> Block:
    jobs, size, covariates = sums.weight.size, ways.pooling.size, sums.xx.shape[0]
    return Block(
        control=np.zeros((sums.start.size - 1, many)),
        each=np.zeros((jobs, many)),
        several=np.zeros((jobs, many)),
        held=np.zeros((sums.group_cells.size if how.split else 0, many)),
        slope=np.zeros((ways.used.size, covariates, many)),
        mean=np.zeros((jobs, ways.used.size, many)),
        level=np.zeros((jobs, many)),
        change=np.zeros((size, many)),
        counts=np.zeros((jobs, size, many)),
    )


@njit(cache=True)
def _remember(block: Block, b: int, seen: Seen, fit: Fit, of: tuple[Bools, Floats, Ways]) -> None:
    """Write a draw into its place in the block."""
    chosen, held, ways = of
    for machine in range(chosen.size):
        block.control[machine, b] = 0.0 if chosen[machine] else 1.0
    for g in range(block.held.shape[0]):
        block.held[g, b] = held[g]
    for v in range(ways.used.size):
        for k in range(ways.used[v]):
            block.slope[v, k, b] = fit.slope[v, k]
    for j in range(seen.clusters.shape[1]):
        each = _over(seen.sums[0, j, _HELD])
        block.each[j, b] = each
        block.several[j, b] = 1.0 if seen.clusters[0, j] > 1.5 else 0.0
        block.level[j, b] = fit.level[j]
        for v in range(ways.used.size):
            block.mean[j, v, b] = fit.off[j, v]
        for h in range(ways.pooling.size):
            block.counts[j, h, b] = fit.counts[j, h] * each


@njit(cache=True)
def _over(total: float) -> float:
    return 1.0 / total if total > _TINY else 0.0


@njit(cache=True)
def _seen(sums: Sums, treated: Bools, how: How, held: Floats) -> Seen:
    """Return what a draw shows, and write into `held` what treated machines hold of each pair of cluster and job."""
    (jobs, columns), first = sums.all_rows.shape, 1 if how.known else 0
    seen, cells = Seen(np.zeros((2, jobs, columns)), np.zeros((2, jobs))), np.zeros(held.size, np.int64)
    for g in range(held.size):
        held[g] = 0.0
    for j in range(0 if how.known else jobs):
        seen.clusters[0, j] = sums.groups[j]
    for machine in range(treated.size):
        if not treated[machine]:
            continue
        for c in range(sums.start[machine], sums.start[machine + 1]):
            j, g = sums.job[c], sums.group[c]
            for arm in range(first, 2):
                for p in range(columns):
                    seen.sums[arm, j, p] += sums.rows[arm, c, p]
            held[g] += sums.rows[1, c, _HELD]
            cells[g] += 1
            if cells[g] == 1:
                seen.clusters[1, j] += 1.0
            if cells[g] == sums.group_cells[g] and not how.known:
                seen.clusters[0, j] -= 1.0
    for j in range(0 if how.known else jobs):
        for p in range(columns):
            seen.sums[0, j, p] = sums.all_rows[j, p] - seen.sums[0, j, p]
    return seen


@njit(cache=True)
def _fit(sums: Sums, seen: Seen, ways: Ways, known: bool, change: Floats) -> Fit:
    """Return how each way adjusts and pools a draw, and write the change that it finds."""
    jobs, size, covariates = sums.weight.size, ways.pooling.size, sums.xx.shape[0]
    fit = Fit(
        np.zeros((ways.used.size, covariates)),
        np.zeros((jobs, ways.used.size)),
        np.zeros((jobs, size)),
        np.zeros((jobs, size)),
        np.ones(jobs),
        np.zeros(size),
    )
    alone, (xx, xy) = _alone(seen, known), _products(sums, seen)
    for v in range(ways.used.size):
        used = ways.used[v]
        if used > 0:
            _slopes(xx, xy, fit.slope[v, :used])
        effect, variance, level, off = _effects(sums, seen, fit.slope[v, :used], known)
        within = _between(effect, variance, level, sums.weight)
        share, whole = np.zeros(jobs), 0.0
        for j in range(jobs):
            fit.off[j, v], fit.level[j] = off[j], level[j]
            share[j] = level[j] * sums.weight[j]
            whole += share[j]
        for j in range(jobs):
            share[j] /= whole
        for h in range(ways.first[v], ways.first[v + 1]):
            gain, shrink, middle = _gains(effect, variance, share, within, ways.pooling[h])
            found, apart, hidden = 0.0, 0.0, np.zeros(2)
            for j in range(jobs):
                fit.on[j, h] = off[j] + level[j] * (middle + shrink[j] * (effect[j] - middle))
                fit.counts[j, h] = gain[j] / level[j]
                found += gain[j] * effect[j]
                apart += (gain[j] - share[j]) ** 2
                for arm in range(2):
                    hidden[arm] += gain[j] ** 2 * variance[j] * alone[j, arm]
            change[h], fit.left[h] = found, within * apart + (1.0 + found) ** 2 * hidden[0] + hidden[1]
    return fit


@njit(cache=True)
def _alone(seen: Seen, known: bool) -> Floats:
    """Return which share of each job's variance comes from an arm of one cluster, with no spread to show; (J, 2)."""
    jobs = seen.clusters.shape[1]
    share = np.zeros((jobs, 2))
    for j in range(jobs):
        if seen.clusters[1, j] < 0.5 or (seen.clusters[0, j] < 0.5 and not known):
            continue
        other, one = 0.0 if known else 1.0 / seen.sums[0, j, _HELD], 1.0 / seen.sums[1, j, _HELD]
        share[j, 0] = other / (one + other) if seen.clusters[0, j] < 1.5 else 0.0
        share[j, 1] = one / (one + other) if seen.clusters[1, j] < 1.5 else 0.0
    return share


@njit(cache=True)
def _products(sums: Sums, seen: Seen) -> tuple[Floats, Floats]:
    """Return the sums of squares and products within jobs and arms: of covariates, and of them with values."""
    jobs, covariates = seen.clusters.shape[1], sums.xx.shape[0]
    xx, xy = sums.xx.copy(), np.zeros(covariates)
    for j in range(jobs):
        for arm in range(2):
            if seen.clusters[arm, j] < 0.5:
                continue
            each, y = 1.0 / seen.sums[arm, j, _HELD], seen.sums[arm, j, _VALUE]
            for k in range(covariates):
                mean = each * seen.sums[arm, j, _FIRST + k]
                xy[k] += seen.sums[arm, j, _FIRST + covariates + k] - mean * y
                for m in range(k + 1):
                    xx[k, m] -= mean * seen.sums[arm, j, _FIRST + m]
    for k in range(covariates):
        for m in range(k):
            xx[m, k] = xx[k, m]
    return xx, xy


@njit(cache=True)
def _slopes(xx: Floats, xy: Floats, into: Floats) -> None:
    """Write the slopes of the analysis of covariance, within jobs and arms, on the first covariates."""
    ridged = xx[: into.size, : into.size].copy()
    for k in range(into.size):
        ridged[k, k] += _RIDGE * max(xx[k, k], 0.0) + _TINY
    made = np.linalg.solve(ridged, xy[: into.size])
    for k in range(into.size):
        into[k] = made[k]


@njit(cache=True)
def _pairs(slope: Floats) -> Floats:
    """Return the products of all pairs of slopes, as the columns of `all_xx` are ordered."""
    made, at = np.zeros(slope.size * (slope.size + 1) // 2), 0
    for k in range(slope.size):
        for m in range(k + 1):
            made[at] = slope[k] * slope[m] * (1.0 if m == k else 2.0)
            at += 1
    return made


@njit(cache=True)
def _effects(sums: Sums, seen: Seen, slope: Floats, known: bool) -> tuple[Floats, Floats, Floats, Floats]:
    """Return each job's relative effect, its variance (0: not seen in both arms), its level and its adjusted mean."""
    jobs = seen.clusters.shape[1]
    effect, variance, level, mean = np.zeros(jobs), np.zeros(jobs), np.ones(jobs), np.zeros((jobs, 2))
    squares, freedom, both, covariates = np.zeros(jobs), np.zeros(jobs), _pairs(slope), sums.xx.shape[0]
    for j in range(jobs):
        for arm in range(2):
            n = seen.sums[arm, j, _HELD]
            if seen.clusters[arm, j] < 0.5:
                continue
            adjusted, square = seen.sums[arm, j, _VALUE], seen.sums[arm, j, _SQUARE]
            for k in range(slope.size):
                adjusted -= slope[k] * seen.sums[arm, j, _FIRST + k]
                square -= 2.0 * slope[k] * seen.sums[arm, j, _FIRST + covariates + k]
            mean[j, arm] = adjusted / n
            squares[j] += square - adjusted * adjusted / n
            freedom[j] += n - 1.0
            if arm == 0 and seen.sums[0, j, _VALUE] > 0.0:
                level[j] = seen.sums[0, j, _VALUE] / n
        for at in range(both.size):
            squares[j] += both[at] * sums.all_xx[j, at]
    pooled = max(squares.sum(), 0.0) / max(freedom.sum(), 1.0)
    for j in range(jobs):
        one, other = seen.sums[1, j, _HELD], seen.sums[0, j, _HELD]
        if seen.clusters[1, j] < 0.5 or (seen.clusters[0, j] < 0.5 and not known):
            continue
        if known:
            mean[j, 0] = 1.0
        effect[j] = (mean[j, 1] - mean[j, 0]) / level[j]
        spread = (max(squares[j], 0.0) + _PRIOR * pooled) / (freedom[j] + _PRIOR)
        variance[j] = max(spread * (1.0 / one + (0.0 if known else 1.0 / other)) / level[j] ** 2, _TINY)
    return effect, variance, level, mean[:, 0]


@njit(cache=True, error_model="numpy")
def _between(effect: Floats, variance: Floats, level: Floats, weight: Floats) -> float:
    """Return the variance of true effects between jobs, by moments (DerSimonian and Laird 1986)."""
    seen, whole, typical = 0, 0.0, 0.0
    for j in range(variance.size):
        if variance[j] > 0.0:
            seen += 1
            whole += weight[j] * level[j]
            typical += weight[j] * level[j] / variance[j]
    if seen < 2:
        return _TINY
    typical = whole / typical
    trust, sure, middle, found, squares = np.zeros(variance.size), 0.0, 0.0, 0.0, 0.0
    for j in range(variance.size):
        if variance[j] > 0.0:
            trust[j] = 1.0 / (variance[j] + typical)
            sure += trust[j]
    for j in range(variance.size):
        trust[j] /= sure
        middle += trust[j] * effect[j]
        squares += trust[j] ** 2
    for j in range(variance.size):
        if variance[j] > 0.0:
            found += trust[j] * (effect[j] - middle) ** 2 - trust[j] * (1.0 - trust[j]) * variance[j]
    between: float = max(found / (1.0 - squares), _TINY)
    return between


@njit(cache=True, error_model="numpy")
def _gains(
    effect: Floats, variance: Floats, weight: Floats, within: float, pooling: int
) -> tuple[Floats, Floats, float]:
    """Return what each job's effect counts for in the fleet's, how far it is trusted, and the mean it shrinks to."""
    share, trust, centre = weight / weight.sum(), np.zeros(weight.size), np.zeros(weight.size)
    for j in range(weight.size):
        if variance[j] > 0.0:
            trust[j] = 1.0 if pooling == NONE else within / (within + variance[j])
            centre[j] = trust[j] / within if pooling == RANDOM else share[j] * trust[j]
    whole, left, middle = centre.sum(), 0.0, 0.0
    for j in range(weight.size):
        centre[j] /= whole
        middle += centre[j] * effect[j]
        left += share[j] * (1.0 - trust[j])
    if pooling == RANDOM:
        return centre, trust, middle
    return share * trust + left * centre, trust, middle


@njit(cache=True)
def _places(cluster: Ints) -> tuple[Ints, int]:
    """Return the clusters of a draw numbered in the order in which they first come, (n,), and how many there are."""
    number, places, count = np.full(cluster.max() + 1 if cluster.size else 0, -1), np.empty(cluster.size, np.int64), 0
    for i in range(cluster.size):
        if number[cluster[i]] < 0:
            number[cluster[i]] = count
            count += 1
        places[i] = number[cluster[i]]
    return places, count


@njit(cache=True, error_model="numpy")
def _treated(sums: Sums, seen: Seen, fit: Fit, drawn: tuple[Bools, Floats], asked: tuple[How, Ways]) -> Floats:
    """Return the same of the machines with the feature, (2, H, 1), of one draw."""
    (chosen, held), (how, (used, first, pooling)), (slope, _, on, _, _, _) = drawn, asked, fit
    machines = np.flatnonzero(chosen)
    places, clusters = _places(sums.cluster[machines])
    total = np.zeros((clusters, pooling.size, 1))
    weight, counts, rows = np.zeros(total.shape), np.zeros(on.shape), sums.rows
    each = np.array([_over(held_of) for held_of in seen.sums[1, :, _HELD]])
    for j in range(each.size):
        for h in range(pooling.size):
            counts[j, h] = fit.counts[j, h] * each[j]
    for i in range(machines.size):
        at = places[i]
        for c in range(sums.start[machines[i]], sums.start[machines[i] + 1]):
            j, count = sums.job[c], rows[1, c, _HELD]
            grown = grown_by(held[sums.group[c]] * each[j], how.leverage) if seen.clusters[1, j] > 1.5 else 0.0
            for v in range(used.size):
                rest = rows[1, c, _VALUE]
                for k in range(used[v]):
                    rest -= slope[v, k] * rows[1, c, _FIRST + k]
                for h in range(first[v], first[v + 1]):
                    weight[at, h, 0] += counts[j, h] * count
                    total[at, h, 0] += counts[j, h] * grown * (rest - count * on[j, h])
    return by_draw(total, weight)


@njit(cache=True, error_model="numpy")
def _controls(sums: Sums, block: Block, how: How, ways: Ways) -> Floats:
    """Return the sums of squares and numbers of clusters of the machines without the feature, (2, H, B)."""
    machines, many = block.control.shape
    total = np.zeros((sums.cluster.max() + 1, ways.pooling.size, many))
    weight = np.zeros(total.shape)
    residual, counted = np.zeros(total.shape[1:]), np.zeros(total.shape[1:])
    scratch = np.zeros(many), np.zeros(many), np.zeros(many)
    for machine in range(machines):
        residual[:], counted[:] = 0.0, 0.0
        _machine(sums, block, (how, ways, machine), (residual, counted), scratch)
        at = sums.cluster[machine]
        for h in range(ways.pooling.size):
            for b in range(many):
                total[at, h, b] += block.control[machine, b] * residual[h, b]
                weight[at, h, b] += block.control[machine, b] * counted[h, b]
    return by_draw(total, weight)


@njit(cache=True, error_model="numpy")
def _machine(
    sums: Sums,
    block: Block,
    of: tuple[How, Ways, int],
    into: tuple[Floats, Floats],
    scratch: tuple[Floats, Floats, Floats],
) -> None:
    """Add what a machine's cells leave unexplained, and what they count for, as if it were in no draw.

    A change is (treated mean - control mean) / level, so the controls err twice: in the mean that is subtracted, which
    is adjusted, and, by `change` times as much, in the level that is divided by, which is not (delta method).
    """
    (how, (used, first, _), machine), (residual, counted), (grown, rest, raw) = of, into, scratch
    each, several, mean, slope, counts = block.each, block.several, block.mean, block.slope, block.counts
    rows, many = sums.rows, grown.size
    for c in range(sums.start[machine], sums.start[machine + 1]):
        j, held, value = sums.job[c], rows[0, c, _HELD], rows[0, c, _VALUE]
        if how.split or how.leverage < 1.0:
            _lever(block, (j, sums.group[c]), sums.group_held[sums.group[c]], how, grown)
        else:
            own = sums.group_held[sums.group[c]]
            for b in range(many):
                grown[b] = several[j, b] / max(1.0 - own * each[j, b], LEAST)
        for b in range(many):
            raw[b] = grown[b] * (value - held * block.level[j, b])
        for v in range(used.size):
            for b in range(many):
                rest[b] = value - held * mean[j, v, b]
            for k in range(used[v]):
                x = rows[0, c, _FIRST + k]
                for b in range(many):
                    rest[b] -= x * slope[v, k, b]
            for b in range(many):
                rest[b] *= grown[b]
            for h in range(first[v], first[v + 1]):
                for b in range(many):
                    residual[h, b] += counts[j, h, b] * (rest[b] + block.change[h, b] * raw[b])
                    counted[h, b] += counts[j, h, b] * held


@njit(cache=True, error_model="numpy")
def _lever(block: Block, at: tuple[int, int], held: float, how: How, grown: Floats) -> None:
    """Write by how much the residuals of a cell grow for the leverage of its cluster, 0 where they say nothing."""
    j, group = at
    for b in range(grown.size):
        own = (held - block.held[group, b] if how.split else held) * block.each[j, b]
        grown[b] = block.several[j, b] * grown_by(own, how.leverage)
