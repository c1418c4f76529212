"""The guard about tails: what it predicts is what Student's intervals do, and it is quiet where tails cancel."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import skew, t

from analysis.audit.case import Case
from analysis.audit.intervals import heavy_tails, heavy_tails_of_samples, skewed_coverage
from analysis.effects.observations import FlaggedRows


def machines(count, rare=0.03, slow=0.6, seed=1):
    """Return values of machines that differ by 2%, of which a few are much slower."""
    rng = np.random.default_rng(seed)
    value = 1.0 + 0.02 * rng.standard_normal(count)
    value[rng.permutation(count)[: round(rare * count)]] *= 1.0 - slow
    return value


def case(value, treated):
    rows = {"period": 1, "job": "a", "machine": np.arange(len(value)), "weight": 1.0, "value": value}
    return Case.of(FlaggedRows.of(pd.DataFrame(rows | {"treated": treated.astype(int)})))


def first(count, treated):
    return np.random.default_rng(7).permutation(count) < treated


def covers(value, size, draws=4000):
    """Return how often Welch's interval of a small sample against all others holds 0."""
    rng, quantile = np.random.default_rng(3), t.ppf(0.975, size - 1)
    hits = 0
    for _ in range(draws):
        chosen = np.zeros(len(value), dtype=bool)
        chosen[rng.choice(len(value), size, replace=False)] = True
        arms = value[chosen], value[~chosen]
        error = np.sqrt(sum(arm.var(ddof=1) / len(arm) for arm in arms))
        hits += abs(arms[0].mean() - arms[1].mean()) <= quantile * error
    return hits / draws


@pytest.mark.statistical
@pytest.mark.parametrize(("size", "off"), [(40, 0.1), (100, 0.04), (300, 0.03)])
def test_predicted_coverage_is_that_of_students_intervals_on_such_machines(size, off):
    """4000 draws, known to 0.8 points; the expansion is cruder the worse it is. False alarms below 1% of seeds."""
    value = machines(3000)
    found = heavy_tails(case(value, first(3000, size)))
    predicted = found[0].evidence["coverage"] if found else 0.95
    assert predicted == pytest.approx(covers(value, size), abs=off)


def test_skewness_is_that_of_the_machines_and_the_size_needed_that_of_cochrans_rule():
    value = machines(3000)
    (found,) = heavy_tails(case(value, first(3000, 60)))
    sample = skew(value)
    assert found.evidence["skewness"] == pytest.approx(sample, rel=0.05)
    assert found.evidence["machines_needed"] == pytest.approx(25 * sample**2, rel=0.1)
    assert found.evidence["skewness_of_estimate"] == pytest.approx(abs(sample) / np.sqrt(60), rel=0.05)
    assert found.evidence["machines"] == 60
    assert found.severity == "error"


@pytest.mark.parametrize(("size", "controls"), [(60, 2940), (300, 60)])
def test_the_remedy_tells_its_price(size, controls):
    """The width of equal arms is that of Welch's intervals on normal machines: 3,000 pairs, known to 1%."""
    value = machines(size + controls)
    (found,) = heavy_tails(case(value, np.arange(size + controls) < size))
    rng, least = np.random.default_rng(5), min(size, controls)
    widths = []
    for arms in ((size, controls), (least, least)):
        variances = [rng.chisquare(n - 1, 3000) / (n - 1) / n for n in arms]
        freedom = sum(variances) ** 2 / sum(v**2 / (n - 1) for v, n in zip(variances, arms, strict=True))
        widths.append(np.mean(t.ppf(0.975, freedom) * np.sqrt(sum(variances))))
    wider, needed = widths[1] / widths[0], found.evidence["machines_needed"]
    assert found.evidence["equal_arms_wider"] == pytest.approx(wider, rel=0.01)
    assert f"or {least} in each" in found.remedy
    assert found.remedy.endswith(f"an interval {found.evidence['equal_arms_wider']:.2f} times as wide")
    assert f"{needed:,} machines in each arm, {needed - size:,} more with the feature" in found.remedy
    assert ("more without it" in found.remedy) == (needed > controls)


def test_equal_values_have_no_tails():
    assert heavy_tails(case(np.where(np.arange(300) % 50 == 7, 0.1 + 0.2, 0.3), first(300, 20))) == []


def test_arms_of_one_size_cancel_and_enough_machines_are_enough():
    value = machines(3000)
    assert heavy_tails(case(value, first(3000, 1500))) == []
    assert heavy_tails(case(value[:200], first(200, 20)))
    assert heavy_tails(case(value[:200], first(200, 100))) == []
    assert heavy_tails(case(np.concatenate([value] * 4), first(12000, 1200))) == []
    assert heavy_tails(case(machines(3000, slow=0.0), first(3000, 20))) == []


def test_two_samples_are_an_experiment_of_one_job():
    value, chosen = machines(3000), first(3000, 60)
    (one,), (other,) = heavy_tails(case(value, chosen)), heavy_tails_of_samples(value[~chosen], value[chosen])
    assert one.evidence.keys() == other.evidence.keys()
    assert list(one.evidence.values()) == pytest.approx(list(other.evidence.values()), rel=0.05)
    (exact,) = heavy_tails_of_samples(value[~chosen], value[chosen], whole=True)
    assert exact.evidence["skewness_of_estimate"] == pytest.approx(abs(skew(value)) / np.sqrt(60), rel=0.05)


def test_few_controls_are_as_bad_as_few_with_the_feature():
    value = machines(3000)
    few, many = (heavy_tails(case(value, chosen)) for chosen in (first(3000, 60), ~first(3000, 60)))
    assert many[0].evidence["coverage"] == pytest.approx(few[0].evidence["coverage"], abs=0.02)


def test_a_crossover_has_one_arm_of_differences():
    rng = np.random.default_rng(1)
    count = 200
    own = np.where(np.arange(count) < 6, 0.5, 0.01) * np.where(np.arange(count) % 2, 1.0, 0.9)
    order = rng.random(count) < 0.5
    rows = [
        pd.DataFrame({"period": period, "job": "a", "machine": np.arange(count), "weight": 1.0}).assign(
            treated=(order == bool(period)).astype(int),
            value=1.0 + np.where(order == bool(period), own, 0.0),
        )
        for period in (0, 1)
    ]
    table = pd.concat(rows, ignore_index=True)
    (found,) = heavy_tails(Case.of(FlaggedRows.of(table)))
    assert found.evidence["machines"] == count
    assert found.evidence["skewness_of_estimate"] == pytest.approx(skew(own) / np.sqrt(count), rel=0.1)


def test_what_cannot_be_told_is_left_alone():
    value = machines(40)
    assert heavy_tails(case(value[:6], np.arange(6) < 3)) == "8 machines, 2 in each arm, where 6 are"
    assert skewed_coverage(5.0) == 0.0
    assert skewed_coverage(0.0, 0.9) == pytest.approx(0.9)
