"""Every guard: finds what is planted in a small simulated fleet, keeps quiet on healthy ones."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from analysis.audit.about import About, AboutError
from analysis.audit.arms import _covered, _drawn
from analysis.audit.case import Audited, Case, examine
from analysis.audit.guards import GUARDS
from analysis.audit.intervals import coverage, false_positives
from analysis.effects.observations import FlaggedRows, ObservationsError
from scenarios.effects.scorecard.healthy_cases import HEALTHY
from scenarios.effects.scorecard.planted_faults import FAULTS
from scenarios.effects.scorecard.planted_fleets import Potential, simulated


def audit(observations, jobs=None, about=None):
    return list(examine(observations, jobs, about, guards=GUARDS).findings)


@cache
def _fleet():
    return simulated(3, machines=120)


def fleet():
    made = _fleet()
    return Potential(made.rows.copy(), made.jobs, made.first)


@cache
def planted(name):
    """What is found of a strong fault."""
    fault = FAULTS[name]
    return examined(fault.plant(fleet(), fault.strengths[2], np.random.default_rng(11)))


@cache
def healthy(name):
    """What is found of a healthy experiment."""
    return examined(HEALTHY[name](fleet(), np.random.default_rng(5)))


def examined(experiment):
    return examine(experiment.observations, experiment.jobs, experiment.about, guards=GUARDS)


def alarms(made):
    return {one.code for one in made.findings if one.severity != "note"}


@pytest.mark.parametrize("name", FAULTS)
def test_a_strong_fault_is_found_and_named(name):
    assert alarms(planted(name)) & set(FAULTS[name].codes)


@pytest.mark.parametrize("code", GUARDS)
def test_each_guard_alarms_at_a_fault_that_names_it(code):
    assert any(code in alarms(planted(name)) for name, fault in FAULTS.items() if code in fault.codes)


@pytest.mark.parametrize("code", GUARDS)
def test_each_guard_looks_at_a_healthy_experiment_and_has_nothing_to_say(code):
    assert any(code in healthy(name).checked and code not in alarms(healthy(name)) for name in HEALTHY)


@pytest.mark.statistical
def test_healthy_experiments_are_left_alone():
    """Each of 30 cases once under a fixed seed; with 5% false alarms more than 4 would alarm with chance 1.6%."""
    loud = {name: alarms(healthy(name)) for name in HEALTHY}
    assert sum(map(bool, loud.values())) <= 4, {name: codes for name, codes in loud.items() if codes}


def test_one_machine_with_the_feature_has_no_error_at_all():
    """Nothing can be estimated then, so only the count of machines can tell."""
    rows = {"period": 1, "job": "a", "machine": range(30), "weight": 1.0, "value": 2.0}
    (found,) = audit(pd.DataFrame(rows | {"treated": [1] + [0] * 29}))
    assert (found.code, found.severity, found.evidence["treated"]) == ("few_clusters", "error", 1.0)


def test_every_code_has_a_planted_fault_and_every_fault_a_guard():
    assert {code for fault in FAULTS.values() for code in fault.codes} == set(GUARDS)
    assert len(FAULTS) >= 20
    assert len(HEALTHY) >= len(FAULTS)


def test_what_was_checked_is_told():
    made = examine(HEALTHY["plain columns"](fleet(), np.random.default_rng(1)).observations, guards=GUARDS)
    assert {"peeking", "whole_racks", "carry_over"}.isdisjoint(made.checked)
    assert {"duplicated_rows", "churn", "selection_optimised"} <= set(made.checked)
    assert set(made.payload()) == {"findings", "checked"}


def test_a_guard_that_did_not_look_says_what_it_needs():
    rows = {"period": 1, "job": "a", "machine": range(6), "weight": 1.0, "value": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5]}
    needs = examine(pd.DataFrame(rows | {"treated": [0, 1] * 3}), guards=GUARDS).unchecked
    assert needs["whole_racks"] == "column rack"
    assert needs["spill_over"] == "column domain or rack; periods before the feature"
    assert needs["early_feature"] == "2 periods before the feature, where 0 are"
    assert needs["vanished_machines"] == "2 periods in the study, where 1 is"
    assert needs["selection_optimised"] == "8 machines (or racks), where 6 are"
    assert (
        needs["shifted_clocks"] == "4 periods, where 1 is; 8 machines (or racks) in each arm, where the smaller has 3"
    )
    assert needs["heavy_tails"] == "8 machines, 2 in each arm, where 6 are"
    assert needs["peeking"] == "looks among the facts about the experiment (YAML)"
    assert needs["carry_over"].startswith("a crossover")
    single = examine(pd.DataFrame(rows | {"treated": [1] + [0] * 5}), guards=GUARDS).unchecked
    assert single["different_windows"] == "a job that two machines of each arm have in the study"
    alternating = pd.concat(
        [pd.DataFrame(rows | {"period": at, "treated": [at % 2, 1 - at % 2] * 3}) for at in range(4)]
    )
    crossed = examine(alternating, guards=GUARDS).unchecked
    assert crossed["carry_over"] == "8 machines that switch, where 6 do"
    steady = "a study in which machines keep their arm, where most of these switch"
    for code in ("churn", "vanished_machines", "imbalance_before", "contaminated_controls", "different_windows"):
        assert crossed[code].startswith(steady)


def test_what_cannot_be_audited_is_refused():
    rows = {"period": 1, "job": "a", "machine": [1, 2], "weight": 1.0, "value": 2.0}
    with pytest.raises(ObservationsError, match="treated"):
        audit(pd.DataFrame(rows))
    with pytest.raises(ObservationsError, match="nothing has the feature"):
        audit(pd.DataFrame(rows | {"treated": 0}))
    with pytest.raises(ObservationsError, match="no row"):
        audit(pd.DataFrame(rows | {"treated": 1, "value": -1.0}))


def test_all_that_is_wrong_with_what_is_said_is_told_at_once():
    with pytest.raises(AboutError) as caught:
        About.of({"looks": 0, "clusters": "job", "planned_share": 3, "seed": 1})
    assert [name for name, _, _ in caught.value.problems] == ["seed", "planned_share", "looks", "clusters"]


def test_the_plain_estimate_is_that_of_a_slow_twin():
    rng = np.random.default_rng(2)
    rows = pd.DataFrame({"job": rng.integers(0, 5, 400), "machine": rng.integers(0, 40, 400), "weight": 1.0})
    rows = rows.assign(period=1, value=rng.lognormal(0, 0.2, 400) * (1 + rows["job"]), treated=rows["machine"] % 2)
    rows["instance"] = range(400)
    made = Case.of(FlaggedRows.of(rows)).plain
    base = rows[rows["treated"] == 0].groupby("job")["value"].mean()
    new = rows[rows["treated"] == 1].groupby("job")["value"].mean()
    weight = rows.groupby("job").size()
    level = (weight * base).sum()
    assert made.change == pytest.approx((weight * new).sum() / level - 1)
    variance = 0.0
    for _, own in rows.groupby("machine"):
        off = 0.0
        for (job, arm), cell in own.groupby(["job", "treated"]):
            same = rows[(rows["job"] == job) & (rows["treated"] == arm)]
            held = same["machine"].nunique()
            residual = cell["value"].sum() - len(cell) * same["value"].mean()
            off += (2 * arm - 1) * weight[job] / level * residual / len(same) * np.sqrt(held / (held - 1))
        variance += off**2
    assert made.error == pytest.approx(np.sqrt(variance))


@pytest.mark.statistical
def test_moments_over_random_draws_are_those_of_many_draws():
    """600 draws under a fixed seed: mean and spread of both statistics within five standard errors (1 in 10^6)."""
    rng = np.random.default_rng(3)
    unit, job = np.divmod(np.unique(rng.integers(0, 30 * 60, 300)), 60)
    there, column = np.ones(30, dtype=bool), rng.random(30)
    z = []
    for _ in range(600):
        having = np.isin(np.arange(30), rng.choice(30, 8, replace=False))
        z.append((_covered(unit, job, having, there), _drawn(column, having, np.zeros(30, dtype=int))))
    z = np.array(z)
    assert np.abs(z.mean(axis=0)).max() < 0.2
    assert z[:, 1].std() == pytest.approx(1, abs=0.15)
    assert 0.75 < z[:, 0].std() < 1.15


def test_looks_and_coverage_are_the_published_ones():
    assert [false_positives(looks) for looks in (1, 5, 10)] == [0.05, 0.142, 0.193]
    assert coverage(np.sqrt(0.5)) == pytest.approx(0.834, abs=0.001)


@pytest.mark.parametrize("share", [0.5, 0.02])
def test_codes_do_not_depend_on_the_order_of_rows(share):
    fault = FAULTS["doubled rows"]
    made = fault.plant(fleet(), share, np.random.default_rng(4))
    other = made.observations.sample(frac=1, random_state=1)
    assert [one.code for one in audit(made.observations, made.jobs)] == [one.code for one in audit(other, made.jobs)]


def test_rows_that_cannot_be_used_and_rows_that_are_there_twice_change_nothing_else():
    rows = pd.DataFrame({"period": 1, "job": "a", "machine": [1, 2, 3, 3, 4], "instance": [1, 2, 3, 3, 4]})
    rows = rows.assign(weight=1.0, value=[1.0, 2.0, 3.0, 3.0, np.nan], treated=[0, 0, 1, 1, 1])
    assert Audited.under(FlaggedRows.of(rows)).relative.tolist() == [2 / 3, 4 / 3, 2.0]


def test_a_crossover_is_its_own_control_so_its_windows_are_not_compared():
    made = HEALTHY["crossover"](fleet(), np.random.default_rng(1))
    assert "different_windows" not in examine(made.observations, made.jobs, made.about, guards=GUARDS).checked
    beside = HEALTHY["half"](fleet(), np.random.default_rng(1))
    assert "different_windows" in examine(beside.observations, beside.jobs, beside.about, guards=GUARDS).checked


@pytest.mark.parametrize(("copied", "severity"), [(1, "note"), (8, "error")])
def test_one_row_that_was_copied_often_is_no_more_than_a_note(copied, severity):
    rows = {"period": 1, "job": "a", "machine": range(300), "instance": range(300), "weight": 1.0}
    value = 1.0 + 0.01 * np.random.default_rng(1).standard_normal(300)
    table = pd.DataFrame(rows | {"value": value, "treated": [0, 1] * 150})
    again = table[table["treated"] == 1].head(copied)
    found = audit(pd.concat([table, *[again] * 4], ignore_index=True))
    assert [one.severity for one in found if one.code == "duplicated_rows"] == [severity]


def test_a_finite_population_correction_keeps_what_the_share_says_however_the_arms_vary():
    for seed in range(5):
        made = HEALTHY["corrected, a twentieth"](fleet(), np.random.default_rng(seed))
        found = [one for one in audit(made.observations, made.jobs, made.about) if one.code == "finite_population"]
        share = found[0].evidence["treated_share"]
        assert found[0].evidence["variance_kept"] == pytest.approx((1 - share) ** 2 + share**2)
        assert found[0].severity == "note"


def test_platforms_that_are_treated_whole_leave_nothing_to_compare_draws_with():
    """All machines of one platform have the feature and none of the other: no draw within platforms is random."""
    rows = {"period": 1, "job": "a", "machine": range(40), "weight": 1.0, "value": 2.0}
    treated = [machine % 2 for machine in range(40)]
    table = pd.DataFrame(rows | {"treated": treated, "platform": [f"p{each}" for each in treated]})
    assert "selection_optimised" not in examine(table, guards=GUARDS).checked


def test_quotas_that_differ_by_rounding_are_alike():
    """Three instances of 0.1 in another order are 0.30000000000000004 or 0.3 CPUs: that selects nobody."""
    rows = [
        (1, f"j{k}", m, w, 2.0, m % 2) for m in range(40) for k, w in enumerate((0.1, 0.2, 0.3)[:: 1 - 2 * (m % 2)])
    ]
    table = pd.DataFrame(rows, columns=["period", "job", "machine", "weight", "value", "treated"])
    assert "selection_optimised" not in {one.code for one in audit(table)}
