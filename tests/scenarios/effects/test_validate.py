import io
import json
import math
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy.stats import binomtest

from analysis.effects.methods import method
from analysis.effects.study import Study
from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.estimators import paper_estimators
from models.code.parts import PartError
from models.errors import InputError
from scenarios.effects.observations import recorded
from scenarios.effects.own import OwnEstimator
from scenarios.effects.scorecard.pieces import ScorecardQuestion
from scenarios.effects.validate import (
    ClusterScores,
    ValidatedFleet,
    _OfOurs,
    binomial_interval,
    draws,
    scores,
    validate,
    validate_fleet,
)
from scenarios.files.faults import FaultsError
from scenarios.files.loader import Override, load
from scenarios.files.schema import WSMeter
from scenarios.runs.execution import obtain
from scenarios.runs.rundir import RunError
from scenarios.views.section import Section
from scenarios.views.terminal import show
from scenarios.wsmeter.measurements import Tables, halves_of, job_quotas, truth
from tests.helpers.job_means import weighted

SETTINGS = WSMeter(machines=(8, 15), draws=25)


def world(seed=0, machines=80, jobs=10, instances=8, gain=0.1):
    """Return a fleet of which a random half has a feature that speeds every job up by its own factor."""
    rng = np.random.default_rng(seed)
    machine = np.repeat(np.arange(machines), instances)
    share = rng.dirichlet(np.full(jobs, 0.7))
    job = rng.choice(jobs, len(machine), p=share)
    off = rng.lognormal(0.2 * job, 0.1)
    gains = 1 + gain * rng.uniform(0.5, 1.5, jobs)[job]
    table = pd.DataFrame({"job": job, "machine": machine, "weight": 1.0, "value": off, "exposure": 1.0 + job})
    feature = rng.permutation(machines)[machine] < machines / 2
    observed = table.assign(value=np.where(feature, off * gains, off), feature=feature)
    quota = pd.DataFrame({"job": np.arange(jobs), "quota": share, "instances": np.bincount(job, minlength=jobs)})
    return Tables(observed, quota, table, table.assign(value=off * gains))


@pytest.fixture(scope="module")
def tables():
    return world()


@pytest.fixture(scope="module")
def drawn(tables):
    return draws(tables, SETTINGS, seed=1)


@pytest.fixture(scope="module")
def judged(tables):
    return scores(tables, SETTINGS, seed=1)


@pytest.fixture(scope="module")
def payload(judged):
    return judged.payload()


def test_the_reference_is_the_featured_half_over_the_same_jobs_with_the_same_weights(tables):
    settings = replace(SETTINGS, machines=(8,), draws=1)
    first = draws(tables, settings, seed=1).set_index("estimator")
    current, having = halves_of(tables.observed)
    count = first.loc["wsmeter", "jobs"]
    quota = tables.jobs.set_index("job")["quota"]
    matching = [
        names
        for names in _subsets(quota.index.tolist(), int(count))
        if math.isclose(quota[names].sum() / quota.sum(), first.loc["wsmeter", "quota_coverage"], rel_tol=1e-12)
    ]
    assert len(matching) == 1
    jobs = quota[matching[0]].to_dict()
    expected = weighted(having, jobs) / weighted(current, jobs) - 1
    assert first.loc["wsmeter", "reference"] == pytest.approx(expected)
    assert first.loc["baseline", "reference"] == pytest.approx(truth(tables)["machine_reference"])


def _subsets(names, size):
    if size == 0:
        return [[]]
    return [[name, *rest] for at, name in enumerate(names) for rest in _subsets(names[at + 1 :], size - 1)]


