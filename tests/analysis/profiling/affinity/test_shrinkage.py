from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.profiling.affinity.effects import fit
from analysis.profiling.affinity.shrinkage import compare, estimate, held_out
from analysis.profiling.affinity.table import AffinityTable
from analysis.profiling.affinity.terms import EFFECTS, STRUCTURES, Structure, structure_of, terms_of
from models.platforms import PLATFORMS
from tests.helpers.affinities import random_table
from tests.helpers.modelled_jobs import CLOCKS, NAMES, OVERLAP, modelled_rows


def noisy(seed, error, jobs=200, interaction=0.15, hidden=0.0):
    """Return the truth, and a table of it with lognormal errors and some pairs not seen."""
    truth = random_table(seed, jobs, interaction=interaction)
    rng = np.random.default_rng(seed + 1000)
    cpi = truth.cpi * np.exp(rng.normal(0.0, error, truth.cpi.shape))
    cpi[rng.random(cpi.shape) < hidden] = np.nan
    return truth, replace(truth, cpi=cpi, cpi_se=np.nan_to_num(cpi * error))


def test_what_is_known_exactly_stays():
    table = random_table(1)
    found = estimate(table)
    assert (found.cpi == table.cpi).all()
    assert not found.log_se.any()


def test_without_interactions_the_effects_are_those_of_a_written_out_regression():
    _, table = noisy(2, 0.2, jobs=15, interaction=0.0, hidden=0.3)
    rng = np.random.default_rng(5)
    table = replace(table, cpi_se=table.cpi_se * np.exp(rng.normal(0.0, 0.5, table.cpi.shape)))
    seen = np.isfinite(table.cpi) & (np.isfinite(table.cpi).sum(axis=1, keepdims=True) > 1)
    table = replace(table, cpi=np.where(seen, table.cpi, np.nan))
    keep = seen.any(axis=1)
    error = np.where(seen, table.cpi_se / table.cpi, 1.0)
    found = estimate(table)
    job, platform = np.nonzero(seen)
    design = np.zeros((job.size, 15 + 4))
    design[np.arange(job.size), job] = 1.0
    design[np.arange(job.size), 15 + platform] = 1.0
    weight = 1.0 / np.sqrt(error[job, platform] ** 2 + found.interaction_sd**2)
    beta = np.linalg.lstsq(design * weight[:, None], np.log(table.cpi[seen]) * weight, rcond=None)[0]
    effects = beta[:15, None] + beta[None, 15:]
    kept = found.interaction_sd**2 / (found.interaction_sd**2 + error**2)
    expected = np.where(seen, effects + kept * (np.log(np.where(seen, table.cpi, 1.0)) - effects), effects)
    np.testing.assert_allclose(np.log(found.cpi[keep]), expected[keep], rtol=0, atol=1e-6)


@pytest.mark.statistical
@pytest.mark.parametrize("error", [0.05, 0.3])
def test_the_spread_of_interactions_is_found(error):
    """Its standard deviation is 4% of 0.15 at the small error, 13% at the large; four of them are allowed."""
    found = estimate(noisy(3, error)[1])
    assert found.interaction_sd == pytest.approx(0.15, rel=4 * (0.04 if error < 0.1 else 0.13))


@pytest.mark.statistical
def test_shrinking_lessens_the_error_and_says_how_large_it_is():
    """800 pairs: a mean square differs from its expectation by 5%; four times that is allowed, beyond it 1 in 10⁴."""
    truth, table = noisy(4, 0.3)
    found = estimate(table)
    error = np.log(found.cpi / truth.cpi)
    assert (error**2).mean() < 0.5 * (np.log(table.cpi / truth.cpi) ** 2).mean()
    assert ((error / found.log_se) ** 2).mean() == pytest.approx(1.0, rel=0.3)


@pytest.mark.statistical
def test_pairs_that_were_not_seen_are_predicted_with_their_error():
    """About 240 predicted pairs: a mean square within 4 × 9% of its expectation; beyond it fewer than 1 in 10⁴."""
    truth, table = noisy(5, 0.05, hidden=0.3)
    hidden = table.unobserved & np.isfinite(table.cpi).any(axis=1, keepdims=True)
    found = estimate(table)
    error = np.log(found.cpi / truth.cpi)[hidden]
    assert found.filled == int(table.unobserved.sum())
    assert ((error / found.log_se[hidden]) ** 2).mean() == pytest.approx(1.0, rel=0.4)


