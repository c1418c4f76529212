"""Labels as dimensions, files that are added or left out, and machines named by labels or by files' names."""

import json
import os
import re
import subprocess
import sys
import weakref
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from threading import Event, Thread

import pandas as pd
import pyarrow.parquet as pq
import pytest

import wsc
from analysis.profiling.database import Database
from analysis.profiling.formats import wire
from analysis.profiling.formats.columns import SampleTable
from analysis.profiling.formats.fleet import drawn
from analysis.profiling.formats.foreign import Frame, Measure
from analysis.profiling.formats.pprof import read_pprof
from analysis.profiling.formats.pprof_writing import write_pprof
from analysis.profiling.formats.reading import Contents, read_foreign
from analysis.profiling.formats.tables import ProfileStore, to_tables, write_tables
from analysis.profiling.query import Query, QueryError
from analysis.profiling.storage import ProfileError
from scenarios.commands.app import app
from scenarios.files.faults import FaultsError
from scenarios.files.options import PointInTime
from scenarios.profiling.files import ExportSelection, export, import_files
from scenarios.profiling.query import QueryOptions, diff, query
from scenarios.web.application import application
from tests.helpers.foreign_profiles import profile_of
from tests.helpers.web_pages import ask, harmless


def labelled(*samples):
    """Return pprof bytes of samples: value, then labels as name and text or number."""
    names = dict.fromkeys(["", "cpu", "ns", "f"])
    for _, labels in samples:
        names |= dict.fromkeys(text for pair in labels.items() for text in pair if isinstance(text, str))
    at = {name: number for number, name in enumerate(names)}
    data = b"".join(wire.bytes_field(6, name.encode()) for name in names)
    data += wire.bytes_field(1, wire.number_field(1, at["cpu"]) + wire.number_field(2, at["ns"]))
    data += wire.bytes_field(5, wire.number_field(1, 1) + wire.number_field(2, at["f"]))
    data += wire.bytes_field(4, wire.number_field(1, 1) + wire.bytes_field(4, wire.number_field(1, 1)))
    for value, labels in samples:
        of = b"".join(
            wire.bytes_field(
                3,
                wire.number_field(1, at[key])
                + wire.number_field(*((2, at[text]) if isinstance(text, str) else (3, text))),
            )
            for key, text in labels.items()
        )
        data += wire.bytes_field(2, wire.packed_field(1, [1]) + wire.packed_field(2, [value]) + of)
    return data


def shares(folder, by, where=()):
    with Database([folder]) as database:
        return database.query(Query("cpu", (by,), where))[[by, "value"]].to_numpy().tolist()


def write(folder, name, value):
    path = folder / name
    path.write_bytes(write_pprof(profile_of([Measure("cpu", "ns", 10)], [((Frame("f"), Frame("main")), (value,))])))
    return path


def test_any_label_can_be_grouped_and_restricted_by(tmp_path):
    """Labels of any name, quotes and numbers included; samples without one have an empty value."""
    odd = 'it\'s "odd"'
    samples = [(30, {"pod": "a", odd: "x"}), (20, {"pod": "b", "size": 7}), (5, {})]
    write_tables(to_tables([read_pprof(labelled(*samples))]), tmp_path)
    assert shares(tmp_path, "label.pod") == [["a", 30], ["b", 20], ["", 5]]
    assert shares(tmp_path, f"label.{odd}") == [["", 25], ["x", 30]][::-1]
    assert shares(tmp_path, "label.size", (("label.pod", ("b",)),)) == [["7", 20]]
    assert shares(tmp_path, "function", (("label.pod", ("a", "b")),)) == [["f", 50]]
    with Database([tmp_path]) as database:
        assert database.labels() == [odd, "pod", "size"]
        assert database.values("label.pod") == ["", "a", "b"]
        assert database.callers("f", Query("cpu", ("label.pod",)))["label.pod"].tolist() == ["a", "b", ""]
        with pytest.raises(QueryError, match='unknown label "pot"; did you mean pod'):
            database.query(Query("cpu", ("label.pot",)))
        with pytest.raises(QueryError, match=r'unknown label\.pod "c"'):
            database.query(Query("cpu", ("function",), (("label.pod", ("c",)),)))
    pages = application(tmp_path)
    page = harmless(ask(pages, "/query?by=label.pod"))
    assert {"a", "b"} <= set(page.said)
    assert ask(pages, "/flame.json?by=label.pod").json()["value"] == 55