def test_the_scores_are_counts_over_the_draws(tables, drawn, payload):
    change = truth(tables)["change"]
    for row in payload["rows"]:
        mine = drawn[(drawn["estimator"] == row["estimator"]) & (drawn["machines"] == row["machines"])]
        mine = mine.to_dict("records")
        over = [d["low"] <= d["reference"] <= d["high"] for d in mine]
        true = [d["low"] <= change <= d["high"] for d in mine]
        out = [not d["low"] <= 0 <= d["high"] for d in mine]
        expected = {
            "draws": 25,
            "too_little_data": 0,
            "bias": sum(d["change"] - change for d in mine) / 25,
            "bias_covered": sum(d["change"] - d["reference"] for d in mine) / 25,
            "margin": sum(d["margin"] for d in mine) / 25,
            "covers_truth": sum(true) / 25,
            "covers_covered": sum(over) / 25,
            "excludes_current": sum(out) / 25,
            "success": sum(a and b for a, b in zip(out, over, strict=True)) / 25,
            "success_truth": sum(a and b for a, b in zip(out, true, strict=True)) / 25,
            "quota_coverage": sum(d["quota_coverage"] for d in mine) / 25,
        }
        assert {name: row[name] for name in expected} == pytest.approx(expected)
        exact = binomtest(sum(true), 25).proportion_ci(0.95)
        assert (row["covers_truth_low"], row["covers_truth_high"]) == pytest.approx((exact.low, exact.high))


def test_there_is_a_row_per_size_and_estimator(payload):
    names = [each.name for each in paper_estimators()]
    assert [(row["machines"], row["estimator"]) for row in payload["rows"]] == [(s, n) for s in (8, 15) for n in names]
    assert {"kind", "unit", "truth", "rows"} <= payload.keys()


def test_draws_do_not_look_at_the_counterfactual_fleets(tables, drawn):
    blind = Tables(tables.observed, tables.jobs, pd.DataFrame(), pd.DataFrame())
    pd.testing.assert_frame_equal(draws(blind, SETTINGS, seed=1), drawn)


def test_the_same_seed_draws_the_same_and_another_size_shifts_nothing(tables, drawn):
    pd.testing.assert_frame_equal(draws(tables, SETTINGS, seed=1), drawn)
    only = draws(tables, replace(SETTINGS, machines=(15,)), seed=1)
    pd.testing.assert_frame_equal(only, drawn[drawn["machines"] == 15].reset_index(drop=True))
    assert not draws(tables, SETTINGS, seed=2)["change"].equals(drawn["change"])


def test_only_the_top_jobs_are_considered(tables):
    made = draws(tables, replace(SETTINGS, top_jobs=2), seed=1)
    jobs = made[made["estimator"] == "wsmeter"]
    share = tables.jobs["quota"].nlargest(2).sum() / tables.jobs["quota"].sum()
    assert set(jobs["jobs"]) == {2}
    assert jobs["quota_coverage"].tolist() == pytest.approx([share] * len(jobs))


def test_clusters_are_drawn_again_until_they_cover_enough(tables, drawn):
    low = drawn[(drawn["machines"] == 8) & (drawn["estimator"] == "wsmeter")]["quota_coverage"].median()
    made = draws(tables, replace(SETTINGS, min_coverage=low, machines=(8,)), seed=1)
    assert made[made["estimator"] == "wsmeter"]["quota_coverage"].min() >= low
    assert made["reselections"].sum() > 0


def test_for_a_feature_of_instances_a_size_is_a_number_of_instances(tables):
    payload = scores(tables, replace(SETTINGS, machines=(40,)), seed=1, unit="instance").payload()
    assert payload["unit"] == "instance"
    made = draws(tables.by_instance(), replace(SETTINGS, machines=(40,)), seed=1)
    mean = {table: getattr(tables, table)["value"].mean() for table in ("nowhere", "everywhere")}
    assert payload["truth"]["machine_change"] == pytest.approx(mean["everywhere"] / mean["nowhere"] - 1)
    assert made["machines"].eq(40).all()


def test_clusters_without_enough_instances_are_counted_and_left_out(tables):
    settings = replace(SETTINGS, machines=(2,), min_instances=16)
    judged = scores(tables, settings, seed=1)
    rows = {name: judged.rows(name)[0] for name in ("baseline", "wsmeter")}
    assert (rows["baseline"]["too_little_data"], rows["wsmeter"]["too_little_data"]) == (0, 25)
    assert math.isnan(rows["wsmeter"]["covers_truth"])
    assert shown(Section("", tuple(judged.blocks()))).count("too little data in every draw") == 2
    assert (rows["wsmeter"]["covers_truth_low"], rows["wsmeter"]["covers_truth_high"]) == (0.0, 1.0)


