"""The profiler's figures hold in a world that has the finding, and say false in one that has not."""

import numpy as np
import pandas as pd
import pytest

from analysis.figures.criteria import curve, judge, number
from analysis.figures.gwp import profiles, square_root
from scenarios.papers.gwp import by_stay
from scenarios.papers.rows import published


def verdicts(row, measured):
    return {check.name + check.relation: check.holds for check in judge(measured, published(row))}


def days(rng, mix, samples=20_000):
    """Profiles of days, each drawn from its own mix."""
    frames = [
        pd.DataFrame({"day": day, "entry": np.arange(len(p)), "samples": rng.multinomial(samples, p)})
        for day, p in enumerate(mix)
    ]
    return pd.concat(frames, ignore_index=True)


MIX = np.arange(1, 31) ** -1.0 / (np.arange(1, 31) ** -1.0).sum()


def test_entropy_of_one_mix_is_stable_and_of_a_changing_mix_is_not():
    rng = np.random.default_rng(1)
    steady = profiles.measure_fig4(days(rng, [MIX] * 14))
    assert verdicts("gwp/fig4", steady)["spreadat most"]
    one_job = np.full(30, 1e-3)
    one_job[0] = 1 - one_job[1:].sum()
    changing = profiles.measure_fig4(days(rng, [MIX, one_job] * 7))
    assert not verdicts("gwp/fig4", changing)["spreadat most"]


def test_entropy_that_follows_the_number_of_samples_is_told():
    rng = np.random.default_rng(2)
    flat = np.full(300, 1 / 300)
    frames = [days(rng, [flat], samples=int(n)).assign(day=i) for i, n in enumerate(np.geomspace(10, 200, 14))]
    measured = profiles.measure_fig4(pd.concat(frames))
    assert not verdicts("gwp/fig4", measured)["count_correlationat most"]


def machines(rng, mixes, count=60):
    frames = []
    for machine in range(count):
        state = machine % len(mixes)
        samples = int(10 ** rng.uniform(1.0, 4.0))
        drawn = rng.multinomial(samples, mixes[state])
        frames.append(
            pd.DataFrame({"machine": machine, "entry": np.arange(drawn.size), "samples": drawn, "state": state})
        )
    return pd.concat(frames, ignore_index=True)


def test_two_states_make_two_clusters_and_one_state_makes_none():
    rng = np.random.default_rng(3)
    flat = MIX**0.3 / (MIX**0.3).sum()
    steady = days(rng, [MIX] * 14)
    two = verdicts("gwp/fig5", profiles.measure_fig5(steady, machines(rng, [MIX, flat])))
    assert two == dict.fromkeys(two, True)
    other = machines(rng, [MIX, MIX])
    one = verdicts("gwp/fig5", profiles.measure_fig5(steady, other))
    assert not one["states_rightat least"]


def test_days_that_differ_by_sampling_alone_are_told_from_days_that_differ():
    rng = np.random.default_rng(4)
    by_sampling = float(np.sqrt(2 / np.pi * MIX * (1 - MIX)).sum() * np.sqrt(2 / 20_000))
    same = profiles.measure_fig6a(days(rng, [MIX] * 14), by_sampling, top=30)
    assert number(same, "excess_over_sampling") == pytest.approx(1.0, abs=0.15)
    moving = [np.roll(MIX, day % 5) for day in range(14)]
    other = profiles.measure_fig6a(days(rng, moving), by_sampling, top=30)
    assert not any(verdicts("gwp/fig6a", other).values())


def test_profiles_that_move_together_are_told_from_profiles_that_do_not():
    rng = np.random.default_rng(5)
    load = [np.roll(MIX, 1) * w + MIX * (1 - w) for w in rng.uniform(0, 0.5, 60)]
    together = {event: days(rng, load, 200_000) for event in profiles.REST}
    still = {event: days(rng, [MIX] * 60, 200_000) for event in ("heap_bytes", "threads")}
    said = verdicts("gwp/fig6b", profiles.measure_fig6b(together | still))
    assert said == dict.fromkeys(said, True)
    apart = {event: days(rng, [MIX] * 60, 200_000) for event in profiles.REST}
    moving = {event: days(rng, load, 200_000) for event in ("heap_bytes", "threads")}
    other = verdicts("gwp/fig6b", profiles.measure_fig6b(apart | moving))
    assert not other["memory_over_cyclesat most"]
    assert not other["cpu_cycles_correlationat least"]


def test_cpi_of_every_day_counts():
    calm = profiles.measure_fig7(range(14), np.full(14, 1.72), 1.72)
    assert all(verdicts("gwp/fig7", calm).values())
    one_bad = profiles.measure_fig7(range(14), [*np.full(13, 1.72), 1.9], 1.72)
    assert not verdicts("gwp/fig7", one_bad)["spreadat most"]


def by_machine(counts):
    """A table of machines and entries, as `square_root.measure` takes it."""
    counts = pd.DataFrame(counts).rename_axis("machine").reset_index()
    return counts.melt("machine", var_name="entry", value_name="samples")


@pytest.mark.statistical
def test_the_square_root_law_holds_with_its_constant_and_machines_need_more():
    """Exponent and constant from 11 × 200 parts: standard errors 0.002 and 0.4%, so false alarms below 1e-6."""
    rng = np.random.default_rng(6)
    shares = rng.dirichlet(20 * MIX, 128)
    clustered = np.array([rng.multinomial(5000, p) for p in shares])
    found = square_root.measure(by_machine(clustered), rng)
    said = verdicts("gwp/sqrt-law", found)
    assert said == dict.fromkeys(said, True)
    alike = 1 / (20 + 1)
    assert number(found, "design_effect") == pytest.approx(1 + (5000 - 1) * alike, rel=0.35)
    plain = rng.multinomial(5000, MIX, 128)
    measured = square_root.measure(by_machine(plain), rng)
    assert number(measured, "design_effect") == pytest.approx(1.0, abs=0.35)
    assert not verdicts("gwp/sqrt-law", measured)["design_effectat least"]
    assert number(measured, "closed_form") == pytest.approx(np.sqrt(2 / np.pi * MIX * (1 - MIX)).sum(), rel=0.01)


def test_parts_are_of_the_samples_that_there_are():
    """Ten samples of ten entries, one machine each: five kept without replacement are always 1 away from the whole."""
    measured = square_root.measure(by_machine(np.eye(10, dtype=np.int64)), np.random.default_rng(8))
    sizes, distances = curve(measured, "samples")
    assert sizes[-1] == 5
    assert distances[-1] * np.sqrt(1 - 0.5) == pytest.approx(1.0)
    assert [distance for size, distance in zip(*curve(measured, "machines"), strict=True) if size == 5] == [1.0]


def test_a_stay_is_one_profile_whatever_its_states():
    seen = pd.DataFrame(
        [(5, 0, "f", 9), (5, 1, "f", 4), (5, 1, "g", 3), (6, 1, "g", 2), (6, 0, "g", 1)],
        columns=["residence", "state", "function", "samples"],
    )
    made = by_stay(seen)
    assert made.to_numpy().tolist() == [[5, "f", 13, 0], [5, "g", 3, 0], [6, "g", 3, 1]]
