"""Alarms between two profiles, and the tag that is at fault."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import false_discovery_control

from analysis.profiling.regressions import cells as cell_module
from analysis.profiling.regressions import comparison
from analysis.profiling.regressions.causes import Cause, candidates, drift_of, fit, rolled_out
from analysis.profiling.regressions.cells import SparseSamples, cells
from analysis.profiling.regressions.comparison import AlarmCriteria, CostComparison, adjusted, alarms
from analysis.profiling.shelf import Shelf
from analysis.statistics import NotEnoughDataError
from models.randomness import stream
from tests.helpers.dense_costs import dense_cells
from tests.helpers.profiling_pairs import DIMENSIONS, pair

FUNCTIONS = ("f", "g", "h", "i", "j")


def profile(rng, dear=lambda _tags: 1.0, *, machines=60, new=(), compiler="clang-17", load=None):
    """Three jobs on every machine; `new` jobs have revision r2 on the later half of the machines; f is dear."""
    rows = []
    for machine in range(machines):
        for job in ("a", "b", "c"):
            fresh = job in new and machine >= machines // 2
            tags = {
                "application": job,
                "revision": "r2" if fresh else "r1",
                "compiler": compiler if fresh else "clang-17",
                "platform": "milan" if machine % 2 else "rome",
                "datacentre": "east" if machine % 3 else "west",
            }
            weight = np.array([dear(tags), 2.0, 3.0, 4.0, 10.0]) * rng.lognormal(0, 0.1, 5)
            count = rng.poisson(800 * (load or {}).get(job, 1.0))
            seen = rng.multinomial(count, weight / weight.sum())
            rows += [(name, *tags.values(), machine, k, k * 10) for name, k in zip(FUNCTIONS, seen, strict=True) if k]
    names = ["function", "application", "revision", "compiler", "platform", "datacentre", "machine"]
    return pd.DataFrame(rows, columns=[*names, "samples", "value"])


def blame(before, after):
    """Return the tag that is at fault for the clearest alarm, None where all is well."""
    found = alarms(before, after)
    return Cause(*found.iloc[0][["dimension", "value", "application"]]) if len(found) else None


@pytest.mark.statistical
def test_the_right_cause_is_named_of_planted_regressions():
    """8 pairs: function, tag and value are right at least 6 times; at the 95% or so that 400 pairs gave, 0.6% fail."""
    right = 0
    for number in range(8):
        before, after, planted = pair(stream(number, "planted"), DIMENSIONS[number % 4])
        found = alarms(before, after)
        if len(found):
            first = found.iloc[0][["dimension", "value", "application", "function"]].tolist()
            right += first == [planted.dimension, planted.value, planted.application, planted.function]
    assert right >= 6


@pytest.mark.statistical
def test_healthy_pairs_with_roll_outs_and_other_mixes_raise_no_alarm():
    """6 pairs, none or one alarm; at a chance of 1% for each pair, more than one has 0.15%."""
    assert sum(blame(*pair(stream(number, "healthy"), None)[:2]) is not None for number in range(6)) <= 1


@pytest.mark.parametrize(
    ("new", "dear", "cause"),
    [
        (("a",), lambda t: 2.0 if t["compiler"] == "clang-18" else 1.0, Cause("revision", "r2", "a")),
        (("a", "b"), lambda t: 2.0 if t["compiler"] == "clang-18" else 1.0, Cause("compiler", "clang-18")),
        (
            ("a", "b"),
            lambda t: 2.0 if (t["application"], t["revision"]) == ("a", "r2") else 1.0,
            Cause("revision", "r2", "a"),
        ),
        (("a",), lambda t: 2.0 if t["platform"] == "milan" else 1.0, Cause("platform", "milan")),
        (("a",), lambda t: 2.0 if t["datacentre"] == "west" else 1.0, Cause("datacentre", "west")),
        (("b",), lambda t: 2.0 if t["application"] == "a" else 1.0, Cause("application", "a", "a")),
        (("a",), lambda _t: 2.0, Cause("everywhere", "")),
    ],
    ids=["one job of the compiler", "two jobs of it", "a revision of two", "platform", "place", "application", "all"],
)
def test_confounded_tags_are_told_apart_as_far_as_the_cells_allow(new, dear, cause):
    rng = stream(1, "confounded")
    before, after = profile(rng), profile(rng, dear, new=new, compiler="clang-18")
    found = alarms(before, after)
    assert blame(before, after) == cause
    assert found["function"].tolist() == ["f"]
    row = found.iloc[0]
    assert row["low"] < 2.0 < row["high"]
    assert row["explained"] > 0.8


def test_a_compiler_that_some_jobs_had_before_and_others_get_now_is_named():
    rng = stream(2, "both")

    def slow(tags):
        return 2.0 if tags["compiler"] == "clang-18" else 1.0

    before = profile(rng, slow, new=("a",), compiler="clang-18")
    after = profile(rng, slow, new=("a", "b", "c"), compiler="clang-18")
    assert blame(before, after) == Cause("compiler", "clang-18")
    row = alarms(before, after).iloc[0]
    assert row["factor"] == pytest.approx(2.0, rel=0.1)
    assert row["explained"] > 0.95


def test_a_mix_that_changes_is_no_regression():
    """Job a spends 40% in f and the others 5%; four times its load raises f's share; nothing is more expensive."""
    rng = stream(3, "mix")

    def dear(tags):
        return 12.0 if tags["application"] == "a" else 1.0

    before, after = profile(rng, dear), profile(rng, dear, load={"a": 4.0})
    share = [one.groupby("function")["value"].sum()["f"] / one["value"].sum() for one in (before, after)]
    assert share[1] - share[0] > 0.1
    assert blame(before, after) is None


