"""Slots: counts as even as arithmetic allows, sums close, and a former cut mended with the fewest moves."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.effects import slots as slots_module
from analysis.effects.even_counts import even, least_moved
from analysis.effects.slots import CLOSE, cut
from analysis.effects.strata import UNASSIGNED, StratifiedFleet
from models.errors import InputError

THREE = (3, 2)
"""Platforms and clusters of drawn fleets."""


def observations(machines=120, seed=1, platforms=3, clusters=4, periods=2):
    """Return a fleet's past: some jobs on each machine, platforms of other speeds, clusters of other mixes."""
    rng = np.random.default_rng(seed)
    platform = rng.integers(platforms, size=machines)
    cluster = np.minimum(rng.integers(clusters, size=machines), rng.integers(clusters, size=machines))
    speed = np.exp(0.05 * rng.normal(size=machines) + 0.1 * platform)
    machine, job = np.repeat(np.arange(machines), 4), rng.integers(12, size=4 * machines)
    row = {"job": job, "machine": machine, "weight": np.exp(0.5 * rng.normal(size=4 * machines))}
    places = {"platform": platform[machine], "cluster": cluster[machine]}
    return pd.concat(
        [
            pd.DataFrame({"period": period, **row, **places}).assign(
                value=(1 + job) * speed[machine] * np.exp(0.05 * rng.normal(size=4 * machines)), treated=0
            )
            for period in range(periods)
        ],
        ignore_index=True,
    )


def of_counts(counts, rng):
    """Return machines of which so many are of each platform and cluster, (P, C), with two numbers each."""
    platform, cluster = np.nonzero(counts)
    stratum = np.repeat(np.arange(len(platform)), counts[platform, cluster])
    levels = rng.normal(size=(len(stratum), 2))
    names = ("quota", "past performance")
    strata = tuple(map(str, range(len(platform))))
    return StratifiedFleet(pd.RangeIndex(len(stratum)), stratum, platform, cluster, strata, names, levels)


tables = st.lists(st.integers(0, 7), min_size=6, max_size=6).map(lambda counts: np.array(counts).reshape(THREE))


@settings(max_examples=60, deadline=None)
@given(tables.filter(lambda counts: counts.sum() >= 5), st.integers(2, 5), st.integers(0, 99))
def test_every_count_is_as_even_as_arithmetic_allows(counts, slots, seed):
    done = cut(of_counts(counts, np.random.default_rng(seed)), slots, seed)
    assert (done.slot >= 0).all()
    assert all(apart == least for apart, least in done.uneven().values())


@settings(max_examples=15, deadline=None)
@given(tables.filter(lambda counts: 3 <= counts.sum() <= 20), st.integers(0, 9999))
def test_a_former_cut_is_mended_with_the_fewest_moves(counts, seed):
    """The oracle tries every even table of counts."""
    rng, slots = np.random.default_rng(seed), 3
    machines = of_counts(counts, rng)
    former = rng.integers(-1, slots, len(machines.names))
    holds = machines.counts(former, slots)
    moves = [int(np.maximum(holds - table, 0).sum()) for table in even_tables(machines, slots)]
    planned, bound = least_moved(machines, holds, rng)
    assert np.maximum(holds - planned, 0).sum() == bound == min(moves)
    done = cut(machines, slots, seed, former, most_moved=0.0)
    assert done.moved == done.fewest == min(moves)
    assert all(apart == least for apart, least in done.uneven().values())


def even_tables(machines, slots):
    """Yield every table of counts, (N, S), of which each count by stratum, platform, cluster and in all is even."""
    total = np.bincount(machines.stratum, minlength=len(machines.strata))
    share, beyond = np.divmod(total, slots)
    choices = [[extra for extra in product((0, 1), repeat=slots) if sum(extra) == left] for left in beyond.tolist()]
    groups = (machines.platform, machines.cluster, np.zeros(len(total), dtype=np.int64))
    for extras in product(*choices):
        table = share + np.array(extras).T
        sums = [np.stack([np.bincount(of, row) for row in table]) for of in groups]
        if all((np.ptp(counts, axis=0) <= (counts.sum(axis=0) % slots > 0)).all() for counts in sums):
            yield table


def test_a_fleet_of_one_kind_needs_no_flow_but_gets_the_same_counts():
    rng = np.random.default_rng(1)
    machines = of_counts(np.array([[17]]), rng)
    assert sorted(even(machines, 5, rng)[:, 0]) == [3, 3, 3, 4, 4]


def test_slots_are_closer_than_random_ones_in_all_that_is_balanced():
    done = cut(StratifiedFleet.of(observations(600)), 10)
    balance = done.imbalance()
    assert (balance["spread"] < 0.6 * balance["random"]).all()
    assert (balance["spread"] < 0.3 * balance["random"]).mean() > 0.8


