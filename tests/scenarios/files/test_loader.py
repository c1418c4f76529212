"""Scenario files: places of values, `extends`, `--set` and the digest."""

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.fleet.world import Fleet, World
from scenarios.files.faults import Fault, FaultsError, shown
from scenarios.files.loader import Override, digest, library, load, load_each, override, read, settings
from scenarios.files.schema import Scenario
from scenarios.files.tree import merge, parse

keys = st.sampled_from(["a", "b", "c", "d"])
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text('aé: #\n"-0', max_size=5)
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4), max_leaves=8
)
maps = st.dictionaries(keys, values, max_size=4)


def tree(value):
    root, faults = parse(json.dumps(value), "x.yaml")
    assert faults == []
    return root


def layered(base, other):
    """Say again, in plain values, what laying `other` over `base` means."""
    if not isinstance(base, dict) or not isinstance(other, dict):
        return other
    result = dict(base)
    for key, value in other.items():
        result[key] = layered(base[key], value) if key in base else value
    return result


def write(folder, **files):
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return str(folder / "day.yaml")


def faults_of(reference, *sets):
    with pytest.raises(FaultsError) as caught:
        load(reference, settings(sets))
    return caught.value.faults


@given(maps)
def test_json_is_read_as_what_it_says(value):
    assert tree(value).plain() == value


@given(maps, maps)
def test_maps_merge_and_all_else_replaces(base, other):
    assert merge(tree(base), tree(other)).plain() == layered(base, other)


@given(maps, maps, maps)
def test_a_chain_of_three_can_be_merged_from_either_end(a, b, c):
    one, two, three = tree(a), tree(b), tree(c)
    overlap = layered(layered(a, b), c)
    assert merge(merge(one, two), three).plain() == overlap


@given(maps)
def test_laying_a_file_over_itself_changes_nothing(value):
    assert merge(tree(value), tree(value)).plain() == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("yes", "yes"),
        ("010", 10),
        ("0o10", 8),
        ("0x1F", 31),
        ("1e3", 1000.0),
        ("~", None),
        ("", None),
        ("True", True),
        ("1:30", "1:30"),
        ("2018-03-24", "2018-03-24"),
        ("'3'", "3"),
    ],
)
def test_scalars_are_those_of_yaml_1_2(text, value):
    root, faults = parse(f"key: {text}", "x.yaml")
    assert faults == []
    assert (root.child("key").value, type(root.child("key").value)) == (value, type(value))


def test_every_repetition_of_a_key_names_the_first():
    _, faults = parse("seed: 1\nseed: 2\nseed: 3\n", "x.yaml")
    assert [fault.problem for fault in faults] == ["is given twice, first in line 1"] * 2


def test_every_value_and_key_has_its_place():
    root, _ = parse("fleet:\n  machines: 300\nlist: [1,\n  two]\n", "x.yaml")
    machines = root.nearest(("fleet", "machines"))
    assert (machines.place.line, machines.place.column, machines.key.line, machines.key.column) == (2, 13, 2, 3)
    second = root.nearest(("list", 1))
    assert (second.place.line, second.place.column) == (4, 3)


def test_a_million_values_out_of_few_aliases_are_refused():
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{i}: &a{i} [{', '.join(f'*a{i - 1}' for _ in range(10))}]" for i in range(1, 7)]
    root, faults = parse("\n".join(lines), "x.yaml")
    assert root is None
    assert "an alias makes more than 100000 values" in faults[0].problem


def test_a_file_inherits_from_its_base_all_but_name_and_description(tmp_path):
    base = "name: base\ndescription: the base\nseed: 7\nfleet: {machines: 200, machines_per_rack: 20}\n"
    day = load(write(tmp_path, base=base, day="extends: base.yaml\nfleet: {machines: 100}\n"))
    assert (day.name, day.description, day.seed) == ("day", "", 7)
    assert (day.fleet.machines, day.fleet.machines_per_rack) == (100, 20)


def test_a_base_may_extend_a_base_in_another_folder(tmp_path):
    (tmp_path / "bases").mkdir()
    (tmp_path / "bases" / "a.yaml").write_text("extends: b.yaml\nseed: 3\n")
    (tmp_path / "bases" / "b.yaml").write_text("seed: 2\nepoch_s: 600\n")
    day = load(write(tmp_path, day="extends: bases/a.yaml\n"))
    assert (day.seed, day.epoch_s) == (3, 600.0)


def test_null_is_a_value_that_replaces_a_whole_map(tmp_path):
    assert load("small").feature is not None
    assert load(write(tmp_path, day="extends: small\nfeature: null\n")).feature is None