def test_what_became_cheaper_is_no_alarm():
    rng = stream(4, "cheaper")
    before = profile(rng, new=("a", "b"), compiler="clang-18")
    after = profile(rng, lambda _t: 0.4, new=("a", "b"), compiler="clang-18")
    assert "f" not in alarms(before, after)["function"].tolist()


def test_small_changes_are_left_out_as_asked():
    rng = stream(5, "small")
    before, after = profile(rng), profile(rng, lambda _t: 1.6)
    assert len(alarms(before, after)) == 1
    assert not len(alarms(before, after, AlarmCriteria(min_factor=1.8)))
    assert not len(alarms(before, after, AlarmCriteria(min_cost=0.2)))


def test_the_order_of_rows_and_absent_tags_do_not_matter():
    rng = stream(6, "order")
    before, after = profile(rng), profile(rng, lambda _t: 2.0)
    shuffled = alarms(before.sample(frac=1.0, random_state=1), after.sample(frac=1.0, random_state=2))
    pd.testing.assert_frame_equal(shuffled, alarms(before, after))
    tags = ["revision", "compiler", "platform", "datacentre"]
    assert blame(before.drop(columns=tags), after.drop(columns=tags)) == Cause("application", "a", "a") or blame(
        before.drop(columns=tags), after.drop(columns=tags)
    ) == Cause("everywhere", "")


def test_an_application_of_one_period_alone_cannot_be_compared():
    rng = stream(7, "gone")
    before, after = profile(rng), profile(rng)
    renamed = after.assign(application=after["application"].replace("c", "d"), revision="r9")
    assert not alarms(before, renamed)["application"].isin(["c", "d"]).any()


