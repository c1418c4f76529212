"""Machines drawn so that the treated ones resemble the fleet: balanced selection by the cube method."""

import numpy as np
import pandas as pd

from analysis.statistics import NotEnoughDataError
from models.arrays import Bools, Floats, Ints
from models.code.compiled import njit
from models.errors import WscError

SETTLED = 1e-9
"""A chance this near to 0 or 1 is taken as that; what this moves is far below any sampling error."""


class BalanceError(WscError):
    """Inclusion probabilities or balancing variables that cannot be used; says where and what was found."""


def select(aux: Floats, probability: Floats, rng: np.random.Generator) -> Bools:
    """Draw machines with given inclusion probabilities such that weighted sums match the fleet's (cube method).

    Flight phase of Deville and Tillé (2004, "Efficient balanced sampling: the cube method") in the fast form of Chauvet
    and Tillé (2006); landing by suppression of variables, the last one first. The number of machines is balanced before
    everything else, so it is fixed if the probabilities add up to a whole number.

    Parameters
    ----------
    aux : (M, p) array, balancing variables in falling order of importance; columns may depend on each other
    probability : (M,) array, inclusion probabilities in 0..1; they are met exactly
    rng : where the draws come from

    Returns
    -------
    (M,) array of bool
        Selected machines s, with Σ_s aux / probability = Σ aux up to what the last p + 1 machines leave.
    """
    (chosen,) = selections(aux, probability, 1, rng)
    return np.asarray(chosen, dtype=np.bool_)


def selections(aux: Floats, probability: Floats, draws: int, rng: np.random.Generator) -> Bools:
    """Draw independent balanced selections.

    Parameters
    ----------
    aux, probability, rng : as for `select`
    draws : R, 1 or more

    Returns
    -------
    (R, M) array of bool
    """
    columns, chance = _checked(aux, probability)
    basis = _basis(columns, chance)
    open_ones = np.flatnonzero((chance > 0) & (chance < 1))
    chosen = np.empty((draws, len(chance)), dtype=np.bool_)
    for draw in chosen:
        draw[:] = _cube(basis, chance.copy(), rng.permutation(open_ones), rng.random(len(open_ones)))
    return chosen


def total_variance(value: Floats, aux: Floats, probability: Floats, selected: Bools) -> float:
    """Return the estimated variance of Σ_s value / probability under balanced selection.

    Deville and Tillé (2005, "Variance approximation under balanced sampling", section 4): the variance of residuals
    of the value on the balancing variables, with c = (1 − π) n / (n − p); the fixed number counts as a variable.

    Parameters
    ----------
    value : (M,) array; only selected machines are looked at
    aux, probability : as for `select`
    selected : (M,) array of bool
    """
    columns, chance = _checked(aux, probability)
    basis = _basis(columns, chance)[selected]
    n, p = basis.shape
    if n <= p:
        raise NotEnoughDataError(p + 1, n, "selected machines")
    root = np.sqrt((1 - chance[selected]) * n / (n - p))
    expanded = root * value[selected] / chance[selected]
    fitted = root[:, None] * basis
    residual = expanded - fitted @ np.linalg.lstsq(fitted, expanded)[0]
    return float(residual @ residual)


def balancing_variables(observations: pd.DataFrame, heavyweights: int = 20) -> pd.DataFrame:
    """Return what machines should be balanced on, from measurements before anything was treated.

    Parameters
    ----------
    observations : columns period, job, machine, weight (quota of the instance), value (performance, above 0) and
        perhaps platform and cpu_s; rows of the period before the study only
    heavyweights : how many of the jobs with most quota get a column

    Returns
    -------
    DataFrame
        machine, then in falling order of importance: quota (mean over periods), load (CPU time over the fleet's mean,
        if there is cpu_s), residual (quota-weighted mean of value over the job's mean, less 1), "platform …" for each
        platform but the most frequent, and "job …" for each heavyweight: its quota on the machine.
    """
    if observations.empty:
        raise NotEnoughDataError(1, 0, "rows before the study")
    periods = observations["period"].nunique()
    rows = observations.assign(relative=observations["value"] / observations.groupby("job")["value"].transform("mean"))
    rows["relative"] = (rows["relative"] - 1) * rows["weight"]
    of = rows.groupby("machine", sort=True)
    quota = of["weight"].sum()
    columns = {"quota": quota / periods}
    if "cpu_s" in rows:
        used = of["cpu_s"].sum()
        columns["load"] = used / used.mean()
    columns["residual"] = of["relative"].sum() / quota
    if "platform" in rows:
        platform = of["platform"].first()
        columns |= {f"platform {name}": (platform == name) * 1.0 for name in platform.value_counts().index[1:]}
    heavy = rows.groupby("job")["weight"].sum().sort_values(ascending=False, kind="stable").index[:heavyweights]
    quotas = rows[rows["job"].isin(heavy)].pivot_table(index="machine", columns="job", values="weight", aggfunc="sum")
    quotas = quotas.reindex(index=quota.index, columns=heavy).fillna(0.0) / periods
    return pd.DataFrame(columns | {f"job {job}": quotas[job] for job in heavy}).reset_index(names="machine")