def test_progress_counts_every_draw(tables):
    told = []
    draws(tables, SETTINGS, 1, lambda done, of: told.append((done, of)))
    assert told == [(done, 50) for done in range(1, 51)]


def test_a_cluster_larger_than_the_featured_half_is_refused(tables):
    with pytest.raises(NotEnoughDataError, match=r"^41 machines are needed, 40 given$"):
        scores(tables, replace(SETTINGS, machines=(41,)), seed=1)


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (10, 10), (3, 10), (477, 500)])
def test_the_binomial_interval_is_the_exact_one(successes, trials):
    exact = binomtest(successes, trials).proportion_ci(0.95, method="exact")
    assert binomial_interval(successes, trials) == pytest.approx((exact.low, exact.high))


def shown(section):
    text = io.StringIO()
    show(section, Console(file=text, width=80))
    return text.getvalue()


def test_the_scores_are_shown_with_their_truth_in_eighty_columns(judged):
    concluded = ValidatedFleet("small", Path("runs/small"), 1, judged)
    text = shown(concluded.section())
    assert text.startswith("small (seed 1), instructions per cycle (ipc)\n")
    assert f"True change {judged.true['change']:+.2%} (whole fleet, job level)" in text
    assert sum("wsmeter-widened" in line.split()[1:2] for line in text.splitlines()) == 2
    assert "no room" not in text
    assert concluded.payload()["run"] == "runs/small"
    assert len(concluded.frame()) == 6


def scored(**covered):
    """Scores of 200 draws of 10 and of 20 machines: coverage and margin of each estimator."""
    rows = [
        {
            "estimator": name,
            "machines": size,
            "draws": 200,
            "too_little_data": 0,
            "covers_truth": share,
            "margin": margin,
        }
        for name, (share, margin) in covered.items()
        for size in (10, 20)
    ]
    return ClusterScores("ipc", "machine", {}, pd.DataFrame(rows), dict.fromkeys(covered, 0.95))


def test_the_advice_is_the_narrowest_of_those_that_keep_their_promise():
    advice = scored(wide=(0.97, 0.05), narrow=(0.94, 0.02), wrong=(0.85, 0.01)).advice()
    assert advice.startswith("Decide by narrow: its intervals (±2.00% at 20 machines) are the narrowest of those that")
    assert "as far as 400 draws of this fleet can show" in advice
    assert advice.endswith("Truth held: wide 97.0%, narrow 94.0%; too seldom: wrong 85.0%.")


def test_the_advice_names_none_if_none_keeps_its_promise_and_needs_no_rival():
    assert scored(wrong=(0.85, 0.01)).advice().startswith("Decide by none of them")
    assert "(±2.00% at 20 machines) are right as often as they promise" in scored(only=(0.95, 0.02)).advice()


def test_no_advice_rests_on_test_clusters_that_have_half_of_their_machines_in_common():
    coverage = {"wide": (0.97, 0.05), "narrow": (0.94, 0.02)}
    apart, partly, alike = (replace(scored(**coverage), featured=count) for count in (41, 40, 20))
    assert apart.overlapping == set()
    assert apart.advice() == scored(**coverage).advice()
    assert partly.overlapping == {20}
    assert partly.advice().startswith("Decide by narrow: its intervals (±2.00% at 10 machines)")
    assert "as far as 200 draws" in partly.advice()
    assert alike.overlapping == {10, 20}
    assert alike.advice() == (
        "No estimator is named to decide by: every size is half or more of the 20 machines with the feature."
    )


def test_clusters_of_half_of_the_machines_tell_of_their_split_and_not_of_the_method():
    """Of 150 machines of equal noise a 95% interval of the mean is right by construction, over all splits."""
    rng, splits, missed = np.random.default_rng(1), 100, dict[int, float]()
    for size in (10, 75, 150):
        shares = []
        for machines in rng.normal(size=(splits, 150)):
            drawn = machines[np.argsort(rng.random((200, 150)), axis=1)[:, :size]]
            half = 1.96 * drawn.std(axis=1, ddof=1) / math.sqrt(size)
            shares.append(float((np.abs(drawn.mean(axis=1)) <= half).mean()))
        ends = [binomial_interval(round(200 * share), 200) for share in shares]
        missed[size] = sum(not low <= np.mean(shares) <= high for low, high in ends) / splits
    assert missed[10] < 0.25
    assert missed[75] > 0.5
    assert missed[150] == 1.0