def test_labels_of_several_folders_stay_with_their_processes(tmp_path):
    for name, value in (("one", 3), ("two", 4)):
        (tmp_path / name).mkdir()
        write_tables(to_tables([read_pprof(labelled((value, {"pod": name})))]), tmp_path / name)
    with Database([tmp_path / "one", tmp_path / "two"]) as database:
        table = database.query(Query("cpu", ("label.pod",)))
        assert table[["label.pod", "value"]].to_numpy().tolist() == [["two", 4], ["one", 3]]


def test_a_label_that_names_each_sample_is_left_out(monkeypatch):
    monkeypatch.setattr("analysis.profiling.formats.pprof_samples.MOST_LABEL_VALUES", 3)
    profile = read_pprof(labelled(*((1, {"span": f"s{at}", "pod": "a"}) for at in range(9))))
    assert profile.notes == ("labels of over 3 values are left out: span",)
    assert [origin.labels for origin in profile.origins] == [(("pod", "a"),)]


def test_machines_and_services_come_from_labels_or_names(tmp_path):
    files = [tmp_path / name for name in ("web-1.pb", "web-2.pb", "db-1.pb")]
    for at, file in enumerate(files):
        file.write_bytes(labelled((10 + at, {"pod": f"p{at % 2}"})))
    import_files(files, tmp_path / "made", machine_from="label.pod", service_from="{}-*.pb")
    assert shares(tmp_path / "made", "application") == [["web", 21], ["db", 12]]
    with Database([tmp_path / "made"]) as database:
        assert database.query(Query("cpu", ("machine",)))["value"].tolist() == [22, 11]
    for source, problem in (
        ("label.node", "labels: should have node, got pod"),
        ("{}.gz", "name: should match {}.gz, got web-1.pb"),
        ("pod", "--machine-from: should be label.NAME, file or a pattern"),
    ):
        with pytest.raises(ValueError, match=r".") as caught:
            import_files(files, tmp_path / "none", machine_from=source)
        assert problem in str(caught.value)


def test_added_files_have_their_machines_and_services_from_where_the_earlier_ones_have_them(tmp_path):
    """Those that were added without the options were of no machine and of the service of their image."""
    for name, value in (("web1-search.pb", 3), ("web2-search.pb", 4), ("web1-cart.pb", 5)):
        write(tmp_path, name, value)
    made = tmp_path / "made"
    import_files([tmp_path / "web1-search.pb"], made, machine_from="{}-*.pb", service_from="*-{}.pb")
    import_files(sorted(tmp_path.glob("*.pb")), made, append=True)
    assert sorted(shares(made, "application")) == [["cart", 5], ["search", 7]]
    assert sorted(value for _, value in shares(made, "machine")) == [4, 8]


def many(folder):
    """Six files of unlike periods, events, labels and depths, of which one is a copy and one is broken."""
    measures = [Measure("samples"), Measure("cpu", "ns", 10)], [Measure("cpu", "ns", 15)], [Measure("alloc", "bytes")]
    for at in range(4):
        kinds = measures[at % 3]
        stacks = [
            (tuple(Frame(f"f{(depth * 7 + row) % 5}", f"lib{at % 2}.so") for depth in range(row % 4)), row + at)
            for row in range(9)
        ]
        values = [(path, tuple(30 * number for _ in kinds)) for path, number in stacks]
        (folder / f"{at}.pb").write_bytes(write_pprof(profile_of(kinds, values)))
    (folder / "4.pb").write_bytes((folder / "1.pb").read_bytes())
    (folder / "5.folded").write_text("main;f 3\nmain;f x\n")
    return [folder / name for name in ("0.pb", "1.pb", "2.pb", "3.pb", "4.pb", "5.folded")]


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4, 5), (5, 4, 3, 2, 1, 0), (2, 5, 0, 4, 1, 3)])
def test_files_that_are_read_one_by_one_become_the_tables_of_all(tmp_path, monkeypatch, order):
    """Samples and stacks are written in parts, here of three rows, and no file is held beside the next."""
    files, readable = [many(tmp_path)[at] for at in order], [many(tmp_path)[at] for at in order if at != 5]
    contents = Contents()
    copies = {profile.name: contents.note(profile) for profile in map(read_foreign, readable)}
    profiles = [profile for profile in map(read_foreign, readable) if not copies[profile.name]]
    past, add = [], ProfileStore.add

    def add_alone(store, profile):
        assert not any(earlier() is not None for earlier in past)
        past.append(weakref.ref(SampleTable.of(profile.samples).stack))
        add(store, profile)

    monkeypatch.setattr(ProfileStore, "add", add_alone)
    monkeypatch.setattr("analysis.profiling.formats.tables.ROW_GROUP_ROWS", 3)
    monkeypatch.setattr("analysis.profiling.formats.tables._GROUP_ROWS", 3)
    imported = import_files(files, tmp_path / "imported")
    assert imported.notes[1:-1] == [note for note in copies.values() if note]
    assert "5.folded:2: count" in imported.notes[0]
    monkeypatch.undo()
    (tmp_path / "whole").mkdir()
    write_tables(to_tables(profiles), tmp_path / "whole")
    assert_same_tables(tmp_path / "imported", tmp_path / "whole")
    (tmp_path / "weighted").mkdir()
    write_tables(drawn(to_tables(profiles), machines=40, equal=True), tmp_path / "weighted")
    import_files(files, tmp_path / "drawn", machines=40, equal_lengths=True)
    assert_same_tables(tmp_path / "drawn", tmp_path / "weighted")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == [
        "drawn",
        "imported",
        "weighted",
        "whole",
    ]