def _checked(aux: Floats, probability: Floats) -> tuple[Floats, Floats]:
    """Return balancing variables and probabilities as arrays that fit each other."""
    columns, chance = np.asarray(aux, dtype=np.float64), np.asarray(probability, dtype=np.float64)
    if columns.ndim != 2 or chance.shape != columns.shape[:1]:
        raise BalanceError(f"balancing variables {columns.shape} and probabilities {chance.shape} do not fit")
    wrong = np.flatnonzero(~((chance >= 0) & (chance <= 1)))
    if len(wrong):
        raise BalanceError(f"probability of machine {wrong[0]} must be within 0..1, got {chance[wrong[0]]}")
    row, column = np.nonzero(~np.isfinite(columns))
    if len(row):
        where = f"balancing variable {column[0]} of machine {row[0]}"
        raise BalanceError(f"{where} must be finite, got {columns[row[0], column[0]]}")
    return columns, chance


def _basis(aux: Floats, chance: Floats) -> Floats:
    """Return independent columns whose sums a selection keeps, the first being 1; the first k span what k variables do.

    Entries are of the order of 1; machines that are not drawn at random have 0.
    """
    drawn = (chance > 0) & (chance < 1)
    scaled = np.zeros((len(aux), aux.shape[1] + 1))
    scaled[drawn, 0] = 1.0
    np.divide(aux, chance[:, None], out=scaled[:, 1:], where=drawn[:, None])
    basis: Floats = _orthonormal(scaled) * np.sqrt(max(drawn.sum(), 1))
    return basis


@njit(cache=True)
def _orthonormal(columns: Floats) -> Floats:
    """Return an orthonormal basis by Gram and Schmidt, in order, twice each, dependent columns left out."""
    machines, variables = columns.shape
    basis, rest, count = np.empty((machines, variables)), np.empty(machines), 0
    for variable in range(variables):
        before = 0.0
        for machine in range(machines):
            rest[machine] = columns[machine, variable]
            before += rest[machine] * rest[machine]
        for _ in range(2):
            for done in range(count):
                along = 0.0
                for machine in range(machines):
                    along += rest[machine] * basis[machine, done]
                for machine in range(machines):
                    rest[machine] -= along * basis[machine, done]
        after = 0.0
        for machine in range(machines):
            after += rest[machine] * rest[machine]
        if np.sqrt(after) > 1e-9 * np.sqrt(before):
            for machine in range(machines):
                basis[machine, count] = rest[machine] / np.sqrt(after)
            count += 1
    return basis[:, :count].copy()


@njit(cache=False, borrows=True)
def _direction(basis: Floats, line: Ints, columns: int, work: Floats, direction: Floats) -> int:
    """Write a direction that keeps the first `columns` sums; return how many of `line` it moves, 0 if there is none.

    Gaussian elimination, machine by machine, up to the first that depends on those before it.
    """
    for unit, machine in enumerate(line):
        for row in range(columns):
            work[row, unit] = basis[machine, row]
    for unit in range(len(line)):
        best = unit
        for row in range(unit + 1, columns):
            if abs(work[row, unit]) > abs(work[best, unit]):
                best = row
        if unit == columns or abs(work[best, unit]) < SETTLED:
            direction[unit] = 1.0
            for row in range(unit - 1, -1, -1):
                total = work[row, unit]
                for other in range(row + 1, unit):
                    total += work[row, other] * direction[other]
                direction[row] = -total / work[row, row]
            return unit + 1
        for other in range(unit, len(line)):
            work[unit, other], work[best, other] = work[best, other], work[unit, other]
        for row in range(unit + 1, columns):
            factor = work[row, unit] / work[unit, unit]
            for other in range(unit + 1, len(line)):
                work[row, other] -= factor * work[unit, other]
    return 0


@njit(cache=False, borrows=True)
def _step(chance: Floats, line: Ints, direction: Floats, moved: int, uniform: float) -> None:
    """Move chances along the direction, either way, until one of them is 0 or 1; on average they stay."""
    ahead, back = np.inf, np.inf
    for unit in range(moved):
        slope, value = direction[unit], chance[line[unit]]
        if slope > 0:
            ahead, back = min(ahead, (1 - value) / slope), min(back, value / slope)
        elif slope < 0:
            ahead, back = min(ahead, -value / slope), min(back, (value - 1) / slope)
    step = ahead if uniform * (ahead + back) < back else -back
    for unit in range(moved):
        value = chance[line[unit]] + step * direction[unit]
        chance[line[unit]] = 0.0 if value < SETTLED else 1.0 if value > 1 - SETTLED else value


@njit(cache=True)
def _cube(basis: Floats, chance: Floats, order: Ints, uniform: Floats) -> Bools:
    """Return who is selected: flight through the machines in the order given, then landing."""
    columns = basis.shape[1]
    line = np.empty(columns + 1, np.int64)
    work, direction = np.empty((columns + 1, columns + 1)), np.empty(columns + 1)
    present, following, steps = 0, 0, 0
    while True:
        while present <= columns and following < len(order):
            line[present] = order[following]
            present, following = present + 1, following + 1
        if present == 0:
            return chance > 0.5
        moved = _direction(basis, line[:present], columns, work, direction)
        if moved == 0:
            columns -= 1
            continue
        _step(chance, line, direction, moved, uniform[steps])
        steps += 1
        left = 0
        for unit in range(present):
            if 0 < chance[line[unit]] < 1:
                line[left] = line[unit]
                left += 1
        present = left