def test_what_random_slots_would_be_apart_is_what_they_are():
    """Mean over 24 variables and 120 random cuts within strata of one fleet: off by over 5% in 1 of 10^4 fleets."""
    machines = StratifiedFleet.of(observations(60, platforms=2, clusters=1))
    rng, found = np.random.default_rng(1), []
    for _ in range(120):
        slot = np.empty(60, dtype=np.int64)
        for stratum in range(len(machines.strata)):
            members = np.flatnonzero(machines.stratum == stratum)
            slot[rng.permutation(members)] = np.arange(len(members)) % 5
        done = slots_module.Cut(machines, 5, slot, np.full(60, UNASSIGNED), 0)
        found.append(done.imbalance()["spread"].to_numpy() ** 2)
    assert np.sqrt(np.mean(found, axis=0) / done.imbalance()["random"] ** 2).mean() == pytest.approx(1.0, abs=0.05)


def test_each_machine_is_as_likely_in_one_slot_as_in_another():
    """200 cuts of 24 machines in four slots: chi-squared of 72 degrees of freedom above 120 in 1 of 3,000 tests.

    It was 139 where the first rounds dealt the slowest machines to the first slots.
    """
    machines = StratifiedFleet.of(observations(24, platforms=2, clusters=2))
    slots = np.array([cut(machines, 4, seed).slot for seed in range(200)])
    counts = np.stack([(slots == slot).sum(axis=0) for slot in range(4)])
    assert ((counts - 50) ** 2 / 50).sum() < 120


def test_a_seed_says_which_cut():
    machines = StratifiedFleet.of(observations(60))
    assert (cut(machines, 5, 3).slot == cut(machines, 5, 3).slot).all()
    assert (cut(machines, 5, 3).slot != cut(machines, 5, 4).slot).any()


@pytest.mark.parametrize("what", ["replaced", "joined"])
def test_machines_that_come_find_the_places_that_are_free(what):
    """Of 600 machines 5% are replaced, or as many come: at most 2% of the others move, and slots stay close."""
    table = observations(600)
    done = cut(StratifiedFleet.of(table), 6)
    away = np.random.default_rng(1).permutation(600)[:30]
    coming = table[table["machine"].isin(away)].assign(machine=lambda rows: rows["machine"] + 1000)
    stays = table if what == "joined" else table[~table["machine"].isin(away)]
    later = StratifiedFleet.of(pd.concat([stays, coming], ignore_index=True))
    former = pd.Series(done.slot, index=done.machines.names).reindex(later.names).fillna(UNASSIGNED).astype(int)
    mended = cut(later, 6, former=former.to_numpy())
    assert mended.newcomers == 30
    assert mended.fewest == mended.moved <= 0.02 * 600
    assert all(apart == least for apart, least in mended.uneven().values())
    balance = mended.imbalance()
    assert (balance["spread"] < 0.8 * balance["random"]).all()


@pytest.mark.parametrize(("most", "moves"), [(0.0, 0), (0.02, 24), (0.2, 240)])
def test_where_jobs_have_moved_machines_change_places_up_to_what_is_allowed(most, moves):
    done = cut(StratifiedFleet.of(observations(1200)), 12)
    later = StratifiedFleet.of(observations(1200).assign(machine=_shuffled))
    mended = cut(later, 12, former=done.slot, most_moved=most)
    assert mended.fewest == 0
    assert mended.moved <= moves
    ratio = (mended.imbalance()["spread"] / mended.imbalance()["random"]).max()
    untouched = cut(later, 12, former=done.slot, most_moved=0.0).imbalance()
    before = (untouched["spread"] / untouched["random"]).max()
    assert ratio <= 1.05 * CLOSE if most == 0.2 else ratio < before if most else ratio == before


def _shuffled(rows):
    """Return machines of rows after what machines hold was exchanged within platforms and clusters."""
    rng = np.random.default_rng(5)
    of = rows.drop_duplicates("machine").groupby(["platform", "cluster"])["machine"]
    new = {old: after for _, group in of for old, after in zip(group, rng.permutation(group), strict=True)}
    return rows["machine"].map(new)


def test_the_cost_of_an_exchange_is_what_it_changes():
    rng = np.random.default_rng(1)
    scaled, slot = rng.normal(size=(12, 3)), np.repeat([0, 1, 2], 4)
    own, others = np.flatnonzero(slot == 0), np.flatnonzero(slot != 0)
    sums = slots_module._sums(slot, scaled, 3)
    cost = slots_module._costs_of_exchange(scaled[own], scaled[others], sums[0], sums[slot[others]])
    for (a, one), (b, other) in product(enumerate(own), enumerate(others)):
        swapped = slot.copy()
        swapped[[one, other]] = slot[[other, one]]
        change = (slots_module._sums(swapped, scaled, 3) ** 2).sum() - (sums**2).sum()
        assert cost[a, b] == pytest.approx(change)


def test_the_last_platform_of_a_machine_counts():
    table = observations(40)
    table.loc[(table["machine"] == 3) & (table["period"] == 1), "platform"] = 7
    machines = StratifiedFleet.of(table)
    assert machines.several == 1
    assert machines.strata[machines.stratum[3]].endswith(", 7")


def test_more_slots_than_machines_are_refused():
    with pytest.raises(InputError, match="between 1 and 5 slots can be cut of so many machines, got 6"):
        cut(StratifiedFleet.of(observations(5)), 6)