def assert_same_tables(first, second):
    names = sorted(path.name for path in second.iterdir())
    assert sorted(path.name for path in first.glob("*.parquet")) == names
    for name in names:
        pd.testing.assert_frame_equal(pd.read_parquet(first / name), pd.read_parquet(second / name))


def test_files_without_the_name_that_is_asked_for_are_all_told(tmp_path):
    files = [write(tmp_path, name, 10 * at) for at, name in enumerate(("a.pb", "b-1.pb", "c.pb"), 1)]
    with pytest.raises(ValueError, match="name: should match") as caught:
        import_files(files, tmp_path / "imported", machine_from="{}-*.pb")
    assert [line.partition(": ")[0] for line in str(caught.value).splitlines()] == [str(files[at]) for at in (0, 2)]


def test_a_file_that_cannot_be_read_is_told_and_left_out(tmp_path):
    good, bad = write(tmp_path, "good.pb", 30), tmp_path / "bad.folded"
    bad.write_text("main;f 3\nmain;f x\n")
    imported = import_files([bad, good, tmp_path / "none"], tmp_path / "made")
    assert [total.value for total in imported.totals] == [30]
    assert [note.partition(": ")[0] for note in imported.notes] == ["left out", "left out"]
    assert "bad.folded:2: count: should be a number" in imported.notes[0]
    with pytest.raises(ValueError, match=r"bad\.folded:2: count"):
        import_files([bad], tmp_path / "other")


def test_files_whose_counts_are_all_zero_are_told(tmp_path, capsys):
    """The import said nothing, and a query that there are no samples."""
    files = [write(tmp_path, name, value) for name, value in (("a.pb", 0), ("b.pb", 10), ("c.pb", 0))]
    zero = "no samples: all counts are zero"
    assert [note for note in import_files(files[1:2], tmp_path / "b").notes if zero in note] == []
    assert f"{files[0]}: {zero}" in import_files(files[:2], tmp_path / "ab").notes
    assert run(["profile", "import", *map(str, files[::2]), "--out", str(tmp_path / "ac")], capsys)[1].count(zero) == 1
    assert "all counts are zero" in run(["profile", "query", str(tmp_path / "ac")], capsys)[1]


def test_an_import_can_be_added_to_and_repeated(tmp_path):
    """In two steps as in one: equal sums, a collection a file, a number a machine; a repetition changes nothing."""
    files = [write(tmp_path, f"{name}.pb", 10 * (at + 1)) for at, name in enumerate("abcd")]
    whole, steps = tmp_path / "whole", tmp_path / "steps"
    names = {"machine_from": "file"}
    import_files(files, whole, **names)
    import_files(files[:2], steps, **names)
    again = import_files([*files[1:], files[0]], steps, append=True, **names)
    assert [total.value for total in again.totals] == [30, 40]
    assert again.notes[:2] == [f"{files[at]}: left out: it was imported before, as {files[at].name}" for at in (1, 0)]
    for by in ("collection", "machine", "function"):
        assert shares(steps, by) == shares(whole, by)
    before = {path.name: path.read_bytes() for path in steps.iterdir()}
    assert import_files(files, steps, append=True, **names).totals == []
    assert {path.name: path.read_bytes() for path in steps.iterdir()} == before
    (tmp_path / "e").mkdir()
    import_files([write(tmp_path / "e", "a.pb", 70)], steps, append=True, **names)
    assert ["a.pb (2)", 70] in shares(steps, "collection")
    with Database([steps]) as database:  # Another profile of the machine a.
        assert database.query(Query("cpu", ("machine",)))["value"].tolist() == [80, 40, 30, 20]


