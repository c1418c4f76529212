"""A user's platforms: what a file may say, and every fault of one with its place."""

import re
from dataclasses import asdict, fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from models.platforms import PLATFORMS, Sheet
from scenarios.files.faults import FaultsError
from scenarios.files.loader import load
from scenarios.files.own_platforms import read_platforms

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "docs/examples/platforms.yaml"
WHOLE = (
    "mine: {cores: 4, base_frequency_hz: 2.0e9, caches: [{size_bytes: 32768, latency_cycles: 4}], "
    "memory_latency_s: 1.0e-7, memory_bandwidth_bytes_per_s: 1.0e10, tdp_w: 95, idle_power_w: 40, core_cpi_factor: 1}"
)
each = pytest.mark.parametrize("name", PLATFORMS)


@pytest.fixture
def read(tmp_path):
    """Read a text as a file of platforms."""

    def read_text(text):
        (tmp_path / "own.yaml").write_text(text, encoding="utf-8")
        return read_platforms(tmp_path / "own.yaml")

    return read_text


@pytest.fixture
def faults(read):
    """The faults of a text, without the name of its file."""

    def faults_of(text):
        with pytest.raises(FaultsError) as caught:
            read(text)
        return [str(fault).rpartition("own.yaml:")[2] for fault in caught.value.faults]

    return faults_of


def test_the_shipped_platforms_stay_and_come_first(read):
    platforms = read(WHOLE)
    assert list(platforms) == [*PLATFORMS, "mine"]
    assert all(platforms[name] is sheet for name, sheet in PLATFORMS.items())


def test_what_is_not_said_is_the_base_clock_and_one_processor_with_one_thread_a_core(read):
    mine = read(WHOLE)["mine"]
    assert (mine.min_frequency_hz, mine.max_frequency_hz) == (2.0e9, 2.0e9)
    assert (mine.vcpus, mine.sockets, mine.variant_of) == (4, 1, "")
    assert mine.llc_bytes == 4 * 32768
    assert mine.source.endswith("own.yaml")


@each
def test_a_sheet_said_in_full_is_the_platform_it_was_taken_from(name, tmp_path):
    sheet = PLATFORMS[name]
    said = {key: value for key, value in asdict(sheet).items() if key not in {"name", "llc_bytes"}}
    said["caches"] = list(said["caches"])
    with (tmp_path / "own.yaml").open("w") as file:
        YAML(typ="safe", pure=True).dump({"mine": said}, file)
    assert read_platforms(tmp_path / "own.yaml")["mine"] == replace(sheet, name="mine")


@each
def test_a_platform_that_extends_another_is_that_one_but_for_what_it_says(name, read):
    mine, sheet = read(f"mine: {{extends: {name}, idle_power_w: 33}}")["mine"], PLATFORMS[name]
    assert mine == replace(sheet, name="mine", idle_power_w=33.0, variant_of="", source=mine.source)
    assert mine.source.endswith(f"own.yaml, from {name}")


def test_a_platform_may_extend_one_further_down_and_does_not_inherit_its_source(read):
    platforms = read(f"few: {{extends: mine, cores: 2, variant_of: mine}}\n{WHOLE[:-1]}, source: lab}}")
    few, mine = platforms["few"], platforms["mine"]
    assert few == replace(mine, name="few", cores=2, llc_bytes=65536.0, variant_of="mine", source=few.source)
    assert (mine.source, few.source.endswith("from mine")) == ("lab", True)


