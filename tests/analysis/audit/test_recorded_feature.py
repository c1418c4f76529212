"""A feature that acts where or when no row says so, on fleets of another making."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from analysis.audit.case import examine
from analysis.audit.early_feature import _Scan, _Steps
from analysis.audit.guards import GUARDS
from tests.helpers.outside_guards import PLANTED, planted


def found(table, jobs, code):
    """What a guard says, and whether it had what it looks at."""
    audit = examine(table, jobs, guards={code: GUARDS[code]})
    return audit.findings, code in audit.checked


@pytest.mark.statistical
@pytest.mark.parametrize("code", PLANTED)
def test_a_strong_fault_is_an_error_and_one_of_no_strength_is_none(code):
    """Three fleets; a healthy one alarms with a chance of 0.2%."""
    for number in range(3):
        for strength, alarms in ((PLANTED[code][2][-1], 1), (0.0, 0)):
            table, made = planted(code, strength, 5, number)
            findings, checked = found(table, pd.DataFrame(made.jobs), code)
            assert checked
            assert [finding.severity for finding in findings] == ["error"] * alarms


def test_the_shift_before_the_record_is_the_features_gain():
    table, made = planted("early_feature", 1.0, 5, 1)
    ((finding,), _) = found(table, pd.DataFrame(made.jobs), "early_feature")
    assert finding.evidence["period"] == 1.0
    assert finding.evidence["shift"] == pytest.approx(made.truth["instances"], abs=0.03)


@pytest.mark.parametrize("number", [8, 14])
def test_a_day_on_half_of_the_machines_is_seen(number):
    """Student's test of the machines' mean change has chances above 0.2% in both."""
    table, made = planted("early_feature", 0.5, 5, number)
    ((finding,), _) = found(table, pd.DataFrame(made.jobs), "early_feature")
    assert finding.severity == "error"


def test_the_chance_of_a_shift_is_its_share_of_all_draws_within_platforms():
    """All 20 x 20 draws of three of six machines on two platforms, at two periods, one by one."""
    rng = np.random.default_rng(4)
    step, first = rng.normal(size=(2, 12)), np.array([3, 4, 5, 9, 10, 11])
    step[0, first] += 1.5
    steps = tuple(_Steps(of - of.mean(), np.ones(12)) for of in step)
    scan = _Scan(steps, first, ((np.arange(6), 3), (np.arange(6, 12), 3)), np.zeros(2))
    scores = scan.scores(2.0)
    sums = [
        scores[[*one, *other]].sum(axis=0).max()
        for one in combinations(range(6), 3)
        for other in combinations(range(6, 12), 3)
    ]
    share = np.mean(np.array(sums) >= scores[first].sum(axis=0).max() - 1e-9)
    assert share < 0.05
    assert scan.chance(2.0) == (0, pytest.approx(share, abs=4 * np.sqrt(share / 9999)))


def test_arms_on_platforms_of_their_own_are_not_compared():
    table = planted("early_feature", 1.0, 5, 1)[0]
    having = table["machine"].isin(table.loc[table["treated"] == 1, "machine"])
    assert not found(table.assign(platform=having.map({True: "new", False: "old"})), None, "early_feature")[1]


def test_the_slope_over_domains_is_that_of_a_regression():
    """By `numpy.polyfit` over the domains' means, as machines without noise have them."""
    machine, period = np.divmod(np.arange(480), 2)
    domain, treated = machine // 20, (machine % 20 < machine // 20 % 7) & (period == 1)
    share = np.bincount(domain, treated)[domain] / 20
    wobble = np.random.default_rng(1).normal(0.0, 0.002, 12)[domain] * (period == 1)
    value = 2.0 * (1.0 + 0.1 * treated + np.where(treated, 0.0, (0.4 * share + wobble) * (period == 1)))
    table = pd.DataFrame({"period": period, "job": "a", "machine": machine, "weight": 1.0, "treated": treated * 1})
    table = table.assign(value=value, domain=domain)
    ((finding,), _) = found(table, None, "spill_over")
    after = table[(table["period"] == 1) & (table["treated"] == 0)]
    level = after["value"].mean()
    means = after.groupby("domain").agg(value=("value", "mean"), count=("value", "size"))
    x = table.groupby("domain")["treated"].mean() * 2
    slope = np.polyfit(x, means["value"] / level, 1, w=np.sqrt(means["count"]))[0]
    assert finding.evidence["slope"] == pytest.approx(slope, rel=0.05)
    assert finding.evidence["domains"] == 12
    assert "--domain domain" in finding.remedy
    ((of_racks,), _) = found(table.rename(columns={"domain": "rack"}), None, "spill_over")
    assert "--domain rack" in of_racks.remedy