def test_lists_replace_and_do_not_grow(tmp_path):
    assert load(
        write(tmp_path, day="extends: small\nanalyses: {wsmeter: {machines: [5]}}\n")
    ).analyses.wsmeter.machines == (5,)


def test_a_fault_is_told_in_the_file_that_says_the_value(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, base="seed: 1\nfleet: {machines: many}\n", day="extends: base.yaml\nepoch_s: 0\n")
    assert list(map(str, faults_of("day.yaml"))) == [
        'base.yaml:2:19: fleet.machines: should be a whole number, got "many"',
        "day.yaml:2:10: epoch_s: should be greater than 0, got 0",
    ]


def test_a_faulty_value_of_a_base_that_is_replaced_is_no_fault(tmp_path):
    day = "extends: base.yaml\nfleet: {machines: 100}\nanalyses: {wsmeter: {machines: [5]}}\n"
    assert load(write(tmp_path, base="fleet: {machines: many}\n", day=day)).fleet.machines == 100


def test_a_contradiction_between_files_is_told_where_the_blamed_value_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, base="epoch_s: 7\nhorizon_s: 70\n", day="extends: base.yaml\nhorizon_s: 86400\n")
    assert list(map(str, faults_of("day.yaml"))) == ["base.yaml:1:10: epoch_s: should divide horizon_s = 86400, got 7"]


def test_a_service_that_no_core_is_wide_enough_for_is_a_fault_with_its_place(tmp_path):
    service = "{name: shop, instances: 4, quota_vcpu: 2.0, core_cpi: 0.1, memory_accesses_per_instruction: 0.001}"
    (tmp_path / "shop.yaml").write_text(f"extends: small\npopulation:\n  services: [{service}]\n")
    with pytest.raises(FaultsError, match=r":3:68: population.services.0.core_cpi: should be at least 0.25, got"):
        load(str(tmp_path / "shop.yaml"))


def test_a_file_that_is_not_utf_8_is_refused(tmp_path):
    (tmp_path / "day.yaml").write_bytes(b"description: caf\xe9\n")
    assert faults_of(str(tmp_path / "day.yaml"))[0].problem == "cannot be read: is not UTF-8"


def test_a_missing_file_is_told_with_the_names_that_there_are():
    with pytest.raises(FaultsError, match=r"^nowhere\.yaml: there is no such file$"):
        read("nowhere.yaml")
    with pytest.raises(FaultsError, match=r"nowhere: there is no such scenario \(wsc scenarios lists them\)"):
        read("nowhere")


def test_set_replaces_scalars_whole_maps_and_items_of_lists():
    root = tree({"fleet": {"machines": 1, "platforms": {"a": 1.0}}, "sizes": [1, 2]})
    sets = ["fleet.machines=5", "fleet.platforms={b: 1}", "sizes.1=9", "power.cap_share=0.5"]
    changed, faults = override(root, settings(sets))
    assert faults == []
    assert changed.plain() == {
        "fleet": {"machines": 5, "platforms": {"b": 1}},
        "sizes": [1, 9],
        "power": {"cap_share": 0.5},
    }


def test_the_last_set_of_a_path_wins_over_the_file_and_over_earlier_ones():
    assert load("small", settings(["seed=5", "seed=6"])).seed == 6


def test_faults_of_sets_are_told_by_number():
    found = faults_of("small", "fleet.machines=many", "seed", "seed=[1", "sizes=", "fleet.machnes=3")
    assert list(map(str, found)) == [
        '--set: fleet.machines: should be a whole number, got "many"',
        '--set:2: should be path=value, got "seed"',
        "--set:3: seed: is not YAML: expected ',' or ']', but got '<stream end>'",
        "--set:4: sizes: is empty",
        "--set:5: fleet.machnes: unknown key (did you mean machines?), got 3",
    ]


def test_a_set_of_a_list_position_that_does_not_exist_is_a_fault():
    found = faults_of("small", "analyses.wsmeter.machines.3=5")
    assert str(found[0]) == "--set: 3: there is no item 3 in a list of 3 (counted from 0)"


def test_an_option_with_a_value_of_its_own_is_told_by_its_name():
    with pytest.raises(FaultsError, match=r"^--seed: should be a whole number, got 1\.5"):
        load("small", [Override("seed", "1.5", "--seed")])


def test_the_digest_does_not_see_the_order_of_keys_or_the_spelling_of_numbers(tmp_path):
    text = "fleet: {machines: 400, platforms: {haswell_2698v3: 0.5, skylake_6148: 0.5}}\nepoch_s: 300\n"
    one = load(write(tmp_path, day=text))
    text = "epoch_s: 3.0e+2\nfleet: {platforms: {skylake_6148: 0.50, haswell_2698v3: 0.5}, machines: 400}\n"
    two = load(write(tmp_path, day=text))
    assert digest(one) == digest(two)
    assert list(one.fleet.platforms) == list(two.fleet.platforms) == ["haswell_2698v3", "skylake_6148"]