def test_the_call_paths_of_added_files_are_their_own(tmp_path):
    """Numbers of call paths go on where those of the earlier import end."""
    paths = {"a": (("f", "main"), ("g", "main")), "b": (("h", "other", "start"), ("f", "main"))}
    for name, stacks in paths.items():
        samples = [(tuple(map(Frame, stack)), (10,)) for stack in stacks]
        (tmp_path / f"{name}.pb").write_bytes(write_pprof(profile_of([Measure("cpu", "ns", 10)], samples)))
        import_files([tmp_path / f"{name}.pb"], tmp_path / "steps", append=name == "b")
    export([tmp_path / "steps"], "folded", tmp_path / "steps.folded")
    assert (tmp_path / "steps.folded").read_text().splitlines() == ["main;f 2", "main;g 1", "start;other;h 1"]


def test_two_imports_into_one_folder_wait_for_each_other(tmp_path):
    """Both said that they had added their file, and one was lost; one that is interrupted is waited for no more."""
    files, folder = [write(tmp_path, f"{n}.pb", 10 * n) for n in (1, 2, 3)], tmp_path / "imports" / "both"
    reached, finished = Event(), Event()

    def interrupted(*_):
        raise KeyboardInterrupt

    def later(*_):
        reached.set()
        assert finished.wait(20)

    second = Thread(target=import_files, args=(files[2:], folder, later), kwargs={"append": True})

    def first(*_):
        if second.ident is None:
            second.start()
            assert reached.wait(20)

    with pytest.raises(KeyboardInterrupt):
        import_files(files[:1], folder, interrupted)
    assert not folder.parent.exists()
    import_files(files[:1], folder)
    import_files(files[1:2], folder, first, append=True)
    finished.set()
    second.join()
    assert len(json.loads((folder / "import.json").read_text())["files"]) == 3
    assert shares(folder, "function") == [["f", 60]]
    assert [path.name for path in folder.parent.iterdir()] == ["both"]


