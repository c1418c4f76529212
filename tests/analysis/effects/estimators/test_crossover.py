"""Machines that are their own control: a readable twin, what either mean is good for, and who is too few."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.effects.cells import cells
from analysis.effects.estimators.crossover import many
from models.randomness import stream


def stays(rng, *, machines=14, jobs=4, each=3):
    """Stays of random jobs and quotas with a gain each; jobs' effects differ."""
    size = machines * each
    job = rng.integers(0, jobs, size)
    gain = 0.02 * job + 0.03 * rng.standard_normal(size)
    row = {"job": job, "machine": np.repeat(np.arange(machines), each), "quota": 1.0 + job, "off": np.nan}
    return pd.DataFrame(row | {"presence": rng.choice([0.5, 1.0], size), "on": (1.0 + gain) * (2.0 + job)})


def fleet(jobs=4):
    return pd.DataFrame({"job": range(jobs), "quota": 5.0 + np.arange(jobs), "scale": 2.0 + np.arange(jobs)})


def twin(rows, jobs, machines, clusters, shared):
    """Both means, what each cluster adds to their errors, and the mixture that varies least, with loops."""
    jobs = jobs.set_index("job")
    seen = rows[rows["machine"].isin(machines)].assign(cluster=lambda table: clusters[table["machine"]])
    seen["gain"] = seen["on"] / seen["job"].map(jobs["scale"]) - 1.0
    seen["own"] = seen["quota"] * seen["presence"] * seen["job"].map(jobs["scale"])
    own = seen.groupby("job")["own"].sum() / seen["own"].sum()
    held = seen.groupby("job")["presence"].sum()
    full = (jobs["quota"] * jobs["scale"]).reindex(held.index)
    full /= full.sum()
    mean = (seen["gain"] * seen["presence"]).groupby(seen["job"]).sum() / held
    change = [(own * mean).sum(), (full * mean).sum()]
    parts = dict.fromkeys(sorted(set(seen["cluster"])), (0.0, 0.0, 0.0))
    for (job, _, cluster), cell in seen.groupby(["job", "machine", "cluster"]):
        share = cell["presence"].sum() / held[job]
        gain = (cell["presence"] * cell["gain"]).sum() / held[job]
        alone = share >= 0.9
        other = gain - share * change[1] if alone else (gain - share * mean[job]) / (1.0 - share)
        more = own[job] * (gain - share * change[0]), full[job] * other, own[job] * share
        parts[cluster] = tuple(a + b for a, b in zip(parts[cluster], more, strict=True))
    one, two, weight = np.array(list(parts.values())).T
    best = np.clip(-(one @ (two - one)) / ((two - one) @ (two - one)), 0.0, 1.0)
    number = (weight**2).sum() ** 2 / (weight**4).sum()
    variance = (((1 - best) * one + best * two) ** 2).sum() * number / (number - 1.0)
    freedom = (variance + shared) ** 2 / (variance**2 / (number - 1.0))
    return (1 - best) * change[0] + best * change[1], np.sqrt(variance + shared), freedom


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), racks=st.booleans(), shared=st.sampled_from([0.0, 1e-4]))
def test_it_equals_its_readable_twin(seed, racks, shared):
    rng = np.random.default_rng(seed)
    rows = stays(rng)
    made = cells(rows, fleet(), known=True, shared=shared)
    clusters = np.arange(14) // (2 if racks else 1)
    chosen = np.isin(np.arange(14), rng.permutation(14)[:6])
    found = many(made, chosen[None, :], clusters)
    expected = twin(rows, fleet(), np.flatnonzero(chosen), clusters, shared)
    assert [float(each[0]) for each in found] == pytest.approx(expected, rel=1e-9)


def drawn(rows, jobs, rng, size, draws):
    made = cells(rows, jobs, known=True)
    treated = np.zeros((draws, len(made.machines)), dtype=np.bool_)
    for draw in treated:
        draw[rng.permutation(len(draw))[:size]] = True
    return many(made, treated, np.arange(len(made.machines)))


def mixed(rng, machines, effect, own, taken):
    """Two jobs of equal quota on each machine's 4 places; what one resident loses by its machine the others gain."""
    job = rng.integers(0, 2, 4 * machines)
    noise = taken * rng.standard_normal((machines, 4))
    gain = effect * job + (noise - noise.mean(axis=1, keepdims=True)).ravel() + own * rng.standard_normal(4 * machines)
    row = {"job": job, "machine": np.repeat(np.arange(machines), 4), "quota": 1.0, "off": np.nan}
    return pd.DataFrame(row | {"on": 1.0 + gain}), pd.DataFrame({"job": [0, 1], "quota": 1.0, "scale": 1.0})


@pytest.mark.statistical
def test_what_residents_take_from_each_other_cancels_and_jobs_that_differ_do_no_harm():
    """Errors of the mean over 4 places of either job alone are 0.05 and 0.25; each bound is passed by a factor of 2."""
    rng = stream(4, "mixed")
    taken = drawn(*mixed(rng, 400, 0.0, 0.001, 0.1), rng, 40, 50)
    assert taken.error.mean() < 0.002
    apart = drawn(*mixed(rng, 400, 1.0, 0.01, 0.0), rng, 40, 50)
    assert apart.error.mean() < 0.004
    assert np.abs(apart.change - 0.5).max() < 0.02


@pytest.mark.statistical
def test_intervals_of_draws_hold_the_mean_of_all():
    """1,000 draws of 20 of 2,000 machines: outside 92.5% to 97.5% in fewer than 1 of 1,000 seeds."""
    rng = stream(9, "own control")
    rows, jobs = mixed(rng, 2000, 0.05, 0.05, 0.02)
    found = drawn(rows, jobs, rng, 20, 1000)
    truth = float((rows["on"] - 1.0).groupby(rows["job"]).mean().mean())
    assert 0.925 <= (np.abs(found.change - truth) <= found.margin()).mean() <= 0.975


def test_one_machine_is_too_few():
    made = cells(stays(np.random.default_rng(1)), fleet(), known=True)
    found = many(made, np.eye(14, dtype=np.bool_)[:1], np.arange(14))
    assert np.isnan(found.change).all()
    assert np.isnan(found.error).all()
