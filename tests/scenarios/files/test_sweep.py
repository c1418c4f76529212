"""Sweeps expand into scenarios with names of their own."""

import itertools

import pytest

from scenarios.files.faults import FaultsError
from scenarios.files.loader import digest, load, load_each, settings


def sweep(folder, text):
    (folder / "sizes.yaml").write_text(text, encoding="utf-8")
    return str(folder / "sizes.yaml")


def test_every_combination_under_every_seed_is_a_scenario(tmp_path):
    axes = "{fleet.machines: [300, 400], epoch_s: [300, 600]}"
    file = sweep(tmp_path, f"sweep: {{scenario: small, axes: {axes}, seeds: [1, 2]}}\n")
    made = load_each(file)
    values = [(one.fleet.machines, one.epoch_s, one.seed) for one in made]
    assert values == list(itertools.product([300, 400], [300.0, 600.0], [1, 2]))
    assert made[0].name == "sizes-machines-300-epoch_s-300-seed-1"


def test_names_and_digests_of_a_sweep_differ(tmp_path):
    features = "[null, {name: a, governor: {}}, {name: b, governor: {}}]"
    file = sweep(tmp_path, f"sweep: {{scenario: small, axes: {{feature: {features}}}, seeds: [3, 4]}}\n")
    made = load_each(file)
    assert len({one.name for one in made}) == len({digest(one) for one in made}) == 6
    assert made[0].name == "sizes-feature-null-seed-3"
    assert made[2].name == "sizes-feature-2-seed-3"


def test_axes_that_end_alike_are_named_in_full(tmp_path):
    twins = "{power.governor.policy: [ondemand], scheduler.policy: [random], epoch_s: [600]}"
    (only,) = load_each(sweep(tmp_path, f"sweep: {{scenario: small, axes: {twins}}}\n"))
    assert only.name == "sizes-power-governor-policy-ondemand-scheduler-policy-random-epoch_s-600"


def test_a_sweep_with_neither_axes_nor_seeds_is_the_scenario_under_another_name(tmp_path):
    (only,) = load_each(sweep(tmp_path, "sweep: {scenario: small}\n"))
    assert only.name == "sizes"
    assert digest(only) == digest(load("small"))


def test_an_override_holds_for_every_scenario_of_a_sweep():
    made = load_each("two_wscs", settings(["fleet.machines=250"]))
    assert [(one.fleet.machines, one.seed) for one in made] == [(250, 1), (250, 2)]


def test_two_wscs_share_their_universe_and_have_no_feature():
    first, second = load_each("two_wscs")
    assert first.population == second.population
    assert (first.seed, second.seed) == (1, 2)
    assert first.feature is None


def test_a_sweep_is_relative_to_its_own_file(tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "base.yaml").write_text("extends: small\nseed: 9\n")
    (tmp_path / "inner" / "sizes.yaml").write_text("sweep: {scenario: base.yaml}\n")
    monkeypatch.chdir(tmp_path)
    assert load("inner/sizes.yaml").seed == 9


def test_where_one_scenario_is_needed_a_sweep_is_a_fault():
    with pytest.raises(FaultsError, match="two_wscs: sweep: is 2 scenarios where one is needed"):
        load("two_wscs")


def test_a_sweep_that_extends_a_scenario_is_told_so_and_nothing_of_that_scenario(tmp_path):
    with pytest.raises(FaultsError) as caught:
        load_each(sweep(tmp_path, "extends: queue_small\nsweep: {station.servers: [1, 2]}\n"))
    told = [(fault.line, fault.field) for fault in caught.value.faults]
    assert told == [(1, "extends"), (2, "sweep.scenario"), (2, "sweep.station.servers")]


def test_a_fault_in_the_varied_scenario_says_of_which_combination_it_is(tmp_path):
    (tmp_path / "mine.yaml").write_text("{extends: queue_small, replays: [1]}")
    with pytest.raises(FaultsError, match=r"mine\.yaml:1:34: replays\.0: .* \(in sizes-servers-1\), got 1$"):
        load_each(sweep(tmp_path, "sweep: {scenario: ./mine.yaml, axes: {station.servers: [1, 2]}}\n"))
    with pytest.raises(FaultsError, match=r"sizes\.yaml:1:57: replays\.0: .*, got 1 of queue_small\.yaml:\d+$"):
        load_each(sweep(tmp_path, "sweep: {scenario: queue_small, axes: {station.servers: [1, 2]}}\n"))


def test_all_wrong_values_of_an_axis_are_told_and_each_once(tmp_path):
    with pytest.raises(FaultsError) as caught:
        load_each(sweep(tmp_path, "sweep: {scenario: small, axes: {epoch_s: [7, 300, 11, 0]}, seeds: [1, 2]}\n"))
    assert [fault.got for fault in caught.value.faults] == ["7", "11", "0"]


def test_an_axis_without_values_hides_no_fault_of_another(tmp_path):
    file = tmp_path / "many.yaml"
    file.write_text("sweep: {scenario: small, axes: {fleet.machines: [], fleet.nothing: [1, 2], seed: [x]}}")
    with pytest.raises(FaultsError) as error:
        load_each(str(file))
    assert {fault.field for fault in error.value.faults} == {"sweep.axes.fleet.machines", "fleet.nothing", "seed"}
