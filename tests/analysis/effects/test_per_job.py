"""Effects of jobs: against matrices, against what was planted, and how often a verdict is wrong."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import fractional_matrix_power
from scipy.stats import false_discovery_control

from analysis.effects.cells import cells
from analysis.effects.per_job import PerJobCriteria, between, clustered, moderated, per_job, randomisation_p, shrink
from analysis.effects.score_intervals import ProportionArms, Proportions, restricted
from analysis.effects.study import Study
from models.randomness import stream


def fleet(rng, machines, jobs, effect, *, per_machine=4, tails=False, treated=30):
    """A study of machines that host random jobs; the effect of each job is planted on the machines with the feature."""
    machine = np.repeat(np.arange(machines), per_machine)
    job = np.minimum(rng.geometric(3.0 / jobs, len(machine)) - 1, jobs - 1)
    noise = rng.standard_t(4, len(machine)) if tails else rng.standard_normal(len(machine))
    off = 1.0 + 0.03 * noise + 0.015 * rng.standard_normal(machines)[machine]
    chosen = np.zeros(machines, dtype=bool)
    chosen[rng.choice(machines, treated, replace=False)] = True
    on = off + np.asarray(effect)[job]
    table = pd.DataFrame({"job": job, "machine": machine, "quota": 1.0})
    table["off"], table["on"] = np.where(chosen[machine], np.nan, off), np.where(chosen[machine], on, np.nan)
    quota = np.bincount(job, minlength=jobs) + 1e-9
    made = cells(table, pd.DataFrame({"job": np.arange(jobs), "quota": quota, "scale": 1.0}))
    return Study(made, chosen, "concurrent"), table


def by_matrices(table, chosen, job):
    """Change, error and freedom of one job: CR2 and its degrees of freedom by the matrices that define them."""
    sides = []
    for arm, name in ((False, "off"), (True, "on")):
        rows = table[(table["job"] == job) & (chosen[table["machine"]] == arm)]
        n = len(rows)
        hat = np.full((n, n), 1 / n)
        left = np.eye(n) - hat
        variance, columns = 0.0, []
        for machine in rows["machine"].unique():
            own = (rows["machine"] == machine).to_numpy()
            adjust = fractional_matrix_power(np.eye(own.sum()) - hat[np.ix_(own, own)], -0.5).real
            variance += (np.full(own.sum(), 1 / n) @ adjust @ (left @ rows[name].to_numpy())[own]) ** 2
            columns.append(left[:, own] @ adjust @ np.full(own.sum(), 1 / n))
        root = np.array(columns) @ np.array(columns).T
        sides.append((rows[name].mean(), variance, np.trace(root) ** 2 / np.trace(root @ root)))
    (base, var_base, free_base), (new, var_new, free_new) = sides
    change = new / base - 1
    parts = np.array([var_base * (1 + change) ** 2, var_new]) / base**2
    return change, np.sqrt(parts.sum()), parts.sum() ** 2 / (parts[0] ** 2 / free_base + parts[1] ** 2 / free_new)


def test_change_error_and_freedom_are_those_of_the_matrices():
    study, table = fleet(stream(1, "matrices"), 60, 6, np.linspace(-0.05, 0.05, 6))
    found = per_job(study)
    for job in range(4):
        expected = by_matrices(table, study.treated, job)
        assert found.loc[job, ["change", "error", "freedom"]].tolist() == pytest.approx(expected, rel=1e-6)


def test_instances_that_count_for_unlike_much_have_the_variance_of_the_matrices():
    rng = stream(3, "unlike shares")
    share, spread = rng.dirichlet(np.ones(7)), 1.0 / rng.integers(1, 4, 7)
    left = np.eye(7) - share
    omega = np.diag(spread)
    own = np.diag(left @ omega @ left.T)
    weights = np.diag(share**2 * spread / own)
    form = left.T @ weights @ left @ omega
    y = rng.normal(size=7)
    answers = clustered(share, spread, left @ y, np.zeros(7, int), 1)
    variance, freedom, unit = (numbers[0, 0] for numbers in answers)
    assert unit == pytest.approx(share**2 @ spread) == pytest.approx(np.trace(form))  # the variance is unbiased
    assert variance == pytest.approx(y @ left.T @ weights @ left @ y)
    assert freedom == pytest.approx(np.trace(form) ** 2 / np.trace(form @ form))


def arms_of(yes, of, freedom=1e9):
    """Arms of independent instances."""
    share = np.array([yes]) / np.array([of])
    unit = 1.0 / np.array([of])
    return ProportionArms(share, unit, share * (1 - share) / (np.array([of]) - 1), np.full((1, 2), freedom))


@pytest.mark.parametrize(
    ("yes", "of", "published"),
    [
        ((48, 56), (80, 70), (0.0533, 0.3377)),
        ((3, 9), (10, 10), (0.1821, 0.8370)),
        ((2, 6), (7, 7), (0.0544, 0.8478)),
        ((0, 5), (29, 56), (-0.0313, 0.1926)),
    ],
)
def test_intervals_of_proportions_are_those_published(yes, of, published):
    """Newcombe 1998, Statistics in Medicine 17, table II, method 5 (Mee)."""
    assert np.ravel(arms_of(yes, of).ends(0.95)) == pytest.approx(published, abs=6e-5)


def test_restricted_shares_are_the_likeliest():
    share, number = np.array([0.3, 0.55]), np.array([17.0, 9.0])
    grid = np.linspace(0.0001, 0.7999, 200_001)
    likelihood = sum(
        n * (x * np.log(p) + (1 - x) * np.log(1 - p)) for n, x, p in zip(number, share, (grid, grid + 0.2), strict=True)
    )
    assert restricted(share[None], 1 / number[None], np.array([0.2]))[0, 0] == pytest.approx(
        grid[likelihood.argmax()], abs=1e-5
    )


def test_a_job_that_shows_no_yes_with_the_feature_is_not_taken_for_certain():
    """Three machines without a yes vary by nothing; a chance of 8 in 20 gives that 1 time in 5."""
    yes = np.append(np.zeros(3), np.resize([1.0, 0.0, 0.0, 1.0, 0.0], 20))
    table = pd.DataFrame({"job": 0, "machine": np.arange(23), "quota": 1.0, "off": 1 + 1e-4 * yes, "on": 1.0})
    table.loc[:2, "off"], table.loc[3:, "on"] = np.nan, np.nan
    whole = cells(table, pd.DataFrame({"job": [0], "quota": [1.0], "scale": [1.0]}))
    row = per_job(Study(whole, np.arange(23) < 3, "concurrent"), None, Proportions(0.0, 1e4)).iloc[0]
    assert row["low"] * 1e4 < -0.6
    assert row["high"] > 0
    assert row["p_value"] > 0.15


def test_a_covariate_that_tells_all_leaves_no_error():
    rng = stream(2, "covariate")
    _, table = fleet(rng, 40, 3, np.zeros(3), per_machine=9, treated=15)
    chosen = np.isfinite(table.groupby("machine")["on"].first().to_numpy())
    x = rng.standard_normal(len(table))
    course = 1.0 + 0.1 * x
    table = table.assign(off=course, on=course + 0.02, x0=x)
    table.loc[chosen[table["machine"]], "off"] = np.nan
    table.loc[~chosen[table["machine"]], "on"] = np.nan
    jobs = pd.DataFrame({"job": range(3), "quota": 1.0, "scale": 1.0})
    found = per_job(Study(cells(table, jobs), chosen, "concurrent"))
    plain = per_job(Study(cells(table.drop(columns="x0"), jobs), chosen, "concurrent"))
    seen = plain["error"].notna()
    assert seen.any()
    assert (found["error"] < 1e-6 * plain["error"])[seen].all()
    assert found.loc[seen, "change"].to_numpy() == pytest.approx(0.02, abs=0.002)


def test_losers_of_a_winning_feature_are_named():
    effect = np.r_[0.06, 0.06, -0.06, 0.0, 0.06, 0.06]
    study, _ = fleet(stream(3, "named"), 400, 6, effect, treated=150)
    found = per_job(study)
    assert found["verdict"].tolist()[:4] == ["gained", "gained", "lost", "undecided"]
    assert (found["shrunken"] - found["change"]).abs().max() < 0.02


def test_jobs_on_too_few_machines_are_undecidable_and_take_no_part_in_the_adjustment():
    study, _ = fleet(stream(4, "few"), 60, 30, np.zeros(30), treated=10)
    found = per_job(study, PerJobCriteria(min_machines=4))
    few = found[["machines", "controls"]].min(axis=1) < 4
    assert few.any()
    assert (found.loc[few, "verdict"] == "undecidable").all()
    assert found.loc[few, "p_value"].isna().all()
    known = found[found["p_value"].notna()]
    expected = false_discovery_control(known["p_value"].to_numpy())
    assert known["adjusted"].to_numpy() == pytest.approx(expected)
    assert np.isfinite(found["shrunken"]).all()


def test_control_under_any_dependence_is_stricter():
    study, _ = fleet(stream(5, "control"), 300, 20, np.tile([0.02, -0.02], 10), treated=80)
    verdicts = [
        set(per_job(study, PerJobCriteria(control=control)).query("verdict in ('gained', 'lost')")["job"])
        for control in ("benjamini-hochberg", "benjamini-yekutieli")
    ]
    assert verdicts[1] < verdicts[0]


def test_in_a_crossover_an_instance_is_its_own_control():
    rng = stream(6, "crossover")
    table = pd.DataFrame({"job": np.repeat([0, 1], 60), "machine": np.tile(np.arange(40), 3), "quota": 1.0})
    own = 1.0 + np.repeat([0.02, -0.02], 60) + 0.01 * rng.standard_normal(120)
    made = cells(
        table.assign(off=np.nan, on=own), pd.DataFrame({"job": [0, 1], "quota": 1.0, "scale": 1.0}), known=True
    )
    found = per_job(Study(made, np.ones(40, dtype=bool), "crossover"))
    assert found["change"].tolist() == pytest.approx([own[:60].mean() - 1, own[60:].mean() - 1])
    assert found["verdict"].tolist() == ["gained", "lost"]
    assert (found["machines"] == found["controls"]).all()


def test_the_spread_of_true_effects_solves_its_equation():
    rng = stream(7, "spread")
    error = np.exp(rng.standard_normal(50)) / 10
    change = 0.01 + 0.1 * rng.standard_normal(50) + error * rng.standard_normal(50)
    grid = np.linspace(1e-4, 0.1, 200_001)
    trust = 1 / (error[:, None] ** 2 + grid[None, ::100])
    middle = (trust * change[:, None]).sum(axis=0) / trust.sum(axis=0)
    excess = (trust * (change[:, None] - middle) ** 2).sum(axis=0) - 49
    assert between(change, error**2) == pytest.approx(grid[::100][np.argmin(np.abs(excess))], abs=1e-4)


def test_effects_that_differ_no_more_than_chance_shrink_almost_to_one():
    change = np.r_[np.linspace(0.009, 0.011, 43), np.nan]
    mean, left = shrink(change, np.full(44, 0.1))
    assert mean[:43] == pytest.approx(0.01 + (change[:43] - 0.01) * 2 / 42)
    assert mean[43] == pytest.approx(0.01)
    assert left[43] == pytest.approx(0.1 / np.sqrt(43))


def test_too_few_jobs_are_not_shrunk():
    mean, left = shrink(np.array([0.1, 0.2, -0.3]), np.array([0.1, 0.2, 0.3]))
    assert mean.tolist() == [0.1, 0.2, -0.3]
    assert left == pytest.approx([0.1, 0.2, 0.3])
    assert np.isnan(shrink(np.array([0.1, np.nan]), np.ones(2))[0]).all()


@pytest.mark.statistical
def test_shrunken_effects_are_nearer_to_the_truth_and_their_errors_true():
    """Root mean squares of 30 fleets; the raw are a third further off, so the order fails in fewer than 1 of 10,000."""
    squares, inside = [], []
    for seed in range(30):
        rng = stream(seed, "shrunken")
        effect = 0.01 * rng.standard_normal(25)
        found = per_job(fleet(rng, 150, 25, effect, treated=40)[0])
        known = (found["verdict"] != "undecidable").to_numpy()
        squares.append([((found[name] - effect)[known] ** 2).mean() for name in ("change", "shrunken")])
        inside += (np.abs(found["shrunken"] - effect)[known] <= 1.96 * found["shrunken_error"][known]).tolist()
    raw, shrunken = np.sqrt(np.mean(squares, axis=0))
    assert shrunken < 0.85 * raw
    assert np.mean(inside) > 0.9


@pytest.mark.statistical
def test_where_nothing_changed_a_verdict_is_rare():
    """Nominal 5% of 120 fleets, 25 jobs on 25 of 150 machines, t with 4 degrees; above 12% with probability 0.001."""
    wrong = 0
    for seed in range(120):
        study, _ = fleet(stream(seed, "nothing"), 150, 25, np.zeros(25), tails=True, treated=25)
        wrong += int(per_job(study)["verdict"].isin(["gained", "lost"]).any())
    assert wrong / 120 <= 0.12


@pytest.mark.statistical
def test_of_the_verdicts_no_more_are_wrong_than_said_and_most_losers_are_found():
    """Half of the jobs have no effect: realised rate 2.5% of 80 fleets, above 6% with probability below 0.001."""
    shares, found_losers = [], []
    for seed in range(80):
        rng = stream(seed, "verdicts")
        effect = np.tile([0.04, 0.0, -0.04, 0.0], 6)
        found = per_job(fleet(rng, 200, 24, effect, treated=60)[0])
        sign = found["verdict"].map({"gained": 1, "lost": -1}).fillna(0).to_numpy()
        shares.append(np.sum((sign != 0) & (sign != np.sign(effect))) / max(np.sum(sign != 0), 1))
        losers = (effect < 0) & (found["machines"] >= 12)
        found_losers.append(np.mean(sign[losers] == -1) if losers.any() else np.nan)
    assert np.mean(shares) <= 0.06
    assert np.nanmean(found_losers) > 0.6


def test_every_wrong_criterion_is_told():
    with pytest.raises(
        ValueError, match=r"false_discoveries must be .*, got 0\nconfidence must .*, got 1\nmin_machines"
    ):
        PerJobCriteria(false_discoveries=0.0, confidence=1.0, min_machines=1)
    with pytest.raises(ValueError, match="control must be one of benjamini-hochberg, benjamini-yekutieli, got holm"):
        PerJobCriteria(control="holm")


def counted(score, chosen):
    """Share of all choices whose sum lies at least as far from the middle; scores must be whole."""
    sums = np.array([sum(score[at] for at in each) for each in combinations(range(len(score)), len(chosen))])
    middle = len(chosen) * np.mean(score)
    return float(np.mean(np.abs(sums - middle) >= abs(sum(score[at] for at in chosen) - middle) - 1e-9))


@pytest.mark.parametrize("size", [1, 3, 6, 9])
def test_every_choice_is_counted(size):
    # A standard deviation of 8 and a mean of 0: rounding to a sixteenth of the former changes no score.
    score = np.array([-8.0, 8.0, -4.0, 4.0, -10.0, 10.0, -10.0, 10.0, -6.0, 6.0])
    score *= 8 / np.std(score)
    score = np.rint(score)
    chosen = stream(size, "scores").choice(10, size, replace=False)
    assert randomisation_p(score, chosen) == pytest.approx(counted(score, chosen))


def test_rounding_moves_a_p_value_little():
    rng = stream(3, "scores")
    score = rng.standard_t(3, 14)
    for _ in range(20):
        chosen = rng.choice(14, 5, replace=False)
        assert randomisation_p(score, chosen) == pytest.approx(counted(score, chosen), abs=0.05)


@pytest.mark.statistical
def test_under_randomisation_small_p_values_are_as_rare_as_they_say():
    """Exact, so at most 1% of 1,500 choices fall below 1% but for chance; above 2% with probability below 0.001."""
    rng = stream(4, "scores")
    score = np.exp(1.5 * rng.standard_normal(40))
    p_values = [randomisation_p(score, rng.choice(40, 4, replace=False)) for _ in range(1500)]
    assert np.mean(np.array(p_values) <= 0.01) <= 0.02
    assert np.mean(np.array(p_values) <= 0.2) <= 0.24


def test_no_spread_or_no_choice_says_nothing():
    assert randomisation_p(np.ones(5), np.array([1])) == 1
    assert randomisation_p(np.arange(5.0), np.arange(5)) == 1


def test_hundreds_of_machines_are_counted_without_overflow():
    score = stream(5, "scores").standard_normal(900)
    assert 0 < randomisation_p(score, np.argsort(score)[-12:]) < 1e-12


@pytest.mark.statistical
def test_variances_that_agree_lean_far_on_the_controls_and_find_the_factor():
    """Jobs of equal ratio 2: the pooled estimate is within 15% and freedom grows; fails in fewer than 1 of 10,000."""
    rng = stream(6, "variances")
    truth = np.exp(rng.standard_normal(300))
    free = np.stack([np.full(300, 80.0), np.full(300, 4.0)], axis=1)
    seen = np.stack([truth, 2 * truth], axis=1) * rng.chisquare(free) / free
    made, freedom = moderated(seen, free)
    assert (freedom > 20).all()
    assert np.exp(np.mean(np.log(made / truth))) == pytest.approx(2, rel=0.15)
    assert np.std(np.log(made / truth)) < 0.5 * np.std(np.log(seen[:, 1] / truth))


@pytest.mark.statistical
def test_variances_that_differ_lean_little():
    """Ratios spread as 1 / chi-square with 4 degrees of freedom are found to; 2 to 8 but for 1 of 1,000 seeds."""
    rng = stream(7, "variances")
    ratio = 4 / rng.chisquare(4, 500)
    free = np.stack([np.full(500, 200.0), np.full(500, 10.0)], axis=1)
    seen = np.stack([np.ones(500), ratio], axis=1) * rng.chisquare(free) / free
    _, freedom = moderated(seen, free)
    assert 2 < freedom[0] - 10 < 8


def test_few_jobs_and_unknown_variances_stay_as_they_are():
    few = np.ones((9, 2))
    assert moderated(few, few)[1].tolist() == [1.0] * 9
    variance, freedom = np.ones((12, 2)), np.full((12, 2), 5.0)
    variance[3, 1] = np.nan
    made, grown = moderated(variance, freedom)
    assert np.isnan(made[3])
    assert grown[3] == 5
    assert grown[0] > 5