@given(st.integers(1, 8), st.integers(1, 16), st.integers(1, 16))
def test_the_last_level_is_as_many_caches_as_each_processor_needs(tmp_path_factory, sockets, each_has, shared_by):
    shared_by = min(shared_by, each_has)
    file = tmp_path_factory.mktemp("own") / "own.yaml"
    level = f"caches: [{{size_bytes: 1048576, latency_cycles: 30, cores: {shared_by}}}]"
    file.write_text(f"mine: {{extends: piii, sockets: {sockets}, cores: {sockets * each_has}, {level}}}")
    caches = sockets * len(range(0, each_has, shared_by))
    assert read_platforms(file)["mine"].llc_bytes == caches * 1048576


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["1:1: is empty"]),
        ("[piii]", ["1:1: should be a map of platform names to sheets"]),
        ("{}", ["1:1: should be a map of platform names to sheets"]),
        ("mine: 5", ["1:7: mine: should be a map, got 5"]),
        ("mine: {extends: piii", ["1:21: is not YAML: expected ',' or '}', but got '<stream end>'"]),
        ("piii: {extends: pres}", ["1:1: piii: is the name of a shipped platform: give yours another"]),
        ("a.b: {extends: pres}", ["1:1: a.b: should be lower-case letters, digits, '_' and '-'"]),
        ("mine: {extends: rome}", ['1:17: mine.extends: should be a platform (did you mean rome_7742?), got "rome"']),
        ("mine: {extends: 7}", ["1:17: mine.extends: should be a platform (wsc platforms lists them), got 7"]),
        (
            "a: {extends: b}\nb: {extends: a}",
            [
                '1:14: a.extends: goes round in a circle: b -> a -> b, got "b"',
                '2:14: b.extends: goes round in a circle: a -> b -> a, got "a"',
            ],
        ),
        ("mine: {extend: piii, extends: pres}", ['1:8: mine.extend: unknown key (did you mean extends?), got "piii"']),
        ("mine: {extends: piii, tdp: 5}", ["1:23: mine.tdp: unknown key (did you mean tdp_w?), got 5"]),
        ("mine: {extends: piii, cores: 2, cores: 4}", ["1:33: mine.cores: is given twice, first in line 1, got 4"]),
        ("mine: {extends: piii, cores: true}", ["1:30: mine.cores: should be a whole number, got true"]),
        ("mine: {extends: piii, tdp_w: .inf}", ["1:30: mine.tdp_w: should be a finite number, got .inf"]),
        ("mine: {extends: piii, tdp_w: 0}", ["1:30: mine.tdp_w: should be greater than 0, got 0"]),
        (
            "mine: {extends: piii, base_frequency_hz: 2.4}",
            ["1:42: mine.base_frequency_hz: should be at least 1e+06, got 2.4"],
        ),
        (
            "mine: {extends: piii, memory_latency_s: 95}",
            ["1:41: mine.memory_latency_s: should be at most 0.0001, got 95"],
        ),
        ("mine: {extends: piii, caches: []}", ["1:31: mine.caches: should not be empty, got []"]),
        ("mine: {extends: piii, cores: 3}", ["1:30: mine.cores: should be a multiple of sockets = 2, got 3"]),
        (
            "mine: {extends: piii, min_frequency_hz: 2.0e9, max_frequency_hz: 1.0e9}",
            [
                "1:41: mine.min_frequency_hz: should be at most base_frequency_hz = 1.1e+09, got 2e+09",
                "1:66: mine.max_frequency_hz: should be at least base_frequency_hz = 1.1e+09, got 1e+09",
            ],
        ),
        (
            "mine: {extends: rome_7742, frequency_step_hz: 2.0e9}",
            [
                "1:47: mine.frequency_step_hz: should be at most 1.7e+09, from the lowest clock to the highest, "
                "got 2e+09"
            ],
        ),
        (
            "few: {extends: rome, sockets: 1, cores: 2}\nrome: {extends: rome_7742}",
            [
                "1:41: few.caches.2.cores: should be at most 2, the cores of a processor; it is inherited, so give all "
                "caches anew, got 4"
            ],
        ),
        (
            "mine: {extends: piii, memory_latency_s: 1.0e-9}",
            ["1:41: mine.memory_latency_s: should be greater than that of the last cache, 7.27e-09, got 1e-09"],
        ),
        (
            "mine:\n  extends: piii\n  caches:\n  - {size_bytes: 65536, latency_cycles: 8, cores: 2}\n"
            "  - {size_bytes: 65536, latency_cycles: 4}\n",
            [
                "4:51: mine.caches.0.cores: should be at most 1, the cores of a processor, got 2",
                "5:18: mine.caches.1.size_bytes: should be greater than the 65536 of the level before, got 65536",
                "5:41: mine.caches.1.latency_cycles: should be greater than the 8 of the level before, got 4",
            ],
        ),
        (
            "mine: {extends: piii, variant_of: mine}",
            ['1:35: mine.variant_of: should be another platform (wsc platforms lists them), got "mine"'],
        ),
        (
            "mine: {extends: piii, variant_of: xeon_1h_1c_1p}",
            ['1:35: mine.variant_of: should be a whole server, not a configuration of one, got "xeon_1h_1c_1p"'],
        ),
    ],
)
def test_every_fault_is_told_with_its_place(text, expected, faults):
    assert faults(text) == expected


def test_all_faults_of_all_platforms_are_told_at_once_and_each_once(faults):
    text = (
        "one: {extends: piii, cores: 4.5, colour: red}\n"
        "two: {extends: one}\n"
        "three: {extends: pres, sockets: 0, tdp_w: wide}\n"
        "four: {extends: nosuch, idle_power_w: -1}\n"
    )
    assert [line.partition(": ")[2].partition(":")[0] for line in faults(text)] == [
        *("one.cores", "one.colour", "three.sockets", "three.tdp_w", "four.extends", "four.idle_power_w")
    ]


def test_fields_are_not_judged_against_those_of_a_platform_that_is_not_there(faults):
    (told,) = faults("mine: {extends: nosuch, cores: 3}\nother: {extends: mine, cores: 5}")
    assert told.startswith("1:17: mine.extends")


def test_what_is_required_is_told(faults):
    told = faults("mine: {cores: 1}")
    required = {
        *("base_frequency_hz", "caches", "memory_latency_s", "memory_bandwidth_bytes_per_s"),
        *("tdp_w", "idle_power_w", "core_cpi_factor"),
    }
    assert set(told) == {f"1:7: mine.{field}: is required" for field in required}


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    (tmp_path / "latin.yaml").write_bytes(b"mine: \xff")
    for name, problem in {"absent.yaml": "No such file", ".": "Is a directory", "latin.yaml": "is not UTF-8"}.items():
        with pytest.raises(FaultsError, match=f"cannot be read: {problem}"):
            read_platforms(tmp_path / name)


def test_the_example_is_what_the_documents_show_and_is_right():
    text = EXAMPLE.read_text()
    assert f"```yml\n{text}```" in (ROOT / "docs/platforms.md").read_text()
    platforms = read_platforms(EXAMPLE)
    assert set(platforms) - set(PLATFORMS) == {"web_2020", "web_2020_one_thread", "genoa_9654_pair"}
    assert platforms["web_2020"].llc_bytes == 2 * 37486592
    assert platforms["genoa_9654_pair"].llc_bytes == 2 * PLATFORMS["genoa_9654"].llc_bytes


def test_every_field_of_a_sheet_is_documented():
    documented = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/platforms.md").read_text(), re.MULTILINE)
    assert documented == [field.name for field in fields(Sheet)]


def test_the_example_of_a_scenario_is_shown_and_its_platform_replaces_haswell():
    text = (ROOT / "docs/examples/my_platform.yaml").read_text()
    assert f"```yml\n{text}```" in (ROOT / "docs/extend.md").read_text()
    scenario = load(str(ROOT / "docs/examples/my_upgrade.yaml"))
    assert scenario.sheets["mychip"].vcpus == 128
