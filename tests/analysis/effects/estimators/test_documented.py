"""`adjusted` from the formulas of docs/estimators.md alone, in plain NumPy: the ten steps from rows to the interval."""

# ruff: noqa: N806 - letters are those of the document

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from analysis.effects.estimators.adjusted import Adjusted
from analysis.effects.study import Study
from tests.helpers.outside_fleets import CONDITIONS, fleet


def codes(*columns):
    """The number of each row's combination of values, and the first row of each."""
    _, first, number = np.unique(np.stack(columns, axis=1), axis=0, return_index=True, return_inverse=True)
    return number.ravel(), first


def mean_by(key, by, value, size):
    total = np.bincount(key, by, size)
    return np.divide(np.bincount(key, by * value, size), total, out=np.zeros(size), where=total > 0)


def part(rows, chosen):
    return SimpleNamespace(**{name: values[chosen] for name, values in vars(rows).items()})


def stays(rows):
    """Step 1, of rows without exposure or time present."""
    number, first = codes(rows.job, rows.machine, rows.instance, rows.shard)
    of = part(rows, first)
    of.value, of.p = mean_by(number, np.ones(len(number)), rows.value, len(first)), np.bincount(number).astype(float)
    of.p, of.number = of.p / of.p.max(), number
    return of


def without_course(rows, c, among):
    """Step 2: values less what a job's instances do in common, which `among` show."""
    jobs, periods = len(c), rows.period.max() + 1
    key, count = rows.job * periods + rows.period, jobs * periods
    H = np.bincount(key[among], minlength=count).astype(float)
    d = mean_by(key[among], np.ones(among.sum()), rows.value[among], count) / np.repeat(c, periods) - 1
    middle = mean_by(np.repeat(np.arange(jobs), periods), H, d, jobs)
    return rows.value / (1 + (d - np.repeat(middle, periods)) * H / (H + 10))[key]


def loads(past, study):
    """Step 3: loads of the rows of both, by the mean weight of each job's shard."""
    shard, first = codes(past.job, past.shard)
    rate = mean_by(shard, np.ones(len(shard)), past.weight, len(first))
    by = {(past.job[row], past.shard[row]): rate[number] for number, row in enumerate(first)}
    out = []
    for rows in (past, study):
        own = np.array([by[each] for each in zip(rows.job, rows.shard, strict=True)])
        place, _ = codes(rows.machine, rows.period)
        busy = np.bincount(place, own)[place]
        out.append(busy / busy.mean() - 1)
    return out


def taken_apart(deviation, p, unit, machine, load):
    """Step 4."""
    of_unit, of_machine, slopes = np.zeros(unit.max() + 1), np.zeros(machine.max() + 1), np.zeros(2)
    columns, root = np.stack([load, load**2], axis=1), np.sqrt(p)
    for _ in range(30):
        rest = deviation - columns @ slopes
        of_machine = np.bincount(machine, p * (rest - of_unit[unit]), len(of_machine))
        of_machine /= np.bincount(machine, p, len(of_machine)) + 1
        of_unit = np.bincount(unit, p * (rest - of_machine[machine])) / (np.bincount(unit, p) + 0.05)
        left = deviation - of_unit[unit] - of_machine[machine]
        slopes = np.linalg.lstsq(columns * root[:, None], left * root)[0]
    return of_unit, of_machine