@pytest.mark.statistical
def test_the_drift_between_periods_is_found():
    """Log odds of 40 applications' functions move by 0.1 (standard deviation): found within 25%, over 3 errors."""
    rng = stream(8, "drift")
    rows = []
    for later in (False, True):
        for application in range(40):
            weight = np.full(10, 0.1) * rng.lognormal(0, 0.1, 10)
            for machine in range(8):
                seen = rng.multinomial(4000, weight / weight.sum())
                rows += [(later, f"a{application}", f, machine, k, float(k)) for f, k in enumerate(seen)]
    names = ["later", "application", "function", "machine", "samples", "value"]
    table = pd.DataFrame(rows, columns=names).assign(platform="p")
    drift = drift_of(list(cells(table, "machine")))
    assert np.sqrt(drift) == pytest.approx(0.1, rel=0.25)


@pytest.mark.parametrize(("second", "rival"), [(1.0, 1), (0.0, -1), (-2.0, -1)])
def test_only_a_cause_that_made_a_function_dearer_is_the_best_one_s_rival(second, rival):
    """Statistics are signed: one of 0 or below is of a cause that changed nothing, or made it cheaper."""
    causes = [Cause("revision", "r2", "web"), Cause("compiler", "new", "")]
    fits = SimpleNamespace(causes=causes, rank=np.zeros(2))
    assert comparison._first_two(fits, np.arange(2), np.array([3.0, second])) == (0, rival)


def test_adjusted_p_values_are_another_librarys_and_the_definition():
    p = stream(10, "p").random(9) ** 3
    for name, short in (("benjamini-hochberg", "bh"), ("benjamini-yekutieli", "by")):
        np.testing.assert_allclose(adjusted(p, name), false_discovery_control(p, method=short))
    ordered = sorted(p)
    expected = {each: max(min(1.0, (9 - j) * ordered[j]) for j in range(i + 1)) for i, each in enumerate(ordered)}
    np.testing.assert_allclose(adjusted(p), [expected[each] for each in p])


def test_what_is_wrong_is_said_at_once():
    with pytest.raises(ValueError, match=r"false_alarms must .*\nmin_factor must .*\nmin_cost must"):
        AlarmCriteria(0.0, 0.5, 2.0)
    table = pd.DataFrame({"function": ["f"], "machine": [1], "samples": [1], "value": [1]})
    with pytest.raises(ValueError, match="before: application, after: application"):
        alarms(table, table)


@pytest.mark.statistical
def test_small_cells_beside_large_ones_are_right_in_the_mean():
    """A new kernel on few machines: 300 functions, 0.2 samples each; both means within four standard errors of truth.

    Log odds with half a sample added would be a factor of three up there, ten standard errors.
    """
    rng = stream(14, "rests")
    for factor in (1.0, 4.0):
        weight = rng.lognormal(0, 0.3, 300)
        dear = weight * np.where(np.arange(300) < 150, factor, 1.0)
        rows = []
        for later, kernel, size, machines in ((False, "old", 2000, 30), (True, "old", 2000, 30), (True, "new", 20, 3)):
            for machine in range(machines):
                mix = dear if kernel == "new" else weight
                seen = rng.multinomial(size, mix / mix.sum())
                rows += [(later, kernel, machine, f, k, float(k)) for f, k in enumerate(seen) if k]
        table = pd.DataFrame(rows, columns=["later", "kernel", "machine", "function", "samples", "value"])
        table = table.assign(application="a")
        fits = fit(list(cells(table, "machine")), rolled_out(table), 300, 0.0)
        at = next(i for i, cause in enumerate(fits.causes) if cause.value == "new" and cause.since)
        score, information = fits.score[at, :150].sum(), fits.information[at, :150].sum()
        truth = (dear / dear.sum())[:150].sum() / (weight / weight.sum())[:150].sum() - 1.0
        assert score / information == pytest.approx(truth, abs=4 * np.sqrt((1 + truth) / information))


def test_what_is_on_its_way_out_is_no_cause():
    rng = stream(11, "out")
    before = profile(rng)
    after = profile(rng, lambda t: 2.0 if t["revision"] == "r1" else 1.0, new=("a", "b"), compiler="clang-18")
    assert "r1" not in alarms(before, after)["value"].tolist()
    assert "clang-17" not in alarms(before, after)["value"].tolist()


