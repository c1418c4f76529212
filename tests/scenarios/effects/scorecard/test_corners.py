"""Corners differ from the base where they say so, are valid scenarios, and belong to their names."""

import re
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from models.fleet.inventory import drawn_names
from scenarios.commands.scorecard import scorecard
from scenarios.effects.scorecard.corners import AUTOCORRELATION, CORNERS, corner, crossover, drawn, world
from scenarios.files.faults import FaultsError
from scenarios.files.loader import load
from sim.fleet.day import own_autocorrelation


def leaves(value, path=""):
    """Every value of a nested mapping by its dotted path."""
    if isinstance(value, dict) and value:
        return {key: leaf for name, one in value.items() for key, leaf in leaves(one, f"{path}.{name}").items()}
    return {path[1:]: value}


BASE = leaves(asdict(world(corner("base"), 1, 100)))


@pytest.mark.parametrize("name", [name for name in CORNERS if name not in {"base", "large"}])
def test_a_corner_is_the_base_but_for_what_it_says(name):
    where = corner(name)
    made = leaves(asdict(world(where, 1, 100)))
    different = {key for key in BASE.keys() | made.keys() if BASE.get(key) != made.get(key)}
    about_feature = {key for key in different if key.startswith("feature.")}
    assert bool(about_feature) == (where.change != "jobs")
    assert different - about_feature == {key for key, value in where.values.items() if BASE.get(key) != value}
    assert all(made[key] == value for key, value in where.values.items())
    assert len(different) > 0


def test_there_are_more_than_twenty_with_five_drawn_ones():
    assert len(CORNERS) >= 21
    assert [name for name in CORNERS if name.startswith("drawn")] == [f"drawn_{seed}" for seed in range(1, 6)]
    assert drawn(2) == CORNERS["drawn_2"] != drawn(3)


@pytest.mark.parametrize("file", ["docs/python.md", "docs/extend.md", "docs/notebooks/estimator.ipynb", "CHANGELOG.md"])
def test_documents_and_the_command_say_how_many_there_are(file):
    said = re.findall(r"(\d+) (?:kinds|corners)", (Path(__file__).parents[4] / file).read_text(encoding="utf-8"))
    assert str(len(CORNERS)) in said
    assert f"{len(CORNERS)} kinds" in (scorecard.__doc__ or "")


@pytest.mark.parametrize("seed", range(30))
def test_drawn_corners_are_worlds(seed):
    made = world(drawn(seed), seed, 60)
    assert made.feature is not None
    assert made.seed == seed


@pytest.mark.parametrize("at", AUTOCORRELATION)
def test_autocorrelation_from_hour_to_hour_is_what_the_corner_is_named_after(at):
    made = world(corner(f"autocorrelation_{round(100 * at):02}"), 1, 100)
    assert own_autocorrelation(made, 3600.0) == pytest.approx(at, abs=1e-3)


def test_sizes_follow_the_machines_asked_for():
    large, base = world(corner("large"), 3, 1000), world(corner("base"), 3, 1000)
    assert (large.fleet.machines, large.population.jobs) == (6000, 3900)
    assert (base.fleet.machines, base.population.jobs, base.population.heavyweights) == (1000, 650, 40)
    assert (base.horizon_s, base.epoch_s, len(base.windows)) == (14 * 86400.0, 3600.0, 14)


def test_the_library_has_the_corners_of_incidents_and_of_overcommitted_quotas():
    assert asdict(world(corner("incidents"), 1, 100).incidents) == asdict(load("incidents").incidents)
    assert world(corner("overcommitted"), 1, 100).fleet.overcommit == load("overcommitted").fleet.overcommit


def test_software_of_a_uniform_change_reaches_every_job():
    made = world(corner("uniform"), 4, 100)
    (code,) = made.feature.software
    assert len(set(code.jobs)) == len(code.jobs) == made.population.jobs
    assert made.feature.governor is None


def test_new_code_of_the_base_has_a_gain_of_its_own_for_every_job_and_a_third_lose():
    made = world(corner("base"), 4, 1000)
    factor = np.array([code.core_cpi_factor for code in made.feature.software])
    assert sorted(name for code in made.feature.software for name in code.jobs) == sorted(
        drawn_names(made.population, 4)
    )
    assert np.log(factor).std() == pytest.approx(0.02, rel=0.1)
    assert (factor > 1).mean() == pytest.approx(0.354, abs=0.06)
    assert world(corner("base"), 5, 1000).feature != made.feature


@pytest.mark.parametrize("name", ["base", "fine", "uniform"])
def test_the_crossover_of_a_corner_has_whole_epochs_to_settle(name):
    made = crossover(world(corner(name), 1, 100))
    assert made.feature.settle_s % made.epoch_s == 0
    assert len(made.windows) == 32
    assert np.diff(made.periods).ravel().tolist() == [5400.0] * 16


def test_power_domains_switch_as_wholes_where_there_are_four():
    units = [crossover(world(corner("base"), 1, machines)).feature.rollout.unit for machines in (480, 481)]
    assert units == ["machine", "domain"]


def test_platforms_are_not_switched():
    with pytest.raises(ValueError, match="switched off"):
        crossover(world(corner("upgrade"), 1, 100))


def test_an_unknown_corner_is_refused_with_those_there_are():
    with pytest.raises(FaultsError, match="base, persistence_low"):
        corner("nonsense")
