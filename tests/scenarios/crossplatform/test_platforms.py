"""`wsc platforms`: what it says of spec sheets, and how platforms are picked by name."""

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from models.platforms import PLATFORMS
from scenarios.crossplatform.platforms import PlatformError, Sheets, available, choose, choose_each, platforms
from scenarios.views.terminal import dumps, show

each = pytest.mark.parametrize("name", PLATFORMS)
OWN = "mine: {extends: genoa_9654, tdp_w: 300}\n"


@pytest.fixture
def own(tmp_path):
    file = tmp_path / "own.yaml"
    file.write_text(OWN)
    return file


def printed(sheets):
    text = io.StringIO()
    show(sheets.section(), Console(file=text, width=120))
    return text.getvalue()


@each
def test_what_is_said_of_a_platform_is_what_its_sheet_says(name):
    (said,), sheet = platforms([name]).payload(), PLATFORMS[name]
    assert said["kind"] == "platform"
    assert said["vcpus"] == sheet.cores * sheet.threads_per_core
    assert said["peak_power_w"] == pytest.approx(sheet.idle_power_w + 0.85 * sheet.tdp_w)
    assert said["instruction_cpi"] == pytest.approx(0.85 * sheet.core_cpi_factor)
    fields = {field: getattr(sheet, field) for field in sheet.__slots__ if field != "caches"}
    assert fields.items() <= said.items()
    levels = [(one["level"], one["size_bytes"], one["latency_cycles"], one["cores"]) for one in said["caches"]]
    assert levels == [(f"L{i}", one.size_bytes, one.latency_cycles, one.cores) for i, one in enumerate(sheet.caches, 1)]


def test_no_names_are_all_platforms_in_their_order_and_names_are_taken_in_the_order_given(own):
    assert [one.name for one in platforms().platforms] == list(PLATFORMS)
    assert [one.name for one in platforms(["pres", "piii"]).platforms] == ["pres", "piii"]
    assert [one.name for one in platforms(file=own).platforms] == [*PLATFORMS, "mine"]
    assert [one.tdp_w for one in platforms(["mine", "genoa_9654"], own).platforms] == [300.0, 360.0]


def test_a_source_with_brackets_is_shown_as_it_is():
    sheet = replace(PLATFORMS["piii"], source="data sheet [/2], p. 3 [red]")
    assert "data sheet [/2], p. 3 [red]" in printed(Sheets((sheet,)))


def test_the_payload_is_plain_json():
    assert json.loads(dumps(platforms().payload())) == json.loads(json.dumps(platforms().payload()))


def test_without_a_file_the_shipped_platforms_are_there(own):
    assert available() is PLATFORMS
    assert list(available(own)) == [*PLATFORMS, "mine"]


def test_faults_of_all_groups_come_at_once_and_groups_may_share_a_name():
    with pytest.raises(PlatformError) as caught:
        choose_each([["pii"], ["pres", "vax", "pres"]])
    assert caught.value.names == ("pii", "pres", "vax")
    first, second = choose_each([["piii"], ["pres", "piii"]])
    assert (first, second) == ([PLATFORMS["piii"]], [PLATFORMS["pres"], PLATFORMS["piii"]])


def test_nothing_chosen_is_nothing():
    assert choose([]) == []


def test_all_names_that_are_wrong_are_told_at_once_with_the_nearest_that_are_right():
    with pytest.raises(PlatformError) as caught:
        choose(["xeon_2h_2c_2", "piii", "vax", "piii"])
    assert str(caught.value).splitlines() == [
        'platform "piii" is named twice',
        'there is no platform "xeon_2h_2c_2" (did you mean xeon_2h_2c_2p?)',
        'there is no platform "vax" (wsc platforms lists them)',
    ]
    assert caught.value.names == ("piii", "xeon_2h_2c_2", "vax")


def test_a_name_that_is_unknown_is_told_once_even_if_it_is_there_twice():
    with pytest.raises(PlatformError, match=r'\Athere is no platform "vax" \(known: piii\)\Z'):
        choose(["vax", "vax"], {"piii": PLATFORMS["piii"]})


def test_a_table_has_a_line_for_each_platform_and_its_columns_fit_the_terminal():
    lines = [line.rstrip() for line in printed(platforms()).splitlines()]
    assert [line.split()[0] for line in lines[2:]] == list(PLATFORMS)
    assert max(map(len, lines)) <= 120
    assert lines[2 + list(PLATFORMS).index("pd4")].split() == [
        *("pd4", "4", "×", "2", "8", "3.4", "32K", "4M", "16M", "132", "12.8", "600", "450", "960")
    ]


@each
def test_one_platform_is_shown_with_every_value_and_its_source(name):
    text, sheet = printed(platforms([name])), PLATFORMS[name]
    words = " ".join(text.split())
    assert words.startswith(f"{name}, a configuration of {sheet.variant_of} " if sheet.variant_of else f"{name} ")
    assert f"{sheet.memory_latency_s * 1e9:g} ns" in words
    assert f"{sheet.memory_bandwidth_bytes_per_s / 1e9:g} GB/s" in words
    assert f"TDP {sheet.tdp_w:g} W" in words
    assert sheet.source in words
    assert ("turbo" in words) == (sheet.min_frequency_hz < sheet.max_frequency_hz)
    assert all(f"{cache.latency_cycles:g} cycles" in words for cache in sheet.caches)


@pytest.mark.parametrize(
    ("size_bytes", "shown"), [(500, "500 B"), (2**15, "32 KiB"), (27.5 * 2**20, "27.5 MiB"), (2**41, "2 TiB")]
)
def test_sizes_are_in_the_largest_unit_that_they_fill(size_bytes, shown):
    sheet = replace(PLATFORMS["piii"], memory_bytes=size_bytes)
    memory = next(line for line in printed(Sheets((sheet,))).splitlines() if "GB/s" in line)
    assert memory.split(maxsplit=1)[1].startswith(f"{shown}, ")
