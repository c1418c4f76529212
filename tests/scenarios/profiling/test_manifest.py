"""A manifest says of files where and when each was taken; its faults come all at once, each with its place."""

import json
import os

import pytest

from analysis.profiling.database import Database
from analysis.profiling.formats.pprof_writing import write_pprof
from analysis.profiling.query import Query
from analysis.tables.faults import FileError
from models.errors import InputError
from scenarios.commands.app import app
from scenarios.files.faults import FaultsError
from scenarios.profiling.files import import_files
from tests.helpers.foreign_profiles import Frame, Measure, profile_of

MAY_S = 1777593600.0
"""2026-05-01T00:00Z."""


def write(folder, name, value):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(write_pprof(profile_of([Measure("cpu", "ns", 10)], [((Frame("f"), Frame("main")), (value,))])))
    return path


def manifest(folder, *lines):
    path = folder / "manifest.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def shares(folder, by):
    with Database([folder]) as database:
        return dict(database.query(Query("cpu", (by,)))[[by, "value"]].itertuples(index=False, name=None))


def visits(folder):
    with Database([folder]) as database:
        return database.table("visits")[["start_s", "length_s"]].to_numpy().tolist(), database.origin_s


def test_a_manifest_says_where_and_when_files_were_taken(tmp_path):
    """Paths are relative to it; equal files of two machines are two; an empty cell is as the file says."""
    for name, value in (("one.pb", 30), ("two.pb", 30), ("three.pb", 50)):
        write(tmp_path / "day", name, value)
    table = manifest(
        tmp_path,
        "file,machine,service,start,duration_s,rack,label.team",
        "day/one.pb,web-1,search,2026-05-01T06:00Z,10,r1,core",
        f"day/two.pb,web-2,search,{MAY_S + 7200},,r2,",
        "day/three.pb,web-1,cart,2026-05-01 10:00+02:00,20.5,r1,shop",
    )
    made = tmp_path / "made"
    assert import_files([], made, manifest=table).notes[0] == "column rack became label label.rack"
    assert shares(made, "machine") == {"web-1": 80, "web-2": 30}
    assert shares(made, "application") == {"search": 60, "cart": 50}
    assert shares(made, "label.rack") == {"r1": 80, "r2": 30}
    assert shares(made, "label.team") == {"core": 30, "": 30, "shop": 50}
    assert visits(made) == ([[6 * 3600.0, 10.0], [2 * 3600.0, 0.0], [8 * 3600.0, 20.5]], MAY_S)


def test_columns_that_became_labels_are_told_and_what_they_may_be_meant_for(tmp_path):
    """A mistyped column was a label without a word."""
    write(tmp_path, "a.pb", 10)
    for header, notes in (
        ("file,machine", []),
        ("file,label.machne", []),
        ("file,machine,Machines,label.x", ["column Machines became label label.Machines"]),
        (
            "file,Machne,rack,device,strat,durations",
            [
                "columns Machne, rack, device, strat, durations became labels label.Machne, label.rack, label.device, "
                "label.strat, label.durations",
                "column Machne: did you mean machine?",
                "column strat: did you mean start?",
                "column durations: did you mean duration_s?",
            ],
        ),
    ):
        table = manifest(tmp_path, header, "a.pb" + ",x" * header.count(","))
        told = import_files([], tmp_path / header, manifest=table).notes
        assert [note for note in told if note.startswith("column")] == notes


def test_a_manifest_counts_more_than_the_options(tmp_path):
    """Names of files that the pattern does not match are no fault where the manifest says the machine."""
    write(tmp_path, "a-1.pb", 10), write(tmp_path, "b.pb", 20)
    table = manifest(tmp_path, "file,machine,rack", "a-1.pb,,r7", "b.pb,web-9,r8")
    import_files([], tmp_path / "made", machine_from="{}-*.pb", service_from="label.rack", manifest=table)
    assert shares(tmp_path / "made", "machine") == {"a": 10, "web-9": 20}
    assert shares(tmp_path / "made", "application") == {"r7": 10, "r8": 20}


def test_a_manifest_can_be_added_and_repeated(tmp_path):
    write(tmp_path, "a.pb", 10), write(tmp_path, "b.pb", 20)
    made = tmp_path / "made"
    import_files([], made, manifest=manifest(tmp_path, "file,machine", "a.pb,web-1"))
    (tmp_path / "bad.folded").write_text("main;f x\nmain;f 3\n")
    table = manifest(tmp_path, "file,machine", "a.pb,web-1", "b.pb,web-1", "bad.folded,web-2")
    added = import_files([], made, append=True, manifest=table)
    assert added.notes[0] == f"{tmp_path / 'a.pb'}: left out: it was imported before, as a.pb"
    assert "left out: " in added.notes[1]
    assert "bad.folded:1: count" in added.notes[1]
    assert shares(made, "machine") == {"web-1": 30}
    again = import_files([], made, append=True, manifest=table)
    assert again.totals == []
    assert shares(made, "machine") == {"web-1": 30}