def test_misses_explain_how_platforms_differ():
    rng = np.random.default_rng(6)
    truth = random_table(6, 200, interaction=0.0)
    memory = rng.normal(0.0, 1.0, 200)
    slope = np.array([0.1, -0.1, 0.05, -0.05])
    cpi = truth.cpi * np.exp(memory[:, None] * slope)
    hidden = rng.random(cpi.shape) < 0.25
    hidden[np.arange(200), rng.integers(4, size=200)] = False
    known = replace(truth, cpi=np.where(hidden, np.nan, cpi), cpi_se=np.where(hidden, 0.0, 0.01 * cpi))
    misses = np.exp(memory[:, None] - 5.0) * np.ones(4)
    without, with_them = estimate(known), estimate(replace(known, misses=misses))
    errors = [np.abs(np.log(found.cpi / cpi)[hidden]).mean() for found in (without, with_them)]
    assert errors[1] < 0.25 * errors[0]
    assert with_them.interaction_sd < 0.2 * without.interaction_sd


COUNTED = ["l1_misses", "l2_misses", "llc_misses"]
SHEETS = [PLATFORMS[name] for name in NAMES]


def said(rows):
    """Return what the model says of one job's rows, from those that were sampled, by hand."""
    seen = rows[rows["cpi"].notna()]
    weight = seen["load"].to_numpy() / seen["load"].sum()
    lines = []
    for _, row in seen.iterrows():
        sizes = [cache.size_bytes for cache in PLATFORMS[row["platform"]].caches]
        lines.append(np.polyfit(np.log(sizes), np.log(row[COUNTED].to_numpy(float)), 1))
    slope, start = weight @ np.array(lines)
    branches = weight @ seen["mispredictions"].to_numpy()
    made = []
    for sheet, clock in zip(SHEETS, CLOCKS, strict=True):
        missed = [np.exp(start + slope * np.log(cache.size_bytes)) for cache in sheet.caches]
        waits = missed[-1] * sheet.memory_latency_s * clock
        waits += sum((missed[k - 1] - missed[k]) * sheet.caches[k].latency_cycles for k in range(1, len(missed)))
        made.append(0.85 * sheet.core_cpi_factor + branches * sheet.branch_miss_cycles + waits / OVERLAP)
    return np.log(made)


def waits(rows):
    """Return how much one job waits for memory: its misses, and its CPI, in logarithms."""
    seen = rows[rows["cpi"].notna()]
    error = (seen["cpi_se"] / seen["cpi"]) ** 2 + 0.1**2
    missed = (seen["llc_misses"] * seen["load"]).sum() / seen["load"].sum()
    return [np.log(missed), np.average(np.log(seen["cpi"]), weights=1.0 / error)]


