"""Total effects by domains: over all assignments of tiny fleets, by plain least squares, where neighbours disturb."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest

from analysis.effects.arrangements import saturated
from analysis.effects.cells import cells
from analysis.effects.estimators.adjusted import Adjusted
from analysis.effects.exposure import Domains, Exposure, WholeDomains
from analysis.effects.study import Study
from analysis.statistics import intraclass
from models.randomness import stream
from tests.helpers.outside_spill import CONDITIONS, fleet


def fleet_of(domain, treated, value, job=None, x=None):
    """Cells of one instance a row, on machines in domains."""
    domain, machines = np.asarray(domain), len(domain)
    on = np.asarray(treated, dtype=bool)
    rows = pd.DataFrame({"job": 0 if job is None else job, "machine": np.arange(machines), "quota": 1.0})
    rows["off"], rows["on"] = np.where(on, np.nan, value), np.where(on, value, np.nan)
    for number, column in enumerate([] if x is None else x.T):
        rows[f"x{number}"] = column
    jobs = pd.DataFrame({"job": np.unique(rows["job"]), "scale": 1.0})
    jobs["quota"] = rows.groupby("job").size().to_numpy()
    return cells(rows, jobs, racks=pd.Series(domain))


def neighbours(domain, treated):
    """Share of the other machines of the domain that have the feature, machine by machine."""
    return np.array(
        [np.mean(np.delete(treated[domain == domain[i]], np.sum(domain[:i] == domain[i]))) for i in range(len(domain))]
    )


def test_over_all_assignments_of_a_tiny_fleet_the_mean_is_the_total_effect():
    """Six domains of two: every choice of three that have the feature; effects differ by machine, and spill over."""
    rng, domain = stream(1, "tiny"), np.repeat(np.arange(6), 2)
    off, own, spill = 1e-4 * rng.normal(size=(3, 12))
    estimates = {"whole_domains": [], "exposure": []}
    for chosen in combinations(range(6), 3):
        treated = np.isin(domain, chosen)
        sums = fleet_of(domain, treated, 1.0 + off + (own + spill * neighbours(domain, treated)) * treated)
        estimates["whole_domains"].append(WholeDomains().many(sums, treated[None]).change[0])
        estimates["exposure"].append(Exposure().parts(sums, treated).total.change)
    for changes in estimates.values():
        assert np.mean(changes) == pytest.approx((own + spill).mean(), abs=1e-7)


def test_over_all_two_stage_assignments_domains_of_both_ends_tell_the_total_effect_though_it_is_no_line():
    """Five domains of two to 0, 50 and 100%: all 30 × 2 ways; only whole domains are compared."""
    rng, domain = stream(2, "tiny"), np.repeat(np.arange(5), 2)
    off, own, spill = 1e-4 * rng.normal(size=(3, 10))
    changes = []
    for full, half in product(combinations(range(5), 2), range(5)):
        for machine in () if half in full else (2 * half, 2 * half + 1):
            treated = np.isin(domain, full) | (np.arange(10) == machine)
            near = neighbours(domain, treated)
            value = 1.0 + off + own * treated + spill * np.where(near > 0, 1.0, 0.0)
            changes.append(WholeDomains().many(fleet_of(domain, treated, value), treated[None]).change[0])
    assert len(changes) == 60
    assert np.mean(changes) == pytest.approx((own + spill).mean(), abs=1e-7)


def by_least_squares(domain, job, treated, value, x):
    """Total, direct and spill with their errors, by plain least squares on dummies of jobs, machines of one cell."""
    design = np.column_stack([treated, neighbours(domain, treated), x, np.eye(job.max() + 1)[job]])
    combined, size = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]), np.bincount(job)

    def fitted(without=-1):
        """Return changes, what a unit on each value moves them by, coefficients and weights."""
        rows = domain != without
        left = np.array([np.bincount(domain[rows & (job == j)], minlength=15) for j in range(len(size))])
        alone = ((left / left.sum(axis=1, keepdims=True)) ** 2).sum(axis=1)
        weight = rows * (np.minimum(1 / (1 - alone), 2.0) * size / left.sum(axis=1))[job]
        hat = np.linalg.pinv(design * np.sqrt(weight)[:, None]) * np.sqrt(weight)
        slopes = hat @ value
        level = np.average(slopes[2 + x.shape[1] :], weights=size)
        return combined @ slopes[:2] / level, combined @ hat[:2] / level, slopes, weight

    changes, moves, slopes, weight = fitted()
    mark = np.eye(15)[domain]
    without = [fitted(d)[:2] for d in range(15)]
    off = np.array([changed - changes for changed, _ in without])
    added = np.array([moved - moves for _, moved in without])
    left = weight * (value - design @ slopes)
    of_domain = ((left @ mark) ** 2).sum() * 15 / 13 - (left**2).sum()
    of_domain = max(of_domain, 0.0) / (((weight @ mark) ** 2).sum() - (weight**2).sum())
    of_machine = max((left**2).sum() / (weight**2).sum() - of_domain, 0.0)
    own = of_domain * ((moves @ mark) ** 2).sum(axis=1) + of_machine * (moves**2).sum(axis=1)
    more = of_domain * ((added @ mark) ** 2).sum(axis=(0, 2)) + of_machine * (added**2).sum(axis=(0, 2))
    return changes, np.sqrt(own / more * (off**2).sum(axis=0))


def exposed(rng, treated_shares=(0.0, 0.5, 1.0)):
    """Fifteen domains of six, four jobs, a covariate, own effect 5% and spill-over -2%."""
    domain, job = np.repeat(np.arange(15), 6), rng.integers(0, 4, 90)
    share = np.resize(treated_shares, 15)[rng.permutation(15)]
    treated = np.tile((np.arange(6) + 0.5) / 6, 15) < share[domain]
    x = rng.normal(0.0, 0.05, (90, 1))
    for j in range(4):
        x[job == j] -= x[job == j].mean()
    value = 1.0 + 0.1 * job + 0.5 * x[:, 0] + 0.05 * treated - 0.02 * neighbours(domain, treated)
    return domain, job, treated, value, x


def test_the_exposure_estimate_is_that_of_plain_least_squares():
    rng = stream(3, "least squares")
    domain, job, treated, value, x = exposed(rng)
    value = value + rng.normal(0.0, 0.02, 90) + rng.normal(0.0, 0.01, 15)[domain]
    parts = Exposure().parts(fleet_of(domain, treated, value, job, x), treated)
    whole, error = by_least_squares(domain, job, treated.astype(float), value, x)
    assert [part.change for part in (parts.total, parts.direct, parts.spill)] == pytest.approx(whole, rel=1e-7)
    assert [part.error for part in (parts.total, parts.direct, parts.spill)] == pytest.approx(error, rel=1e-6)
    # tr² / tr of squares of what domains' means move each estimate without a domain by.
    assert 5 < parts.total.freedom < 15 - 2


def test_effects_that_are_a_line_come_apart_exactly():
    domain, job, treated, value, x = exposed(stream(4, "exact"))
    parts = Exposure().parts(fleet_of(domain, treated, value, job, x), treated)
    level = np.mean(1.0 + 0.1 * job)
    assert [parts.direct.change, parts.spill.change] == pytest.approx([0.05 / level, -0.02 / level], abs=1e-8)
    assert parts.total.change == pytest.approx(0.03 / level, abs=1e-8)
    assert parts.total.error < 1e-8


def test_with_two_arms_of_equal_domains_the_error_is_that_of_the_two_sample_t_test():
    domain, treated = np.repeat(np.arange(10), 4), np.repeat(np.arange(10) < 5, 4)
    value = 1.0 + 1e-6 * stream(5, "arms").normal(size=40)
    parts = Exposure().parts(fleet_of(domain, treated, value), treated)
    means = value.reshape(10, 4).mean(axis=1)
    assert parts.total.freedom == pytest.approx(8.0, abs=0.01)
    assert parts.total.change == pytest.approx(means[:5].mean() / means[5:].mean() - 1)
    pooled = (means[:5].var(ddof=1) + means[5:].var(ddof=1)) / 2
    assert parts.total.error == pytest.approx(np.sqrt(pooled * 2 / 5), rel=1e-4)
    assert np.isnan(parts.direct.change)


def test_errors_are_no_larger_than_estimates_spread_though_jobs_are_on_few_domains():
    """Twelve domains, a job of sixty instances and sixty of two: errors' mean square is the estimates' variance."""
    rng, domain = stream(7, "few"), np.repeat(np.arange(12), 5)
    job = np.concatenate([np.zeros(60, int), np.repeat(np.arange(1, 61), 2)])
    jobs = pd.DataFrame({"job": np.arange(61), "scale": 1.0, "quota": np.bincount(job)})
    changes, squares = [], []
    for _ in range(150):
        machine = np.concatenate([np.arange(60), *(rng.choice(60, 2, replace=False) for _ in range(60))])
        treated = np.isin(domain, rng.choice(12, 6, replace=False))
        value = 1.0 + rng.normal(0.0, 0.002, 12)[domain[machine]] + rng.normal(0.0, 0.02, len(job))
        on, rows = treated[machine], pd.DataFrame({"job": job, "machine": machine, "quota": 1.0})
        rows["off"], rows["on"] = np.where(on, np.nan, value), np.where(on, value, np.nan)
        total = Exposure().parts(cells(rows, jobs, racks=pd.Series(domain)), treated).total
        changes.append(total.change)
        squares.append(total.error**2)
    assert np.mean(squares) / np.var(changes) == pytest.approx(1.0, abs=0.25)


def test_one_saturation_tells_nothing():
    domain, treated = np.repeat(np.arange(6), 4), np.tile([True, True, False, False], 6)
    parts = Exposure().parts(fleet_of(domain, treated, np.ones(24)), treated)
    assert Domains(domain, treated).alike
    assert np.isnan(parts.total.change)


def test_the_correlation_is_that_which_was_planted():
    rng, domain = stream(6, "correlation"), np.repeat(np.arange(400), 6)
    residual = rng.normal(0.0, 0.3, 400)[domain] + rng.normal(0.0, 0.9, 2400)
    alike, machines = intraclass(residual, domain)
    assert alike == pytest.approx(0.1, abs=0.03)
    assert machines == 6


@pytest.mark.parametrize("saturations", [(0.0, 1.0), (0, 0.5), (0.0, 0.5, 1.0), (0.2, 0.8)])
def test_domains_are_drawn_to_saturations(saturations):
    domain = np.repeat(np.arange(20), 10)
    way = saturated(fleet_of(domain, np.zeros(200, bool), np.ones(200)), saturations)
    _, drawn = way.arrange(int(np.mean(saturations) * 200), 40, np.random.default_rng(1))
    shares = np.stack([np.bincount(domain, draw) / 10 for draw in drawn])
    assert set(np.unique(shares).tolist()) == {*saturations}
    assert (drawn.sum(axis=1) == np.rint(shares * 10).sum(axis=1)).all()
    assert drawn.sum(axis=1).mean() == pytest.approx(np.mean(saturations) * 200, abs=6)
    assert 0.0 < drawn.mean(axis=0).min() < drawn.mean(axis=0).max() < 0.8


def test_total_effects_have_the_sign_that_machines_side_by_side_have_not():
    """Power that the feature takes from neighbours: ten fleets of another making, in which it harms the whole."""
    changes, truths = [], []
    for number in range(10):
        rng = np.random.default_rng([21, number])
        drawn = fleet(CONDITIONS["power_reversed"], rng)
        treated, alone = drawn.assigned(rng), drawn.assigned(rng, by_machine=True)
        whole = Study.of(drawn.table(treated).assign(rack=lambda rows: rows["domain"]))
        estimates = WholeDomains().estimate(whole), Exposure().estimate(whole)
        changes.append(
            [estimate.change for estimate in (*estimates, Adjusted().estimate(Study.of(drawn.table(alone))))]
        )
        truths.append(drawn.truth())
    whole_domains, exposure, side_by_side = np.array(changes).T
    assert max(truths) < 0 < side_by_side.min()
    assert (whole_domains < 0).all()
    assert (exposure < 0).all()
    assert np.abs(np.mean(np.array([whole_domains, exposure]) - truths, axis=1)).max() < 0.005


def test_machines_alone_in_their_domains_count_for_nothing():
    """Where all others have the same share, they tell nothing of neighbours either."""
    rng, domain = stream(9, "alone"), np.repeat(np.arange(8), 4)
    treated = rng.random(32) < np.repeat([0.0, 0.5, 1.0, 0.5, 0.0, 1.0, 0.5, 0.25], 4)
    value, x = 1.0 + 0.01 * rng.normal(size=32) + 0.02 * treated, rng.normal(size=(32, 3))
    more, having, values = np.append(domain, [8, 9]), np.append(treated, [True, False]), np.append(value, [1.5, 0.7])
    without = Exposure(covariates=0).parts(fleet_of(domain, treated, value, x=x), treated)
    beside = Exposure(covariates=0).parts(fleet_of(more, having, values, x=np.append(x, x[:2], axis=0)), having)
    for part in ("total", "direct", "spill"):
        assert getattr(beside, part) == pytest.approx(getattr(without, part), rel=1e-6)
    having = np.append(np.arange(32) % 4 < 2, [True, False])
    assert np.isnan(Exposure().parts(fleet_of(more, having, values), having).total.change)
