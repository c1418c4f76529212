"""Platforms of your own in scenarios: the file, its contents, the digest, and every fault with its place."""

import hashlib
import json
import pickle
from dataclasses import asdict, replace

import pytest
from typer.testing import CliRunner

import wsc
from models.platforms import PLATFORMS
from scenarios.commands.app import app
from scenarios.files.faults import FaultsError
from scenarios.files.loader import digest, load, load_each, settings
from scenarios.report.settings import file_of
from scenarios.runs.execution import alone, cells

SHEETS = "mychip:  # on paper\n  extends: rome_7742\n  core_cpi_factor: 0.6\nspare: {extends: mychip, tdp_w: 180}\n"
FLEET = (
    "extends: small\nplatforms: {file}\nfleet: {{platforms: {{haswell_2698v3: 0.5, mychip: 0.5}}}}\n"
    "feature: {{name: upgrade, platforms: {{haswell_2698v3: mychip}}}}\n"
)
NEW = {"haswell_2698v3": "mychip"}
SERVICE = "kind: cross_platform\nplatforms: [piii, mine.yaml, pres]\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("mine.yaml", SHEETS)
    write("fleet.yaml", FLEET.format(file="mine.yaml"))
    write("service.yaml", SERVICE)
    return tmp_path


def write(name, text):
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)


def faults(reference, *sets):
    with pytest.raises(FaultsError) as caught:
        load_each(reference, settings(sets))
    return [str(fault) for fault in caught.value.faults]


def test_a_fleet_knows_the_shipped_platforms_and_those_of_its_file():
    scenario = load("fleet.yaml")
    assert list(scenario.sheets) == [*PLATFORMS, "mychip", "spare"]
    mychip, rome = scenario.sheets["mychip"], PLATFORMS["rome_7742"]
    assert mychip == replace(rome, name="mychip", core_cpi_factor=0.6, source="own spec sheet, from rome_7742")
    assert scenario.sheets["spare"].tdp_w == 180.0
    assert scenario.world.sheets == scenario.sheets


def test_a_world_without_its_own_has_the_digest_that_it_always_had():
    for name, own in {"small": "platforms", "cross_rubis": "own_platforms", "queue_small": "platforms"}.items():
        values = asdict(load(name).world)
        assert values.pop(own) == {}
        assert values.get("interference", {}).pop("mechanism", None) is None
        text = json.dumps(values, separators=(",", ":"))
        assert digest(load(name)) == hashlib.sha256(text.encode()).hexdigest()[:12]


def test_a_queue_may_run_on_a_machine_of_ones_own():
    write("queue.yaml", "extends: queue_on_machine\nplatforms: mine.yaml\nmachine: {platform: mychip}\n")
    scenario = load("queue.yaml")
    assert scenario.world.sheets["mychip"].core_cpi_factor == 0.6
    assert digest(load("queue.yaml", settings(["platforms.mychip.core_cpi_factor=0.7"]))) != digest(scenario)


def test_the_digest_is_of_what_sheets_say_and_neither_of_comments_nor_of_where_the_file_is(folder):
    first = digest(load("fleet.yaml"))
    (folder / "lab").mkdir()
    write("lab/other.yaml", SHEETS.replace("  # on paper", ""))
    write("fleet.yaml", FLEET.format(file="lab/other.yaml"))
    assert digest(load("fleet.yaml")) == first
    write("lab/other.yaml", SHEETS.replace("0.6", "0.7"))
    assert digest(load("fleet.yaml")) != first


def test_a_file_is_looked_for_beside_the_one_that_names_it_and_from_here_by_the_command_line(folder):
    (folder / "lab").mkdir()
    write("lab/mine.yaml", SHEETS.replace("0.6", "0.5"))
    write("lab/fleet.yaml", FLEET.format(file="mine.yaml"))
    write("child.yaml", "extends: lab/fleet.yaml\n")
    assert load("child.yaml").sheets["mychip"].core_cpi_factor == 0.5
    assert load("child.yaml", settings(["platforms=mine.yaml"])).sheets["mychip"].core_cpi_factor == 0.6