def test_all_faults_of_a_manifest_are_told_with_their_places(tmp_path):
    write(tmp_path, "a.pb", 10), write(tmp_path, "b.pb", 20)
    (tmp_path / "folder").mkdir()
    table = manifest(
        tmp_path,
        "machine,file,start,duration_s",
        "web-1,a.pb,2026-05-01,10",
        "web-1,./a.pb,2026-05-32,-1",
        "web-1,none.pb,nan,nan",
        "web-1,,3600,inf",
        "web-1,folder,May,0",
        "web-1,b.pb",
    )
    with pytest.raises(FileError, match=r".") as caught:
        import_files([], tmp_path / "made", manifest=table)
    assert str(caught.value) == f"{table}:7:1: row: should have 4 fields, got 2"
    table.write_text(table.read_text().replace("web-1,b.pb\n", ""))
    with pytest.raises(FileError, match=r".") as caught:
        import_files([], tmp_path / "made", manifest=table)
    time, length = (
        "should be a time such as 2026-05-01T12:00Z, or seconds since 1970",
        "should be a number of seconds above 0",
    )
    assert [line.removeprefix(f"{table}:") for line in str(caught.value).splitlines()] == [
        '3:2: file: should be there once, and is in line 2, got "./a.pb"',
        f'3:3: start: {time}, got "2026-05-32"',
        f'3:4: duration_s: {length}, got "-1"',
        f'4:2: file: is not there: {tmp_path / "none.pb"}, got "none.pb"',
        f'4:3: start: {time}, got "nan"',
        f'4:4: duration_s: {length}, got "nan"',
        '5:2: file: should name a file, got ""',
        f'5:3: start: {time}, got "3600"',
        f'5:4: duration_s: {length}, got "inf"',
        '6:2: file: should be a file, not a folder, got "folder"',
        f'6:3: start: {time}, got "May"',
        f'6:4: duration_s: {length}, got "0"',
    ]
    assert not (tmp_path / "made").exists()


def test_what_cannot_be_a_file_is_a_fault(tmp_path):
    """Opening a pipe waits for a writer, and a name of 300 letters ended in a traceback."""
    os.mkfifo(tmp_path / "pipe")
    table, long = manifest(tmp_path, "file", "pipe", "x" * 300, "gone.pb"), "x" * 300
    with pytest.raises(FileError) as caught:
        import_files([], tmp_path / "made", manifest=table)
    assert [line.removeprefix(f"{table}:") for line in str(caught.value).splitlines()] == [
        '2:1: file: should be a file, not a pipe or a device, got "pipe"',
        f'3:1: file: should name a file: File name too long, got "{long}"',
        f'4:1: file: is not there: {tmp_path / "gone.pb"}, got "gone.pb"',
    ]


def test_a_file_that_is_not_there_is_left_out_and_all_of_them_are_a_fault(tmp_path):
    write(tmp_path, "a.pb", 10)
    table = manifest(tmp_path, "file,machine", "a.pb,web-1", "gone.pb,web-2")
    made = tmp_path / "made"
    assert f"left out: {tmp_path / 'gone.pb'}: is not there" in import_files([], made, manifest=table).notes
    assert shares(made, "machine") == {"web-1": 10}
    (tmp_path / "a.pb").unlink()
    with pytest.raises(InputError) as caught:
        import_files([], tmp_path / "none", manifest=table)
    assert str(caught.value).splitlines() == [f"{tmp_path / name}: is not there" for name in ("a.pb", "gone.pb")]
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "1:1: file: should begin with a line of column names, got an empty file"),
        ("name,machine\na.pb,web\n", "1:1: file: should be a column, got name, machine"),
        ("file,machine\n", "1:1: should be followed by a row for each file, got none"),
        ("file,,machine\na.pb,x,web\n", "1:2: should have a name, got none"),
        ("file,rack,rack\na.pb,x,web\n", "1:3: rack: should be there once"),
        ("file,rack,label.rack\na.pb,x,web\n", "1:3: label.rack: should be there once"),
    ],
)
def test_a_manifest_whose_header_is_wrong(tmp_path, text, problem):
    write(tmp_path, "a.pb", 10)
    (tmp_path / "manifest.csv").write_text(text)
    with pytest.raises(FileError, match=r".") as caught:
        import_files([], tmp_path / "made", manifest=tmp_path / "manifest.csv")
    assert problem in str(caught.value)


def test_the_command_takes_a_manifest_in_place_of_files(tmp_path, capsys):
    file = write(tmp_path, "a.pb", 10)
    table = manifest(tmp_path, "file,machine", "a.pb,web-1")
    with pytest.raises(SystemExit) as ended:
        app(["profile", "import", "--manifest", str(table), "--out", str(tmp_path / "made"), "--json"], prog_name="wsc")
    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out)["totals"][0]["value"] == 10
    assert shares(tmp_path / "made", "machine") == {"web-1": 10}
    with pytest.raises(SystemExit) as ended:
        app(["profile", "import", str(file), "--manifest", str(table)], prog_name="wsc")
    assert ended.value.code == 2
    assert "--manifest: names the files: leave FILE… out" in capsys.readouterr().err
    for path, problem in ((tmp_path / "none", "is not there"), (tmp_path, "should be a table of files, not a folder")):
        with pytest.raises(FaultsError, match=f"--manifest: {problem}"):
            import_files([], tmp_path / "other", manifest=path)
