import numpy as np
import pandas as pd
import pytest

from analysis.profiling.affinity.effects import fit
from analysis.profiling.affinity.held_out import compare, held_out
from analysis.profiling.affinity.shrinkage import estimate
from analysis.profiling.affinity.table import Table
from analysis.profiling.affinity.terms import EFFECTS, STRUCTURES, Structure, structure_of, terms_of
from models.platforms import PLATFORMS
from tests.helpers.modelled_jobs import CLOCKS, NAMES, OVERLAP, modelled_rows

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


def predicted(rows, cell, structure, spread):
    """Return the log CPI of a cell, by a regression on dummies of all other cells, written out."""
    kept = rows.copy()
    kept.loc[cell, "cpi"] = np.nan
    groups = [kept[kept["job"] == job] for job in kept["job"].unique()]
    jobs, platforms = len(groups), len(NAMES)
    offset = np.array([said(group) if structure.model else np.zeros(platforms) for group in groups])
    features = np.ones((jobs, 1))
    if structure.slopes:
        features = np.column_stack([features, [waits(group) for group in groups]])
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
    rows = modelled_rows(1, 14, departure=0.1)
    table = Table.of(rows)
    found, spread = held_out(table, structure), fit(terms_of(table, structure))[0]
    several = rows["cpi"].notna() & (rows.groupby("job")["cpi"].transform("count") > 1)
    cells = np.flatnonzero(several)
    expected = [np.log(rows["cpi"][cell]) - predicted(rows, cell, structure, spread) for cell in cells]
    np.testing.assert_allclose(found.log_error, expected, rtol=0, atol=1e-7)
    np.testing.assert_allclose(found.cycles, (rows["cpi"] * rows["load"])[cells])


@pytest.mark.parametrize("hidden", [0.1, 0.4])
def test_a_pair_that_is_hidden_for_good_is_predicted_as_if_it_were_left_out(hidden):
    rows = modelled_rows(2, 14, departure=0.1, hidden=hidden)
    table = Table.of(rows)
    cells = table.cpi.copy()
    left = held_out(table, Structure(model=True))
    at = int(np.flatnonzero((np.isfinite(cells) & (np.isfinite(cells).sum(axis=1, keepdims=True) > 1)).ravel())[0])
    gone = rows.copy()
    gone.loc[at, ["cpi", "cpi_se", *COUNTED, "mispredictions"]] = np.nan
    gone.loc[at, "load"] = 0.0
    found = estimate(Table.of(gone)).cpi.ravel()[at]
    # The variance of interactions is estimated without the pair too, which moves weights a little.
    assert np.log(rows["cpi"][at] / found) == pytest.approx(left.log_error[0], abs=0.01)


@pytest.mark.statistical
def test_errors_of_filled_pairs_are_as_large_as_they_are_said_to_be():
    """350 filled pairs: their mean square differs from 1 by 7.6%; four times that is allowed, beyond it 1 in 10⁴."""
    rows = modelled_rows(3, 400, departure=0.1)
    table, truth = Table.of(rows), rows["truth"].to_numpy().reshape(400, len(NAMES))
    found = estimate(table)
    hidden = table.unobserved
    score = (np.log(found.cpi / truth) / np.where(hidden, found.log_se, 1.0))[hidden]
    assert hidden.sum() == 350
    assert (score**2).mean() == pytest.approx(1.0, rel=0.3)


def test_the_model_beats_effects_where_it_is_right_and_the_one_used_is_marked():
    made = compare(Table.of(modelled_rows(4, 80, departure=0.02))).set_index("structure")
    assert list(made.index) == [each.name for each in STRUCTURES]
    assert made["used"].tolist() == [False, False, False, True]
    assert (made.loc["model", ["weighted", "unweighted"]] < 0.8 * made.loc["effects", ["weighted", "unweighted"]]).all()
    assert (made["cells"] == made["cells"].iloc[0]).all()


def test_of_many_pairs_some_are_left_out_and_of_none_none():
    rng = np.random.default_rng(5)
    pairs = [(f"j{j}", f"p{i}") for j in range(1500) for i in range(3)]
    frame = pd.DataFrame(pairs, columns=["job", "platform"]).assign(load=1.0, capacity=9.0)
    many = Table.of(frame.assign(cpi=np.exp(rng.normal(size=len(frame)))))
    assert len(held_out(many, structure_of(many)).cycles) == 900
    alone = Table.of(frame.assign(cpi=1.0).drop_duplicates("job"))
    assert np.isnan(held_out(alone, EFFECTS).error())