def test_maps_merge_by_name_and_single_values_are_set_and_swept():
    write("child.yaml", "extends: fleet.yaml\nplatforms: {mychip: {cores: 32}, other: {extends: spare}}\n")
    sheets = load("child.yaml").sheets
    assert (sheets["mychip"].cores, sheets["mychip"].core_cpi_factor, sheets["other"].tdp_w) == (32, 0.6, 180.0)
    path = "platforms.mychip.core_cpi_factor"
    assert load("fleet.yaml", settings([f"{path}=0.4"])).sheets["spare"].core_cpi_factor == 0.4
    write("worth.yaml", f"sweep: {{scenario: fleet.yaml, axes: {{{path}: [0.5, 0.7]}}}}\n")
    assert [each.sheets["mychip"].core_cpi_factor for each in load_each("worth.yaml")] == [0.5, 0.7]


def test_in_a_list_a_file_stands_for_its_platforms_and_alone_for_the_list():
    scenario = load("service.yaml")
    assert scenario.platforms == ("piii", "mychip", "spare", "pres")
    assert list(scenario.own_platforms) == ["mychip", "spare"]
    alone_in_it = load("service.yaml", settings(["platforms=mine.yaml", "measured=[spare]"]))
    assert alone_in_it.platforms == ("mychip", "spare")
    chosen = load("service.yaml", settings(["platforms=[piii, spare]", "own_platforms=mine.yaml"]))
    assert (chosen.platforms, chosen.sheets["spare"].cores) == (("piii", "spare"), 64)


@pytest.mark.parametrize("reference", ["fleet.yaml", "service.yaml"])
def test_what_a_report_says_was_asked_asks_it_again_without_the_file(reference, folder):
    scenario = load(reference)
    write("again.yaml", file_of(scenario, "again"))
    (folder / "mine.yaml").unlink()
    assert digest(load("again.yaml")) == digest(scenario)


def test_cells_and_other_processes_know_them():
    scenario = load("fleet.yaml", settings(["cells=2", "recording.loop=null"]))
    cell = pickle.loads(pickle.dumps(alone(scenario, cells(scenario.seed, 2)[1])))
    assert cell.sheets["mychip"] == scenario.sheets["mychip"]


@pytest.mark.parametrize("given", ["text", "path", "map", "platforms", "sheets"])
def test_python_names_a_file_or_gives_the_sheets(given, folder):
    sheets = load("fleet.yaml").sheets
    platforms = {
        "text": "mine.yaml",
        "path": folder / "mine.yaml",
        "map": {"mychip": {"extends": "rome_7742", "core_cpi_factor": 0.6}},
        "platforms": {"mychip": sheets["mychip"]},
        "sheets": {"mychip": sheets["mychip"].sheet},
    }[given]
    scenario = wsc._scenario("small", None, {"platforms": platforms, "feature": {"name": "new", "platforms": NEW}})
    assert scenario.sheets["mychip"].core_cpi_factor == 0.6
    assert replace(scenario.sheets["mychip"], source="") == replace(sheets["mychip"], source="")


@pytest.mark.parametrize(
    ("sheets", "expected"),
    [
        ("", ["mine.yaml:1:1: platforms: is empty"]),
        ("[piii]", ["mine.yaml:1:1: platforms: should be a map of platform names to sheets"]),
        ("mychip: 5", ["mine.yaml:1:9: platforms.mychip: should be a map, got 5"]),
        (
            "mychip: {extends: rome_7742, tdp_w: .nan}",
            ["mine.yaml:1:37: platforms.mychip.tdp_w: should be a finite number, got .nan"],
        ),
        (
            "mychip: {extends: rome_7742, base_frequency_hz: -1, tdp: 5}\nrome_7742: {extends: piii}\n",
            [
                "mine.yaml:1:49: platforms.mychip.base_frequency_hz: should be at least 1e+06, got -1",
                "mine.yaml:1:53: platforms.mychip.tdp: unknown key (did you mean tdp_w?), got 5",
                "mine.yaml:2:1: platforms.rome_7742: is the name of a shipped platform: give yours another",
            ],
        ),
        (
            "mychip: {extends: rome_7742, cores: 65, sockets: 2}",
            ["mine.yaml:1:37: platforms.mychip.cores: should be a multiple of sockets = 2, got 65"],
        ),
    ],
)
def test_faults_of_the_file_are_told_with_their_places_and_all_others_at_once(sheets, expected):
    write("mine.yaml", sheets)
    assert faults("fleet.yaml") == expected
    assert faults("fleet.yaml", "seed=-1") == ["--set: seed: should be at least 0, got -1", *expected]