def test_sizes_at_which_draws_are_not_independent_are_told(tables):
    assert scores(tables, replace(SETTINGS, draws=2), seed=1).dependence() == ""
    settings = replace(SETTINGS, machines=(8, 20, 40), draws=2)
    judged = scores(tables, settings, seed=1)
    assert judged.dependence().startswith("test clusters of 20, 40 of the 40 machines with the feature have half")
    notes = (judged.dependence(),)
    concluded = ValidatedFleet("small", Path("runs/small"), 1, judged, notes)
    assert concluded.payload()["notes"] == [*notes]


def test_a_slow_down_excludes_the_current_fleet_too():
    settings = replace(SETTINGS, machines=(15,))
    assert all(row["excludes_current"] > 0.9 for row in scores(world(gain=-0.5), settings, seed=1).payload()["rows"])


@pytest.mark.statistical
def test_wsmeter_is_unbiased_over_the_covered_jobs():
    """False-alarm rate: below 1e-4 (four standard errors of the mean over 300 draws)."""
    made = draws(world(seed=5, machines=200), replace(SETTINGS, machines=(20,), draws=300), seed=1)
    error = made[made["estimator"] == "wsmeter"].eval("change - reference")
    assert abs(error.mean()) < 4 * error.std() / math.sqrt(300)


