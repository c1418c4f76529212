"""What may be planted in simulated fleets, and what a collector then sees."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.profiling.database import Database
from analysis.profiling.query import Query
from models.profiling.world import Incident
from models.randomness import stream
from scenarios.profiling.planted import CAUSES, FACTORS, WORTH, PlantedFleet, chosen, world_of, worth_finding
from sim.profiling.setting import of_block
from tests.helpers.profiled_fleets import small_fleet


@pytest.fixture(scope="module")
def fleet():
    return PlantedFleet.of(small_fleet(), 2)


def test_the_fleets_differ_by_seed_alone_and_roll_out_across_midnight():
    one, other = world_of(0), world_of(7)
    assert replace(other, seed=one.seed) == one
    half_s = one.horizon_s / 2
    kernel, compiler, refresh = one.profiling.kernel, one.profiling.compiler, one.feature.rollout
    for start_s, end_s in (
        (kernel.start_s, kernel.start_s + kernel.waves * kernel.interval_s),
        (compiler.start_s, compiler.until_s),
        (refresh.start_s, refresh.start_s + refresh.waves * refresh.interval_s),
    ):
        assert start_s < half_s < end_s <= one.horizon_s


def test_a_collector_sees_the_same_again_and_another_collector_something_else(fleet):
    pd.testing.assert_frame_equal(fleet.sampled(1), fleet.sampled(1))
    assert fleet.sampled(0)["samples"].sum() != fleet.sampled(1)["samples"].sum()


def test_halves_are_told_apart_by_the_midnight_between(fleet):
    before, after = fleet.pair(0)
    assert len(before) + len(after) == len(fleet.sampled(0))
    assert not before["later"].any()
    assert after["later"].all()
    assert set(before["kernel"]) == {"6.1.90"}


def test_what_a_collector_saw_is_written_as_the_tables_of_a_profile(fleet, tmp_path):
    """The profile's sums by function are those of the same collector's table."""
    fleet.write(tmp_path, 0)
    seen = fleet.sampled(0).groupby("function")[["samples", "value"]].sum()
    with Database([tmp_path]) as database:
        sums = database.query(Query("cycles", ("function",))).set_index("function")
    assert sums["samples"].to_dict() == seen["samples"].to_dict()
    assert sums["value"].astype(float).to_dict() == pytest.approx(seen["value"].to_dict(), rel=1e-12)


def test_an_incident_makes_its_function_more_expensive_where_and_when_it_acts_and_changes_no_totals(fleet):
    half_s = fleet.half_s
    struck = Incident("memmove", 3.0, half_s, datacentre="west")
    healthy, planted = fleet.sampled(0), fleet.sampled(0, [struck])
    by = ["later", "datacentre"]
    totals = [one.groupby(by)["value"].sum() for one in (healthy, planted)]
    assert totals[1].to_numpy() == pytest.approx(totals[0].to_numpy(), rel=0.02)
    shares = [one[one["function"] == "memmove"].groupby(by)["value"].sum() / one.groupby(by)["value"].sum()
              for one in (healthy, planted)]  # fmt: skip
    ratio = shares[1] / shares[0]
    assert ratio[True, "west"] == pytest.approx(3.0, rel=0.2)
    assert ratio.drop((True, "west")).to_numpy() == pytest.approx(np.ones(3), abs=1e-9)


def test_what_is_worth_finding_has_the_cycles_and_can_be_told_by_its_cause(fleet):
    """Against what a collector saw of the second half: Poisson's error, and that of a few visits."""
    seen = fleet.sampled(0)
    there = worth_finding(fleet.setting, fleet.spent())
    assert set(there["cause"]) >= {"revision", "platform", "datacentre"}
    assert (there["share"] >= WORTH).all()
    later = seen[seen["later"] & ~seen["application"].str.startswith("[")]
    estimated = []
    for one in there.itertuples():
        rows = later[(later[one.cause] == one.value) & (later["function"] == one.function)]
        rows = rows[rows["application"] == one.application] if one.application else rows
        estimated.append(rows["value"].sum() / later["value"].sum())
    assert np.corrcoef(estimated, there["share"])[0, 1] > 0.9
    assert np.sum(estimated) == pytest.approx(there["share"].sum(), rel=0.05)
    releases = there[there["cause"] == "revision"]
    old = seen[~seen["later"]].groupby("application")["revision"].agg(set)
    assert all(one.value not in old.get(one.application, ()) for one in releases.itertuples())
    assert set(there.loc[there["cause"] == "compiler", "application"]) <= {""}


def test_cycles_of_the_second_half_are_what_is_left_of_the_whole(fleet):
    rows, totals = of_block(fleet.setting, fleet.blocks[0])
    assert len(fleet.blocks) == 1
    second = totals[rows.day >= 1, 0].sum()
    assert 0.2 < second / totals[:, 0].sum() < 0.8
    assert fleet.spent()["cycles"].sum() == pytest.approx(second, rel=1e-12)


def test_what_has_no_symbols_cannot_be_planted(fleet):
    software, spent = fleet.setting.software, fleet.spent()
    image = software.programs.images.index(spent.loc[spent["function"] == "memmove", "image"].iloc[0])
    stored = software.builds.stored & (software.builds.image != image)
    without = replace(fleet.setting, software=replace(software, builds=replace(software.builds, stored=stored)))
    with_all, fewer = (worth_finding(setting, spent) for setting in (fleet.setting, without))
    assert "memmove" in with_all["function"].tolist()
    assert "memmove" not in fewer["function"].tolist()


def test_choices_are_even_and_factors_within_their_bounds():
    row = {"application": "a", "share": 0.01, "cause": "revision", "value": "r2"}
    there = pd.DataFrame([row | {"function": name} for name in "fgh"])
    rng = stream(1, "choices")
    made = [chosen(there, rng, 5.0)[0] for _ in range(600)]
    assert all(FACTORS[0] <= one.factor <= FACTORS[1] for one in made)
    assert np.mean(np.log([one.factor for one in made])) == pytest.approx(np.mean(np.log(FACTORS)), abs=0.03)
    counts = pd.Series([one.function for one in made]).value_counts()
    assert counts.min() > 150
    assert {(one.from_s, one.revision, one.application, one.platform) for one in made} == {(0.0, "r2", "a", "")}
    assert chosen(there.assign(cause="datacentre", value="east"), rng, 5.0)[0].from_s == 5.0


def test_nothing_worth_finding_is_said():
    with pytest.raises(ValueError, match="no function has enough"):
        chosen(pd.DataFrame(columns=["cause", "value"]), stream(1, "none"), 0.0)


def test_causes_are_fields_of_incidents():
    assert all(getattr(Incident("f", 2.0), cause) == "" for cause in CAUSES)
