"""Files that pages are written as have the greatest call paths, those of equal functions as one."""

import json
import shlex
from collections import Counter

import pytest

from analysis.profiling.database import Database
from analysis.profiling.query import QueryError
from scenarios.profiling import files
from scenarios.web import exports
from scenarios.web.parameters import RefusedError
from scenarios.web.site import ProfileSite
from tests.helpers.profile_tables import long_form, random_tables, write_folder


def rooted(tables):
    """Return events by path of functions, the application before it."""
    functions = tables["stacks"].merge(tables["locations"], on="location").sort_values(["stack", "depth"])
    paths = functions.groupby("stack")["function"].agg(lambda names: tuple(names)[::-1])
    rows, sums = long_form(tables).query("event == 'cpu_time'"), Counter()
    for application, stack, value in zip(rows["application"], rows["stack"], rows["value"], strict=True):
        sums[application, *paths[stack]] += value
    return sums


@pytest.mark.parametrize("most", [3, 1000])
@pytest.mark.parametrize("count", [1, 2**50])
def test_a_file_for_speedscope_has_the_greatest_call_paths(tmp_path, monkeypatch, most, count):
    monkeypatch.setattr(exports, "_MOST_PATHS", most)
    tables = random_tables(1, rows=400)
    tables["samples"]["count"] *= count
    tables["visits"]["collection"] = "fleet"
    tables["locations"]["function"] = ["main", "größe"] * 6
    content = json.loads(
        exports.speedscope(ProfileSite(write_folder(tmp_path, tables)), [("event", "cpu_time")]).content
    )
    names = [frame["name"] for frame in content["shared"]["frames"]]
    (profile,) = content["profiles"]
    told = [tuple(names[at] for at in sample) for sample in profile["samples"]]
    sums = rooted(tables)
    rows = long_form(tables).query("event == 'cpu_time'")
    assert len(sums) < len(rows[["application", "stack"]].drop_duplicates())
    assert [sums[path] for path in told] == profile["weights"] == sorted(sums.values(), reverse=True)[:most]
    assert len(set(told)) == len(told) == min(most, len(sums))
    assert (f", the {most} greatest of {len(sums)} call paths" in content["name"]) == (most < len(sums))


def alike(tables):
    """Return tables in which every sample stands for as much, and every place is a function of its own."""
    tables["samples"]["count"], tables["rates"]["period"], tables["rates"]["duty"] = 1, 1, 1
    tables["visits"]["weight"] = 1
    tables["locations"]["function"] = [f"f{number:02}" for number in range(len(tables["locations"]))][::-1]
    return tables


def test_call_paths_of_one_value_are_in_order_of_root_frames_and_stacks(tmp_path):
    tables = alike(random_tables(2, rows=90))
    content = json.loads(
        exports.speedscope(ProfileSite(write_folder(tmp_path, tables)), [("event", "cpu_time")]).content
    )
    names, (profile,) = [frame["name"] for frame in content["shared"]["frames"]], content["profiles"]
    functions = tables["stacks"].merge(tables["locations"], on="location").sort_values(["stack", "depth"])
    paths = functions.groupby("stack")["function"].agg(lambda frames: tuple(frames)[::-1])
    number = {path: stack for stack, path in paths.items()}
    rows = [tuple(names[at] for at in sample) for sample in profile["samples"]]
    keys = [(-weight, path[0], number[path[1:]]) for path, weight in zip(rows, profile["weights"], strict=True)]
    assert len(number) == len(paths)
    assert keys == sorted(keys)
    assert len(set(profile["weights"])) < len({path[0] for path in rows}) * len(paths) / 2


@pytest.mark.parametrize(
    ("export", "read"),
    [(exports.pprof, "code"), (exports.folded, "locations_on"), (exports.speedscope, "frames_on")],
)
def test_files_that_change_while_they_are_exported_are_refused(tmp_path, monkeypatch, export, read):
    folder, reading = write_folder(tmp_path, random_tables(1)), getattr(Database, read)

    def replaced_before(*given):
        write_folder(tmp_path, random_tables(2))
        return reading(*given)

    site = ProfileSite(folder)
    monkeypatch.setattr(Database, read, replaced_before)
    with pytest.raises(QueryError, match="changed while"):
        export(site, [("event", "cpu_time")])


def test_a_file_of_an_event_without_call_paths_has_none(tmp_path):
    site = ProfileSite(write_folder(tmp_path, random_tables(1)))
    (profile,) = json.loads(exports.speedscope(site, [("event", "cycles")]).content)["profiles"]
    assert (profile["samples"], profile["weights"], profile["endValue"]) == ([], [], 0)


@pytest.mark.parametrize(
    ("export", "form", "more"),
    [
        (exports.pprof, "pprof", []),
        (exports.folded, "folded", ["--weighted"]),
        (exports.speedscope, "speedscope", ["--weighted"]),
    ],
)
def test_what_a_page_has_no_room_for_is_written_by_the_command_that_it_names(tmp_path, monkeypatch, export, form, more):
    tables = random_tables(1, rows=400)
    tables["locations"]["function"] = ["f(int, char)", "main"] * 6
    folder = write_folder(tmp_path / "a run", tables)
    pairs = [("event", "cpu_time"), ("where", "function=f(int, char)"), ("where", "function=main")]
    whole = export(ProfileSite(folder), pairs).content
    monkeypatch.setattr("analysis.profiling.formats.extract.MOST_ROWS", 3)
    with pytest.raises(RefusedError, match=r"more than 3 call paths and places take over \d+ MB in a page") as caught:
        export(ProfileSite(folder), pairs)
    (problem,) = caught.value.problems
    words, out = shlex.split(problem.partition("write it by: ")[2]), tmp_path / "out"
    asks = ["wsc", "profile", "export", str(folder), "--format", form, "--event", "cpu_time", "--where"]
    assert (words[:9], words[10:-1]) == (asks, [*more, "--out"])
    files.export([folder], form, out, files.ExportSelection("cpu_time", (words[9],), weighted=bool(more)))
    if form == "folded":
        assert out.read_bytes() == whole
