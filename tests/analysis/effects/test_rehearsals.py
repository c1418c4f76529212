"""Rehearsals: the change is what is assumed, courses and draws are what the design says."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.effects.rehearsals import Assumed, crossover, spans, truth, with_effect
from analysis.statistics import NotEnoughDataError
from tests.helpers.effect_studies import past
from tests.helpers.effect_studies import small_rehearsal as example


def test_the_effect_of_the_fleet_is_exactly_what_is_assumed_of_jobs():
    cells = next(spans(past(), 1.0, Assumed(), ["ratio"])).courses[0].cells
    made, change = with_effect(cells, Assumed(0.03, 0.05, 0.0), np.random.default_rng(1))
    assert change == pytest.approx(0.03, abs=1e-12)
    by_job = [np.bincount(made.job, made.y[:, arm]) / np.bincount(made.job, made.count) for arm in (0, 1)]
    assert truth(made) == pytest.approx((made.weight * by_job[1]).sum() / (made.weight * by_job[0]).sum() - 1)
    assert np.ptp(by_job[1] / by_job[0]) > 0.01


def test_courses_cover_the_past_and_controls_are_left():
    made = next(spans(past(periods=14), 1.0, Assumed(), ["adjusted"]))
    assert len(made.courses) == 6
    assert made.most == 20
    method, treated = made.courses[0].arrange(7, 3, np.random.default_rng(1))
    assert (method.name, treated.sum(axis=1).tolist()) == ("adjusted", [7, 7, 7])


def test_sizes_share_their_draws():
    arrange = example().courses[0].arrange
    few, many = (arrange(size, 5, np.random.default_rng(3))[1] for size in (5, 9))
    assert (few <= many).all()


def test_designs_by_platform_appear_where_there_are_several():
    plain = past()
    names = [one.design for one in spans(plain, 1.0, Assumed(), ["adjusted"])]
    assert names == ["1 day after 1 day", "1 day after 1 day, balanced", "1 day after 1 day, paired"]
    table = plain.table.assign(platform=np.where(plain.table["machine"] % 2, "x", "y"))
    made = list(spans(replace(plain, table=table), 1.0, Assumed(), ["adjusted"]))
    assert made[-1].design == "1 day after 1 day, by platform"
    treated = made[-1].courses[0].arrange(10, 3, np.random.default_rng(1))[1]
    assert treated[:, 1::2].sum(axis=1).min() >= 4


def test_of_each_pair_one_machine_is_treated_and_pairs_were_alike():
    """In a fleet of two kinds of machines, far apart, partners are of one kind."""
    plain = past()
    fast = plain.table["machine"] % 2 == 1
    table = plain.table.assign(value=plain.table["value"] * np.where(fast, 1.5, 1.0))
    (made,) = (one for one in spans(replace(plain, table=table), 1.0, Assumed(), []) if one.estimator == "paired")
    machines = len(made.courses[0].cells.machines)
    assert (made.least, made.most) == (3, machines // 2)
    method, treated = made.courses[0].arrange(made.most, 4, np.random.default_rng(1))
    kinds = made.courses[0].cells.machines % 2 == 1
    assert treated.sum(axis=1).tolist() == [made.most] * 4
    assert {int(draw[kinds].sum()) for draw in treated} == {int(kinds.sum()) // 2}
    assert all(treated[:, pair].sum(axis=1).tolist() == [1] * 4 for pair in method.pairs)


def test_a_short_past_promises_nothing_for_longer_studies():
    made = next(spans(past(periods=4), 7.0, Assumed(), ["adjusted"]))
    assert made.scale == 1.0
    assert "too short" in made.notes[0]
    assert next(spans(past(periods=10), 7.0, Assumed(), ["adjusted"])).scale < 1.0


def test_one_period_is_too_few():
    with pytest.raises(NotEnoughDataError):
        next(spans(past(periods=1), 1.0, Assumed(), ["adjusted"]))
    with pytest.raises(NotEnoughDataError):
        crossover(past(periods=1), Assumed())


def test_a_crossover_without_noise_sees_the_change_exactly():
    plain = past(periods=8, sd=0.0)
    made = crossover(replace(plain, period_s=3600.0), Assumed(0.02, 0.0, 0.0))
    answers = []
    for course in made.courses:
        method, treated = course.arrange(10, 4, np.random.default_rng(1))
        answers.append(method.many(course.cells, treated).change)
        assert course.truth == pytest.approx(0.02)
    assert np.concatenate(answers) == pytest.approx(0.02, abs=1e-9)
    assert (made.design, made.hours, made.most) == ("crossover of 8 periods", 8.0, 20)


@pytest.mark.statistical
def test_a_rehearsed_crossover_covers_the_change_that_it_assumes():
    """12 schedules, 40 draws each: outside of 90 to 98.5% in fewer than 1 of 1,000 seeds, draws being alike."""
    rough = replace(past(periods=8, machines=120, sd=0.05), period_s=3600.0)
    held = []
    for course in crossover(rough, Assumed(0.02, 0.01, 0.01)).courses:
        method, treated = course.arrange(20, 40, np.random.default_rng(1))
        found = method.many(course.cells, treated)
        held.append((np.abs(found.change - course.truth) <= found.margin()).mean())
    assert len(held) == 12
    assert 0.90 <= np.mean(held) <= 0.985