def test_what_cannot_be_seen_is_not_checked():
    table, made = planted("spill_over", 0.3, 5, 1)
    jobs = pd.DataFrame(made.jobs)
    assert not found(table.drop(columns=["domain", "rack"]), jobs, "spill_over")[1]
    assert not found(table[table["period"] > 0], jobs, "early_feature")[1]
    assert not found(table[table["period"] < 3], jobs, "vanished_machines")[1]


def machines(count, gain, early, seed=2):
    """Rows of one job on so many machines of three periods, a third of which gain in the last, and `early` before."""
    rng = np.random.default_rng(seed)
    period, machine = np.divmod(np.arange(3 * count), count)
    having = machine % 3 == 0
    value = 2.0 * np.exp(rng.normal(0, 0.05, count)[machine] + rng.normal(0, 0.02, 3 * count))
    value *= 1.0 + having * (gain * (period == 2) + early * (period == 1))
    table = {"period": period, "job": "a", "machine": machine, "weight": 1.0, "value": value}
    return pd.DataFrame(table | {"treated": (having & (period == 2)).astype(int)})


@pytest.mark.parametrize("gain", [0.05, -0.05])
def test_early_gains_and_losses_are_seen_the_other_sign_is_less_likely(gain):
    seen, against = (found(machines(90, gain, early), None, "early_feature")[0] for early in (gain, -gain))
    assert [finding.severity for finding in seen] == ["error"]
    assert seen[0].evidence["shift"] == pytest.approx(gain, abs=0.015)
    assert np.sign(against[0].evidence["shift"]) == -np.sign(gain)
    assert against[0].evidence["chance"] == pytest.approx(9 * seen[0].evidence["chance"])


def test_many_machines_are_judged_by_the_normal_law_with_a_warning_before_an_error():
    """3,000 machines: from no shift to a large one there is nothing, then a warning, then an error."""
    severities = []
    for early in np.arange(0.001, 0.005, 0.0002):
        findings = found(machines(3000, 0.05, early), None, "early_feature")[0]
        severities += [finding.severity for finding in findings] or ["none"]
        for finding in findings:
            assert (finding.severity == "error") == (finding.evidence["chance"] <= 0.002)
            assert finding.evidence["chance"] <= 0.004
    assert list(dict.fromkeys(severities)) == ["none", "warning", "error"]


def test_the_normal_law_of_many_machines_is_that_of_draws():
    """2,400 machines, 3,000 draws of 800 of them; steps of two periods."""
    rng = np.random.default_rng(3)
    step, first = rng.standard_t(5, size=(2, 2400)), np.arange(800)
    step[0, first] += 0.09
    scan = _Scan(tuple(_Steps(of - of.mean(), np.ones(2400)) for of in step), first, ((np.arange(2400), 800),), step[0])
    scores, chance = scan.scores(0.5), scan.chance(0.5)[1]
    sums = [scores[rng.permutation(2400)[:800]].sum(axis=0).max() for _ in range(3000)]
    share = np.mean(np.array(sums) >= scores[first].sum(axis=0).max())
    assert 0.01 < chance < 0.05
    assert chance == pytest.approx(share, abs=4 * np.sqrt(share / 3000) + 0.05 * share)


def test_a_shift_is_measured_against_the_gain_where_machines_differ_much():
    """Machines differ by a factor of e: the plain estimate's half-width is beyond any shift."""
    table = machines(90, 0.05, 0.05)
    slow = np.exp(np.random.default_rng(1).normal(0, 1.0, 90))[table["machine"]]
    ((finding,), _) = found(table.assign(value=table["value"] * slow), None, "early_feature")
    assert finding.severity == "error"