def predicted(rows, cell, structure, spread, known):
    """Return the log CPI of a cell, by a regression on dummies of all other cells, written out.

    `known` is what the model says of each job and how much it waits, from all of its cells.
    """
    kept = rows.copy()
    kept.loc[cell, "cpi"] = np.nan
    jobs, platforms = len(known), len(NAMES)
    own = kept[kept["job"] == kept["job"][cell]]
    known = [*known[: cell // platforms], (said(own), waits(own)), *known[cell // platforms + 1 :]]
    offset = np.array([job[0] if structure.model else np.zeros(platforms) for job in known])
    features = np.ones((jobs, 1))
    if structure.slopes:
        features = np.column_stack([features, [job[1] for job in known]])
    design = np.zeros((jobs, platforms, jobs + platforms * features.shape[1]))
    for j in range(jobs):
        for i in range(platforms):
            design[j, i, j] = 1.0
            first = jobs + i * features.shape[1]
            design[j, i, first : first + features.shape[1]] = features[j]
    cpi, error = (kept[name].to_numpy().reshape(jobs, platforms) for name in ("cpi", "cpi_se"))
    seen = np.isfinite(cpi)
    weight = 1.0 / np.sqrt((error[seen] / cpi[seen]) ** 2 + spread)
    target = (np.log(cpi[seen]) - offset[seen]) * weight
    found = np.linalg.lstsq(design[seen] * weight[:, None], target, rcond=1e-12)[0]
    at = divmod(cell, platforms)
    return offset[at] + design[at] @ found


@pytest.mark.parametrize("structure", STRUCTURES)
def test_pairs_left_out_are_predicted_as_by_fitting_everything_else_anew(structure):
    rows = modelled_rows(1, 9, departure=0.1)
    table = AffinityTable.of(rows)
    found, spread = held_out(table, structure), fit(terms_of(table, structure))[0]
    several = rows["cpi"].notna() & (rows.groupby("job")["cpi"].transform("count") > 1)
    cells = np.flatnonzero(several)
    known = [(said(job), waits(job)) for _, job in rows.groupby("job", sort=False)]
    expected = [np.log(rows["cpi"][cell]) - predicted(rows, cell, structure, spread, known) for cell in cells]
    np.testing.assert_allclose(found.log_error, expected, rtol=0, atol=1e-7)
    np.testing.assert_allclose(found.cycles, (rows["cpi"] * rows["load"])[cells])


@pytest.mark.parametrize("hidden", [0.1, 0.4])
def test_a_pair_that_is_hidden_for_good_is_predicted_as_if_it_were_left_out(hidden):
    rows = modelled_rows(2, 14, departure=0.1, hidden=hidden)
    table = AffinityTable.of(rows)
    cells = table.cpi.copy()
    left = held_out(table, Structure(model=True))
    at = int(np.flatnonzero((np.isfinite(cells) & (np.isfinite(cells).sum(axis=1, keepdims=True) > 1)).ravel())[0])
    gone = rows.copy()
    gone.loc[at, ["cpi", "cpi_se", *COUNTED, "mispredictions"]] = np.nan
    gone.loc[at, "load"] = 0.0
    found = estimate(AffinityTable.of(gone)).cpi.ravel()[at]
    # The variance of interactions is estimated without the pair too, which moves weights a little.
    assert np.log(rows["cpi"][at] / found) == pytest.approx(left.log_error[0], abs=0.01)


@pytest.mark.statistical
def test_errors_of_filled_pairs_are_as_large_as_they_are_said_to_be():
    """350 filled pairs: their mean square differs from 1 by 7.6%; four times that is allowed, beyond it 1 in 10⁴."""
    rows = modelled_rows(3, 400, departure=0.1)
    table, truth = AffinityTable.of(rows), rows["truth"].to_numpy().reshape(400, len(NAMES))
    found = estimate(table)
    hidden = table.unobserved
    score = (np.log(found.cpi / truth) / np.where(hidden, found.log_se, 1.0))[hidden]
    assert hidden.sum() == 350
    assert (score**2).mean() == pytest.approx(1.0, rel=0.3)


def test_the_model_beats_effects_where_it_is_right_and_the_one_used_is_marked():
    made = compare(AffinityTable.of(modelled_rows(4, 80, departure=0.02))).set_index("structure")
    assert list(made.index) == [each.name for each in STRUCTURES]
    assert made["used"].tolist() == [False, False, False, True]
    assert (made.loc["model", ["weighted", "unweighted"]] < 0.8 * made.loc["effects", ["weighted", "unweighted"]]).all()
    assert (made["cells"] == made["cells"].iloc[0]).all()


def test_of_many_pairs_some_are_left_out_and_of_none_none():
    rng = np.random.default_rng(5)
    pairs = [(f"j{j}", f"p{i}") for j in range(1500) for i in range(3)]
    frame = pd.DataFrame(pairs, columns=["job", "platform"]).assign(load=1.0, capacity=9.0)
    many = AffinityTable.of(frame.assign(cpi=np.exp(rng.normal(size=len(frame)))))
    assert len(held_out(many, structure_of(many)).cycles) == 900
    alone = AffinityTable.of(frame.assign(cpi=1.0).drop_duplicates("job"))
    assert np.isnan(held_out(alone, EFFECTS).error())