def by_the_document(rows, quota):  # noqa: PLR0915 - the steps as they stand in the document
    """Change, error and degrees of freedom."""
    jobs, share = len(quota), quota / quota.sum()
    began = rows.period[rows.treated].min()
    past, study = part(rows, rows.period < began), part(rows, rows.period >= began)
    before = stays(past)
    c = mean_by(before.job, before.p, before.value, jobs)
    past.value = without_course(past, c, np.ones(len(past.job), bool))
    study.value = without_course(study, c, ~study.treated)
    before, now = stays(past), stays(study)
    y, arm, n, w = now.value / c[now.job], now.treated.astype(int), now.p, share * c
    load_before, load_now = loads(past, study)
    L = mean_by(before.number, np.ones(len(before.number)), load_before, len(before.p))
    unit, first = codes(before.job, before.shard)
    machine = before.machine
    of_unit, of_machine = taken_apart(before.value / c[before.job] - 1, before.p, unit, machine, L)
    known = {(before.job[row], before.shard[row]): of_unit[number] for number, row in enumerate(first)}
    was, size = mean_by(machine, before.p, L, len(of_machine)), len(of_machine)
    x0 = np.array([known.get(each, 0.0) for each in zip(now.job, now.shard, strict=True)])
    place = np.minimum(now.machine, size - 1)
    x1, x4 = (np.where(now.machine < size, values[place], 0.0) for values in (of_machine, was))
    x2 = mean_by(now.number, np.ones(len(now.number)), load_now, len(n))
    x = np.stack([x0, x1, x2, x2**2, x4, x4**2], axis=1)
    cluster, machines = codes(now.machine)
    G, key = len(machines), 2 * now.job + arm
    K = min(6, (G - 2) // 5)

    def less_mean(values, groups, size):
        return np.stack([v - mean_by(groups, n, v, size)[groups] for v in values.T], axis=1)

    def by_cluster(values):
        return np.stack([np.bincount(cluster, v, G) for v in values.T], axis=1)

    x = less_mean(x[:, :K], now.job, jobs)  # steps 5 and 6
    in_arm, of_y = less_mean(x, key, 2 * jobs), less_mean(y[:, None], key, 2 * jobs)
    xx = in_arm.T @ (n[:, None] * in_arm)
    beta = np.linalg.solve(xx + 1e-9 * np.diag(np.diag(xx)), in_arm.T @ (n * of_y[:, 0]))
    omega = (w[now.job] * n / np.bincount(now.job, n, jobs)[now.job])[:, None]
    U, X, Y = by_cluster(omega * x), by_cluster(omega * in_arm), by_cluster(omega * of_y)[:, 0]
    beta = beta + np.linalg.solve(U.T @ X + 10 / G * np.diag((U**2).sum(axis=0)), U.T @ (Y - X @ beta))
    z = y - x @ beta  # step 7
    zbar, n_ja = mean_by(key, n, z, 2 * jobs).reshape(jobs, 2), np.bincount(key, n, 2 * jobs).reshape(jobs, 2)
    seen = (n_ja > 0).all(axis=1)
    level = np.where(n_ja[:, 0] > 0, mean_by(key, n, y, 2 * jobs).reshape(jobs, 2)[:, 0], 1.0)
    whole = w * level / (w * level).sum()
    W = np.where(seen, w * level, 0) / (w * level)[seen].sum()
    d = np.where(seen, zbar[:, 1] - zbar[:, 0], 0) / level
    change = (W * d).sum()
    V, E = np.zeros(2), np.zeros(2)  # step 8
    alone = np.zeros((jobs, 2), bool)
    for a in (0, 1):
        u, k = np.zeros(G), np.zeros(G)
        for j in np.flatnonzero(seen):
            mine = (now.job == j) & (arm == a)
            h, r = np.bincount(cluster[mine], n[mine], G), z - zbar[j, a] + (a == 0) * change * (y - level[j])
            alone[j, a] = (h > 0).sum() == 1
            k += W[j] * h / (level[j] * n_ja[j, a])
            if not alone[j, a]:
                growth = np.maximum(1 - h / n_ja[j, a], 0.1)
                u += W[j] / (level[j] * n_ja[j, a]) * np.bincount(cluster[mine], (n * r)[mine], G) / growth
        V[a], E[a] = (u**2).sum(), (k**2).sum() ** 2 / (k**4).sum()
    S = np.bincount(now.job, n * (z - zbar.ravel()[key]) ** 2, jobs)  # step 9
    f = np.where(n_ja > 0, n_ja - 1, 0).sum(axis=1)
    s = (S + 10 * S.sum() / max(f.sum(), 1)) / (f + 10)
    over = 1 / np.where(seen[:, None], n_ja, np.inf)
    v = s * over.sum(axis=1) / level**2
    lone = (alone * over * (s / level**2)[:, None] * W[:, None] ** 2).sum(axis=0)
    a = 1 / (v + (w * level)[seen].sum() / (w * level / np.where(seen, v, np.inf)).sum()) * seen
    a = a / a.sum()
    tau = ((a * (d - (a * d).sum()) ** 2).sum() - (a * (1 - a) * v).sum()) / (1 - (a**2).sum())
    R = (1 + change) ** 2 * lone[0] + lone[1] + max(tau, 1e-12) * ((W - whole) ** 2).sum()
    free = (G - 2 - K) / (G - 2)  # step 10
    freedom = V.sum() + R
    freedom = freedom**2 / (V[0] ** 2 / (E[0] - 1) + (V[1] + R) ** 2 / (E[1] - 1)) * free
    return change, np.sqrt((V.sum() + R) / free), freedom


@pytest.mark.parametrize("name", ["small_24_3", "eight_treated"])
def test_the_document_says_all_that_is_done(name):
    """24 machines bear four slopes. With eight of 100 treated, some jobs are on one machine of an arm or on none."""
    rng = np.random.default_rng(5)
    made = fleet(CONDITIONS[name], rng)
    rows = made.observed(made.assigned(rng))
    found = Adjusted().estimate(Study.of(pd.DataFrame(rows), pd.DataFrame(made.jobs)))
    columns = {name: values for name, values in rows.items() if name != "rack"}
    columns["treated"] = columns["treated"].astype(bool)
    change, error, freedom = by_the_document(SimpleNamespace(**columns), made.jobs["quota"])
    assert (found.change, found.error) == pytest.approx((change, error), rel=1e-9)
    assert found.freedom == pytest.approx(freedom, rel=1e-9)
    assert found.margin == pytest.approx(t.ppf(0.975, freedom) * error, rel=1e-9)