def test_a_file_that_cannot_be_read_is_told_where_it_is_named():
    write("fleet.yaml", FLEET.format(file="absent.yaml"))
    problem = 'cannot be read: No such file or directory, got "absent.yaml"'
    assert faults("fleet.yaml") == [f"fleet.yaml:2:12: platforms: {problem}"]
    assert faults("service.yaml", "platforms=[piii, absent.yaml]") == [f"--set: platforms: {problem}"]
    with open("mine.yaml", "wb") as file:
        file.write(b"mychip: \xff")
    assert faults("service.yaml") == [
        'service.yaml:2:19: platforms: cannot be read: is not UTF-8, got "mine.yaml"',
    ]


def test_what_is_no_file_and_no_map_is_refused():
    (told,) = faults("small", "platforms=mychip")
    assert "should be the name of a file that ends in .yaml, or a map" in told


def test_unknown_platforms_are_told_with_the_names_of_ones_own():
    wrong = faults("fleet.yaml", "feature.platforms.haswell_2698v3=mychop", "fleet.platforms={haswell_2698v3: 1}")
    assert "known: altra_q80_30" in wrong[0]
    assert ", milan_7763, mychip, " in wrong[0]
    (told,) = faults("service.yaml", "platforms=[piii, mychop, mine.yaml]")
    assert told == '--set: platforms.1: unknown platform (did you mean mychip?), got "mychop"'


def test_faults_of_a_sheet_hide_no_unknown_name_and_cause_none():
    write("mine.yaml", "mychip: {cores: 4}")
    told = faults("fleet.yaml", "fleet.platforms={haswell_2698v3: 0.5, mychip: 0.25, nosuch: 0.25}")
    assert sum("is required" in fault for fault in told) == 7
    assert [fault.partition(": ")[2][:23] for fault in told if "unknown platform" in fault] == [
        "fleet.platforms.nosuch:"
    ]


def test_a_replacing_platform_needs_as_many_threads():
    (told,) = faults("fleet.yaml", "platforms.mychip.cores=16", "fleet.platforms={haswell_2698v3: 1}")
    assert 'should have at least the 64 hardware threads of haswell_2698v3, got "mychip" with 32' in told


@pytest.mark.parametrize("kind", ["service.yaml", "profiled_small"])
def test_a_single_level_of_caches_is_refused_where_misses_of_two_are_counted(kind):
    one = "{mychip: {extends: rome_7742, caches: [{size_bytes: 32768, latency_cycles: 4}]}}"
    sets = (
        [f"platforms=[piii, {one}]"] if kind == "service.yaml" else [f"platforms={one}", "fleet.platforms={mychip: 1}"]
    )
    told = "\n".join(faults(kind, *sets))
    assert "platforms.mychip.caches: should have two levels at least, whose misses are counted, got one" in told


def test_a_platform_of_the_same_name_in_two_files_is_told():
    write("other.yaml", "mychip: {extends: pd4}")
    (told,) = faults("service.yaml", "platforms=[piii, mine.yaml, other.yaml]")
    assert told.endswith('is there twice, got "mychip"')


def test_the_command_ends_with_status_2_and_all_faults():
    write("mine.yaml", "mychip: {extends: rome_7742, cores: 0}\nother: {extends: nosuch}\n")
    ended = CliRunner().invoke(app, ["check", "fleet.yaml"])
    assert ended.exit_code == 2
    assert [line.partition(": ")[0] for line in ended.stderr.splitlines()] == ["mine.yaml:1:37", "mine.yaml:2:18"]