MINE = """
import wsc


class Mine:
    def estimate(self, experiment):
        rows = experiment.study
        mean = rows.groupby("treated")["value"].mean()
        change = mean[True] / mean[False] - 1
        return change, change - 0.05, change + 0.05


def broken(experiment):
    return experiment.nothing


def needy(experiment):
    if experiment.before.empty:
        raise wsc.NotEnoughData(1, 0, "periods before")
    return 0.0, -1.0, 1.0


class Unsure:
    def estimate(self, experiment):
        return 0.1, 0.2, 0.3
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tmp_path_factory.mktemp("validate")


@pytest.fixture
def mine(run):
    (run / "mine.py").write_text(MINE)
    return f"{run / 'mine.py'}:Mine"


def fleet(*estimators, **settings):
    names = json.dumps(list(estimators))
    values = {"fleet.machines": "60", "analyses.wsmeter.machines": "[10]", "analyses.wsmeter.draws": "4", **settings}
    return load("small", [Override(k, v) for k, v in {**values, "analyses.wsmeter.estimators": names}.items()])


def judge(run, *estimators, **settings):
    return validate(fleet(*estimators, **settings), run, False, lambda *_: None)


def test_ours_and_other_peoples_estimators_are_judged_on_the_same_clusters_as_wsmeter(run, mine):
    rows = judge(run, "wsmeter", "adjusted", mine).frame().set_index("estimator")
    assert rows.index.tolist() == ["wsmeter", "adjusted", "Mine"]
    assert rows.loc["Mine", "margin"] == pytest.approx(0.05)
    alone = judge(run, "wsmeter").frame().set_index("estimator")
    pd.testing.assert_series_equal(alone.loc["wsmeter"], rows.loc["wsmeter"])
    assert math.isnan(rows.loc["Mine", "covers_covered"])


def test_an_estimator_without_an_answer_says_what_it_lacked_and_is_left_out_of_the_short_answer(run, mine):
    """In `small` machines have the feature from the start, so there is no past."""
    needy = mine.replace("Mine", "needy")
    judged = judge(run, "adjusted", needy)
    lacked = "no periods before: at least 1 is needed"
    assert f"10 machines, needy: too little data in every draw: {lacked}" in " ".join(shown(judged.section()).split())
    assert judged.frame()["reason"].tolist() == ["", lacked]
    assert re.fullmatch(r"intervals held the truth: adjusted \d+% \(10 machines\)", judged.brief())
    assert judge(run, needy).brief() == "no interval: too little data in every draw (10 machines)"


def test_the_short_answer_is_of_the_largest_clusters_that_are_independent(run):
    """Of 30 machines with the feature, clusters of 20 have most in common; where all do, these are told of."""
    assert judge(run, "adjusted", **{"analyses.wsmeter.machines": "[10, 20]"}).brief().endswith("(10 machines)")
    assert judge(run, "adjusted", **{"analyses.wsmeter.machines": "[20]"}).brief().endswith("(20 machines)")


@pytest.mark.parametrize("name", ["adjusted", "cuped", "published", "staged"])
def test_one_of_ours_says_on_a_cluster_what_wsc_effect_says_of_its_observations(run, name):
    """The sums that are made once for all draws are those of a study of the machines that are seen.

    Jobs that no machine without the feature runs are scaled by all machines that have it, which moves the last digits.
    """
    scenario = fleet(name)
    opened = obtain(scenario, run, False, lambda *_: None)
    rows, jobs = recorded(opened, "ips")[0], job_quotas(opened, scenario.analyses.wsmeter)
    having = rows.loc[rows["treated"] == 1, "machine"].unique()[:9]
    fast = _OfOurs.of(method(name), rows, jobs).answer(having)
    seen = rows[(rows["treated"] == 0) | rows["machine"].isin(having)]
    plain = method(name).estimate(Study.of(seen, jobs, staged=name == "staged"))
    assert tuple(fast) == pytest.approx((plain.change, plain.low, plain.high), rel=1e-4)


def test_a_mistake_in_an_estimator_is_its_authors(run, mine):
    broken = mine.replace("Mine", "broken")
    with pytest.raises(PartError, match=r"mine\.py:14: AttributeError: .*nothing"):
        judge(run, broken)
    with pytest.raises(InputError, match=r"mine\.py:\d+: Unsure: should answer with low <= change <= high"):
        judge(run, mine.replace("Mine", "Unsure"))
    with pytest.raises(FaultsError, match=r"estimators\.0: .*holds no Other, but Mine, Unsure, broken, needy, wsc"):
        judge(run, mine.replace("Mine", "Other"))


def test_estimators_of_one_name_are_refused_with_the_place_of_each(run, mine):
    (run / "yours.py").write_text(MINE + "\n\nclass Twin(Mine):\n    name = 'baseline'\n")
    yours = mine.replace("mine.py", "yours.py")
    with pytest.raises(FaultsError, match=r"estimators\.1: .*own, .*mine\.py:Mine is called Mine, too, got "):
        fleet(mine, yours)
    with pytest.raises(FaultsError, match=r"estimators\.1: .*own, baseline is one of ours, got "):
        fleet("wsmeter", yours.replace("Mine", "Twin"))
    one, other = (OwnEstimator.of(lambda _: (0.0, -1.0, 1.0)) for _ in range(2))
    with pytest.raises(
        InputError, match=r"test_validate.py:\d+: should .*test_validate.py:\d+ is called <lambda>, too"
    ):
        validate_fleet(fleet(), run, False, lambda *_: None, [one, other])
    with pytest.raises(InputError, match=r"yours.py:Mine: should have .*, .*mine.py:Mine is called Mine, too; say"):
        ScorecardQuestion.of([mine, yours], (12,), 6, 60, ("day",))


def test_a_wrong_name_lists_those_that_there_are(tmp_path):
    with pytest.raises(
        FaultsError, match=r"baseline, wsmeter, .*adjusted.*, or yours as mine\.py:Mine, got \"adjustd\""
    ):
        fleet("adjustd")
    with pytest.raises(FaultsError, match="cannot be read: No such file"):
        fleet(f"{tmp_path}/none.py:X")
    with pytest.raises(FaultsError, match="is there twice"):
        fleet("wsmeter", "wsmeter")


def test_a_change_of_single_instances_is_not_for_estimators_that_compare_machines(run, mine):
    scenario = load("customer_services", [Override("analyses.wsmeter.estimators", json.dumps(["adjusted", mine]))])
    with pytest.raises(RunError, match="adjusted, Mine: can compare machines"):
        validate(scenario, run, False, lambda *_: None)


def test_a_class_of_a_notebook_which_has_no_file_is_an_estimator_and_what_it_does_wrong_is_raised(monkeypatch):
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    typed = type("Typed", (), {"__module__": "__main__", "estimate": lambda self: None})
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        OwnEstimator.of(typed).estimate(None)