def test_a_factor_must_exceed_the_least_one_significantly():
    rng = stream(12, "exceed")
    before, after = profile(rng), profile(rng, lambda _t: 1.33)
    assert alarms(before, after, AlarmCriteria(min_factor=1.0))["function"].tolist() == ["f"]
    assert alarms(before, after, AlarmCriteria(min_factor=1.0))["factor"].iloc[0] > 1.27
    assert not len(alarms(before, after, AlarmCriteria(min_factor=1.27)))


def test_builds_whose_symbols_are_missing_seem_to_change_nothing():
    rng = stream(13, "unknown")
    before, after = profile(rng), profile(rng, new=("a",))
    lost = [one.assign(image=np.where(one["function"] == "j", "libz", one["application"])) for one in (before, after)]
    hidden = [
        one.assign(
            function=one["function"].mask(
                (one["image"] == "a") & (one["application"] == "a") & (one["revision"] == "r1"), "[unknown]"
            )
        )
        for one in lost
    ]
    assert blame(*hidden) is None
    assert blame(*(one.drop(columns="image") for one in hidden)) is not None


@pytest.mark.statistical
def of_few(functions, factor):
    """Two profiles of twelve machines; the first function costs so much more in the later."""
    rng = stream(4, "few functions")
    machines = np.repeat(np.arange(12), functions)
    cost = rng.gamma(100.0, 0.01, (12, functions)) * np.linspace(1.0, 2.0, functions)
    sides = []
    for growth in (1.0, factor):
        grown = cost * np.where(np.arange(functions) == 0, growth, 1.0)
        counts = rng.poisson(5000.0 * grown / grown.sum(axis=1, keepdims=True)).ravel()
        names = [f"f{at}" for at in range(functions)] * 12
        sides.append(pd.DataFrame({"function": names, "application": "a", "machine": machines, "samples": counts}))
    return CostComparison.of(*(side.assign(value=side["samples"]) for side in sides))


@pytest.mark.parametrize("functions", [6, 8])
def test_growth_of_one_of_few_functions_is_no_drift_of_the_others(functions):
    """Their shares fall together as one of them grows; it was "not reported even if it grows by 64 times"."""
    compared = of_few(functions, 1.6)
    assert compared.alarms()["function"].tolist() == ["f0"]
    assert (compared.detectable()["factor"] < 2.0).all()
    assert not compared.few
    assert of_few(functions, 1.0).alarms().empty
    assert of_few(4, 1.6).few


def test_variances_that_last_and_that_pass_are_told_apart():
    """60 machines seen twice, 40 functions: 0.09 lasts, 0.04 passes; sums within 10%, the share within 0.08."""
    rng = stream(15, "lasting")
    weight, rows = rng.lognormal(0, 0.3, 40), []
    lasting = rng.normal(0, 0.3, (60, 40))
    for later in (False, True):
        for machine in range(60):
            mix = weight * np.exp(lasting[machine] + rng.normal(0, 0.2, 40))
            seen = rng.multinomial(8000, mix / mix.sum())
            rows += [(later, "a", f, machine, k, float(k)) for f, k in enumerate(seen)]
    names = ["later", "application", "function", "machine", "samples", "value"]
    found = next(cells(pd.DataFrame(rows, columns=names), "machine"))
    assert np.mean(found.lasting + found.passing) == pytest.approx(0.13, rel=0.1)
    assert found.lasting.sum() / (found.lasting + found.passing).sum() == pytest.approx(0.09 / 0.13, abs=0.08)