def test_an_import_without_a_lock_says_so(tmp_path, monkeypatch):
    def none(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("scenarios.runs.disk.fcntl.flock", none)
    imported = import_files([write(tmp_path, "a.pb", 10)], tmp_path / "fleet")
    assert (
        f"the file system of {tmp_path / 'fleet'} has no locks: of two imports at once one may be lost"
        in imported.notes
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pb", "fleet"]


def test_drawn_machines_can_be_added_to(tmp_path):
    files = [write(tmp_path, f"{name}.pb", 10 * (at + 1)) for at, name in enumerate("abcd")]
    import_files(files, tmp_path / "whole", machines=80)
    import_files(files[:2], tmp_path / "steps", machines=80)
    assert shares(tmp_path / "steps", "collection") == [["fleet", 30 * 40]]
    import_files(files[2:], tmp_path / "steps", append=True)
    for by in ("collection", "visit", "function"):
        assert shares(tmp_path / "steps", by) == shares(tmp_path / "whole", by)
    assert shares(tmp_path / "steps", "collection") == [["fleet", 100 * 20]]


def test_only_a_folder_of_imported_files_is_added_to(tmp_path):
    file = write(tmp_path, "a.pb", 10)
    import_files([file], tmp_path / "made")
    with pytest.raises(FaultsError, match=r"is already there: .*; --append adds files to it"):
        import_files([file], tmp_path / "made")
    with pytest.raises(FaultsError, match="is no folder that files were imported into"):
        import_files([file], tmp_path, append=True)


def test_machines_of_an_import_go_by_their_names(tmp_path):
    """Answers had numbers, whose names stood in import.json alone; machines without a name keep them, in brackets."""
    files = [write(tmp_path, f"{name}.pb", 10 * at) for at, name in enumerate(("web-1", "web-2", "db-1"), 1)]
    import_files(files[:2], tmp_path / "made", machine_from="{}.pb")
    made = [tmp_path / "made"]
    assert shares(made[0], "machine") == [["web-2", 20], ["web-1", 10]]
    assert shares(made[0], "function", (("machine", ("web-2",)),)) == [["f", 20]]
    with Database(made) as database:
        assert database.values("machine") == ["web-1", "web-2"]
        assert database.table("visits")["machine"].tolist() == [0, 1]
    rows = query(made, QueryOptions(by="machine,function", where=("machine=web-1,web-2",)))
    assert rows.payload()["rows"][0] | {"share": 0} == {
        "machine": "web-2",
        "function": "f",
        "samples": 2,
        "value": 20,
        "share": 0,
    }
    for name, near in (("web-3", "did you mean web-2 or web-1?"), ("0", "there are web-1, web-2")):
        with pytest.raises(FaultsError, match=rf'^--where: unknown machine "{name}"; {re.escape(near)}$'):
            query(made, QueryOptions(where=(f"machine={name}",)))
        with pytest.raises(FaultsError, match=rf'--where-a: unknown machine "{name}"; '):
            diff(made, made, QueryOptions(), (f"machine={name}",), ("machine=web-1",))
        with pytest.raises(FaultsError, match=rf'^--where: unknown machine "{name}"; '):
            export(made, "folded", tmp_path / "x", ExportSelection(where=(f"machine={name}",)))
    page = harmless(ask(application(made[0]), "/query?by=machine&where=machine%3Dweb-1"))
    assert "web-1" in page.said
    assert ask(application(made[0]), "/flame.json?by=machine&where=machine%3Dweb-2").json()["value"] == 20
    import_files(files[2:], tmp_path / "none")
    with Database([*made, tmp_path / "none"]) as database:
        table = database.query(Query("cpu", ("machine",)))
        assert table["machine"].tolist() == ["[0]", "web-2", "web-1"]
    assert shares(tmp_path / "none", "machine") == [[0, 30]]


def test_one_machine_has_one_name_in_two_imports(tmp_path):
    for at, names in enumerate((("web1", "web2"), ("web2", "web1"))):
        files = [write(tmp_path, f"{name}-{at}.pb", 10 * (number + 2 * at)) for number, name in enumerate(names, 1)]
        import_files(files, tmp_path / str(at), machine_from="{}-*.pb")
    with Database([tmp_path / "0", tmp_path / "1"]) as database:
        table = database.query(Query("cpu", ("machine",)))
    assert table[["machine", "value"]].to_numpy().tolist() == [["web1", 10 + 40], ["web2", 20 + 30]]


@pytest.mark.parametrize("content", ["{", '{"machines": {"a": "b"}}', '{"machines": []}', '{"origin_s": "now"}'])
def test_a_damaged_record_of_an_import_is_a_fault(tmp_path, content):
    import_files([write(tmp_path, "a.pb", 10)], tmp_path / "made")
    (tmp_path / "made" / "import.json").write_text(content)
    with pytest.raises(ProfileError, match="made"):
        Database([tmp_path / "made"])


def timed(folder, name, value, start_s):
    path = folder / name
    profile = profile_of([Measure("cpu", "ns", 10)], [((Frame("f"), Frame("main")), (value,))])
    path.write_bytes(write_pprof(replace(profile, start_s=start_s)))
    return path


MAY_S = 1777593600.0
"""2026-05-01T00:00Z."""


def test_days_of_an_import_have_dates(tmp_path, small_profile, capsys):
    """The day before the first file's is none of its calendar; times of which no calendar has a date have none."""
    for name, first_s in (("made", MAY_S), ("other", MAY_S - 86_400), ("far", 4e11)):
        files = [timed(tmp_path, f"{name}-{hour}.pb", 10 * hour, first_s + 3600 * hour) for hour in (6, 30)]
        import_files(files, tmp_path / name)
    assert shares(tmp_path / "made", "date") == [["2026-05-02", 300], ["2026-05-01", 60]]
    assert shares(tmp_path / "made", "function", (("date", ("2026-05-01",)),)) == [["f", 60]]
    with Database([tmp_path / "made", tmp_path / "other"]) as database:
        sums = dict(database.query(Query("cpu", ("date",)))[["date", "value"]].to_numpy().tolist())
    assert sums == {"2026-04-30": 60, "2026-05-01": 60 + 300, "2026-05-02": 300}
    assert shares(tmp_path / "far", "date") == [["[none]", 360]]
    with Database([small_profile]) as database:
        assert database.values("date") == ["[none]"]
    code, printed = run(["profile", "query", str(tmp_path / "made"), "--where", "date=2026-05-03"], capsys)
    assert code == 2
    assert '"2026-05-03"; did you mean' in printed
    assert "2026-05-02" in harmless(ask(application(tmp_path / "made"), "/query?by=date")).said


def test_python_asks_for_points_in_time(tmp_path):
    """Times were seconds from the beginning alone, which the text of an answer does not say."""
    files = [timed(tmp_path, f"{hour}.pb", 10 * hour, MAY_S + 3600 * hour) for hour in (6, 7, 12, 30)]
    import_files(files, tmp_path / "made", machine_from="file")
    profile = wsc.profile(tmp_path / "made")
    noon = profile.regress(at="2026-05-01T12:00Z").payload()
    assert noon["samples"] == {"before": 6 + 7, "after": 12 + 30}
    zone = timezone(timedelta(hours=2))
    for at in (43_200.0, "12h", datetime(2026, 5, 1, 12), datetime(2026, 5, 1, 14, tzinfo=zone), MAY_S + 43_200):
        assert profile.regress(at=at).payload() == noon
    with pytest.raises(FaultsError, match=r"^at: should be a time such as"):
        profile.regress(at="noon")
    with pytest.raises(
        FaultsError, match=r"^at: should be seconds from the beginning, a text such as 7d, or a datetime, "
    ):
        profile.regress(at=[1.0])
    with pytest.raises(FaultsError, match=r"^until: should be after since, 2026-05-02T00:00Z"):
        profile.watch(since=datetime(2026, 5, 2), until="2026-05-01")


def test_times_of_an_import_may_be_points_in_time(tmp_path, capsys):
    """Without a zone they are UTC; answers about imports tell such, no offsets."""
    hours = {"a.pb": 6, "b.pb": 12, "c.pb": 30}
    files = [timed(tmp_path, name, 10 * hour, MAY_S + 3600 * hour) for name, hour in hours.items()]
    import_files(files, tmp_path / "made")
    for since, until, value in (
        ("2026-05-01T12:00Z", None, 120 + 300),
        ("2026-05-01 14:00+02:00", "2026-05-02", 120),
        ("2026-05-01T13:00+02:00", "30h", 120),
        ("12h", "2026-05-02T06:00:00Z", 120),
        (None, "2026-05-01T12:00", 60),
        (f"{MAY_S + 43_200:.0f}", f"{MAY_S + 86_400:.0f}000", 120),
    ):
        ends = [option for pair in (("--since", since), ("--until", until)) if pair[1] for option in pair]
        for paths in ([tmp_path / "made"], files):
            code, printed = run(["profile", "query", *map(str, paths), "--json", *ends], capsys)
            assert code == 0
            assert json.loads(printed)["total"]["value"] == value
    made = str(tmp_path / "made")
    for options, problem in (
        (
            ["--since", "2026-05-09"],
            "--since: leaves no samples of cpu: visits are from 2026-05-01T06:00Z to 2026-05-02T06:00Z, "
            'got "2026-05-09T00:00Z"',
        ),
        (["--since", "2d", "--until", "2026-05-02"], "--until: until should be after since, 2026-05-03T00:00Z"),
        (["--since", "2026-05-32"], "--since: should be a time such as 36h, 2d or 86400 (seconds), or for imported"),
        (["--until", "nan"], "--until: should be a time such as"),
        (["--since", "1e300"], "--since: should be a time such as"),
        (["--since", "99999999999d"], "visits are from 2026-05-01T06:00Z to 2026-05-02T06:00Z, got 99999999999d"),
        (["--until", "May"], "--until: should be a time such as"),
    ):
        code, printed = run(["profile", "query", made, *options], capsys)
        assert code == 2
        assert problem.replace('"', "") in printed.replace('"', "")
    pages = application(tmp_path / "made")
    assert ask(pages, "/flame.json?since=2026-05-01T12:00Z&until=2026-05-02").json()["value"] == 120
    for path in (
        "/watch?since=2026-05-01T12:00Z",
        "/diff?a=until=2026-05-02&b=since=2026-05-02T00:00",
        "/query?until=2d",
    ):
        assert ask(pages, path).status == 200
    code, printed = run(["profile", "watch", made, "--since", "2026-06-01"], capsys)
    assert code == 2
    assert "should be at most 2026-05-02T06:00Z, when the last visit began, got" in printed


def test_points_in_time_of_several_imports_are_those_of_one_calendar(tmp_path):
    """Each counts from its own first day; together they count from the earliest."""
    for name, day in (("late", 4), ("early", 1)):
        file = timed(tmp_path, f"{name}.pb", 10 * day, MAY_S + 86400 * day + 3600)
        import_files([file], tmp_path / name)
    both = [tmp_path / "late", tmp_path / "early"]
    with Database(both) as database:
        assert database.origin_s == MAY_S + 86400
        assert database.table("visits")["start_s"].tolist() == [3 * 86400 + 3600, 3600]
    point = PointInTime(MAY_S + 2 * 86400)
    assert query(both, QueryOptions(since_s=point)).total.value == 40
    assert query(both, QueryOptions(until_s=point)).total.value == 10
    changed = diff(both[:1], both[1:], QueryOptions(until_s=PointInTime(MAY_S + 5 * 86400)), (), ())
    assert (changed.a.total.value, changed.b.total.value) == (40, 10)


@pytest.mark.parametrize("command", ["query --since", "query --until", "watch --until", "regress --at"])
def test_a_profile_without_a_calendar_has_no_points_in_time(tmp_path, capsys, command):
    import_files([write(tmp_path, "a.pb", 10)], tmp_path / "made")
    for folder in (tmp_path / "made", simulated(tmp_path / "run")):
        name, option = command.split()
        code, printed = run(["profile", name, str(folder), option, "2026-05-01T12:00Z"], capsys)
        assert code == 2
        assert f"{option}: should be a time from the beginning, such as 36h or 2d: only imported files" in printed


def test_a_page_of_a_profile_without_a_calendar_has_no_points_in_time(tmp_path):
    for path, option in (("/query?since=2026-05-01", "since"), ("/diff?a=until=2026-05-01", "until")):
        answer = ask(application(simulated(tmp_path / option)), path)
        assert answer.status == 400
        assert f"{option}: should be a time from the beginning, such as 36h or 2d" in answer.text


def simulated(folder):
    """Return a folder of a profile that no file was imported into."""
    folder.mkdir()
    write_tables(to_tables([read_pprof(labelled((30, {})))]), folder)
    return folder


def run(arguments, capsys):
    """Return the exit status of a command, and what it prints."""
    with pytest.raises(SystemExit) as ended:
        app(arguments, prog_name="wsc")
    printed = capsys.readouterr()
    return ended.value.code, printed.out + printed.err


STACKS = 200_000
BYTES_PER_STACK = 940e6 / 4e6
"""What docs/profiling.md says of four million."""
PEAK = """
import sys
from pathlib import Path
from scenarios.profiling.files import import_files
folder = Path(sys.argv[1])
for name in ("few", "many"):
    import_files([folder / f"{name}.folded"], folder / name)
    print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""
"""Most memory so far after each import, in KiB; `ru_maxrss` would begin with that of the process that starts this."""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_memory_for_distinct_folded_stacks_is_what_the_documents_say(tmp_path):
    """Twice that for each stack, and 64 MB for what a first file of this size loads and for its buffers."""

    def line(number):
        functions = number % 50, number // 50 % 400, number // 20_000, number * 7_919 % 3_000
        return ";".join(f"h_{function}" for function in functions) + f" {number % 8 + 1}\n"

    for name, count in (("few", 10), ("many", STACKS)):
        (tmp_path / f"{name}.folded").write_text("".join(map(line, range(count))))
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", PEAK, tmp_path]
    done = subprocess.run(
        command, cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, text=True, check=True
    )
    few, many = (int(peak) * 1024 for peak in done.stdout.split())
    assert len(pq.read_table(tmp_path / "many" / "stacks.parquet", columns=["stack"])["stack"].unique()) == STACKS
    assert many - few < 64e6 + 2 * BYTES_PER_STACK * STACKS