def test_the_digest_does_not_see_name_description_and_analyses():
    scenario = load("small")
    other = dataclasses.replace(scenario, name="other", description="other", analyses=load("today").analyses)
    assert digest(other) == digest(scenario)


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(World)])
def test_the_digest_sees_every_field_of_the_world(field):
    plain, other = Scenario(name="day"), load("small", settings(["seed=2", "horizon_s=3600", "epoch_s=60", *CHANGES]))
    changed = dataclasses.replace(plain, **{field: getattr(other, field)})
    assert digest(changed) != digest(plain)


CHANGES = (
    "simulation=events",
    "steps.load_s=30",
    "scheduler.policy=random",
    "churn.drain_s=1.0",
    "interference.llc=false",
    "power.cap_share=0.5",
    "conditions.network_log_sd=0.5",
    "recording.truth=false",
    "platforms.mine.extends=piii",
    "incidents.shifts_per_job_day=0.1",
)


def test_the_digest_is_a_folder_name_and_the_same_whatever_the_scenarios_name():
    named = digest(Scenario(name="day", fleet=Fleet(machines=10)))
    assert named == digest(Scenario(name="other", fleet=Fleet(machines=10)))
    assert len(named) == 12
    assert int(named, 16) >= 0


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("extends: small\nhorizon_s: 100\n", ("day.yaml", 2, 12)),
        ("extends: small\nseed: 3\nhorizon_s: 100\n", ("day.yaml", 3, 12)),
        ("extends: base.yaml\nseed: 3\n", ("base.yaml", 2, 12)),
        ("extends: small\nseed: 5\nhorizon_s: 86400\nepoch_s: 301\n", ("day.yaml", 4, 10)),
    ],
)
def test_what_a_shipped_scenario_says_is_blamed_on_what_does_not_fit_it(tmp_path, text, place):
    (tmp_path / "base.yaml").write_text("extends: small\nhorizon_s: 100\n")
    (tmp_path / "day.yaml").write_text(text)
    with pytest.raises(FaultsError) as error:
        load(str(tmp_path / "day.yaml"))
    (fault,) = error.value.faults
    assert (Path(fault.file).name, fault.line, fault.column) == place
    assert fault.field == "epoch_s"


def test_an_option_is_blamed_for_what_it_makes_of_a_shipped_scenario(tmp_path):
    with pytest.raises(
        FaultsError, match=r"^--set: epoch_s: should divide horizon_s = 100, got 300 of today.yaml:\d+$"
    ):
        load("small", settings(["horizon_s=100"]))
    (tmp_path / "many.yaml").write_text("sweep: {scenario: small, axes: {horizon_s: [86400, 100]}}")
    with pytest.raises(FaultsError, match=r"many.yaml:1:\d+: epoch_s: should divide horizon_s = 100"):
        load_each(str(tmp_path / "many.yaml"))


def test_library_scenarios_extend_one_another_without_leaving_a_trace():
    for name in library():
        root, faults = read(name)
        assert root.child("extends") is None
        assert faults == []


def test_a_fault_without_a_line_names_the_file_alone():
    assert str(Fault("day.yaml", 0, 0, "", "is gone")) == "day.yaml: is gone"


def test_faults_are_told_once_each_and_in_order():
    late, early = Fault("a.yaml", 10, 1, "b", "x"), Fault("a.yaml", 9, 1, "a", "x")
    assert FaultsError([late, early, late]).faults == [early, late]


def test_long_values_are_shortened():
    assert len(shown("x" * 100)) == 60


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("small", "churn.drain_s", "3600"),
        ("queue_small", "station.servers", "3"),
        ("cross_rubis", "load.requests_per_s", "11"),
        ("profiled_small", "profiling.collector.samples_per_s", "11"),
        ("profiled_small", "fleet.machines", "44"),
    ],
)
def test_every_kind_of_scenario_has_another_digest_when_a_value_of_its_own_changes(name, path, value):
    as_it_is, changed = load(name), load(name, [Override(path, value, "test")])
    assert digest(as_it_is) != digest(changed)


@pytest.mark.parametrize(
    ("base", "field"), [("queue_on_machine", "machine.requests.core_cpi"), ("cross_rubis", "application.core_cpi")]
)
def test_requests_that_no_core_is_wide_enough_for_are_a_fault(base, field):
    with pytest.raises(FaultsError, match=rf"--set: {field}: should be at least 0\.25, got 0\.1"):
        load(base, settings([f"{field}=0.1"]))