def test_samples_are_sums_over_the_entries_of_a_row_and_a_function():
    """2,000 entries of 40 keys in 15 rows and of 9 functions, two of which are left out, against a dense table."""
    rng = stream(18, "entries")
    key, function, value = rng.integers(40, size=2000), rng.integers(9, size=2000), rng.gamma(2.0, 3.0, 2000)
    row, place, ratio = np.append(np.arange(15), rng.integers(15, size=25)), np.arange(9) - 2, rng.gamma(2.0, 1.0, 15)
    place[place < 0] = -1
    sampled = SparseSamples.of((key, function, value), (row, place), ratio, 7, Shelf())
    sums = np.zeros((15, 9))
    np.add.at(sums, (row[key], function), value * ratio[row[key]])
    np.testing.assert_allclose(sampled.dense(slice(0, 7), 15), sums[:, 2:], rtol=1e-12)
    by_group = sampled.summed(slice(3, 5), np.arange(15) % 4, ratio)
    np.testing.assert_allclose(by_group[1], (sums * ratio[:, None])[1::4, 5:7].sum(axis=0), rtol=1e-12)


@pytest.mark.parametrize("dense", [1, 2**18])
def test_what_the_fits_say_is_least_squares_written_out(monkeypatch, dense):
    """Three applications, every cause: information and score against dense tables and matrices that numpy inverts.

    So few functions are dense at a time that there is one, or all.
    """
    monkeypatch.setattr(cell_module, "_DENSE_NUMBERS", dense)
    rng = stream(16, "matrices")
    before, after = profile(rng, machines=8), profile(rng, machines=8, new=("a", "c"), compiler="clang-18")
    table = pd.concat([before.assign(later=False), after.assign(later=True)])
    table = table.assign(function=table["function"].map("fghij".index), samples=table["samples"] * 2)
    table = table[(table["application"] != "b") | (table["function"] < 4)]
    found, rolled = list(cells(table, "machine")), rolled_out(table)
    fits, twins = fit(found, rolled, 5, 0.02), dense_cells(table)
    assert [one.application for one in found] == [one.application for one in twins] == ["a", "b", "c"]
    information, score = np.zeros((2, len(fits.causes), 5))
    exposure, events = np.zeros((len(fits.causes), 5)), np.zeros(5)
    for own, twin in zip(found, twins, strict=True):
        assert own.functions.tolist() == twin.functions
        every = slice(0, len(own.functions))
        np.testing.assert_allclose(own.sampled.dense(every, len(own.count)), twin.samples, rtol=1e-9)
        np.testing.assert_allclose(own.pooled[own.place], twin.expected, rtol=1e-9)
        np.testing.assert_allclose([own.lasting, own.passing], [twin.lasting, twin.passing], rtol=1e-9)
        assert own.usual == pytest.approx(twin.usual, rel=1e-9)
        value = twin.samples * (twin.rows["value"] / twin.rows["count"]).to_numpy()[:, None]
        later = twin.rows["later"].to_numpy(float)
        for column, f in enumerate(twin.functions):
            metric, stray = twin.metric(column, 0.02), twin.stray(column)
            events[f] += ((1.0 - later) * value[:, column]).sum()
            for cause, where in candidates(own, rolled):
                acts, at = where[own.cell], fits.causes.index(cause)
                information[at, f] += acts @ metric @ acts
                score[at, f] += acts @ metric @ stray
                exposure[at, f] += (acts * later * value[:, column]).sum()
    np.testing.assert_allclose(fits.information.todense(), information, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(fits.score.todense(), score, rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(fits.exposure.todense(), exposure, rtol=1e-9)
    np.testing.assert_allclose(fits.earlier, events, rtol=1e-9)


@pytest.mark.filterwarnings("error")
def test_a_side_of_one_machine_is_refused_and_counts_of_any_size_are_not():
    rows = pd.DataFrame({"function": ["f", "g"] * 2, "application": ["a", "b"] * 2, "machine": [0, 0, 1, 1]})
    rows = rows.assign(samples=10**17, value=10**17)
    with pytest.raises(NotEnoughDataError, match="2 machines with samples after are needed, 1 given"):
        alarms(rows, rows[rows["machine"] == 0])
    assert not len(alarms(rows, rows))
