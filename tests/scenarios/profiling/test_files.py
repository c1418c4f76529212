"""Profiles from and for other tools, through files."""

import gzip
import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.profiling.database import Database
from analysis.profiling.formats.columns import SampleTable
from analysis.profiling.formats.extract import extract, extract_parts
from analysis.profiling.formats.foreign import Frame, Measure
from analysis.profiling.formats.pprof import read_pprof
from analysis.profiling.formats.pprof_writing import write_pprof
from analysis.profiling.formats.tables import write_tables
from analysis.profiling.formats.wire import bytes_field, number_field, packed_field
from analysis.profiling.query import Query, QueryError
from analysis.profiling.storage import ProfileError
from scenarios.files.faults import FaultsError
from scenarios.profiling import files as profile_files
from scenarios.profiling.files import ExportSelection, export, import_files
from scenarios.views.terminal import show
from tests.helpers.foreign_profiles import profile_of
from tests.helpers.profile_tables import random_tables, write_folder

MAIN = Frame("main", "web", "aa11", "web.c", 1, 9)
PARSE = Frame("parse", "web", "aa11", "parse.c", 10, 12)
COPY = Frame("copy", "libc.so", "bb22", "copy.c", 5, 6)
NOWHERE = Frame("[unknown]", "web", "aa11")
STACKS = [((PARSE, MAIN), (40,)), ((COPY, PARSE, MAIN), (30,)), ((COPY, MAIN), (20,)), ((NOWHERE,), (10,))]


def write_cpu(folder, stacks=STACKS, name="cpu.pb.gz"):
    path = folder / name
    path.write_bytes(write_pprof(profile_of([Measure("cpu", "nanoseconds", 10)], stacks)))
    return path


def write_run(folder, weight=7):
    """A directory with one leaf-only process beside one with call paths, at a weight."""
    run = folder / "run"
    import_files([write_cpu(folder)], run)
    tables = {name: pd.read_parquet(run / f"{name}.parquet") for name in ("visits", "processes", "samples")}
    processes, samples = tables["processes"], tables["samples"]
    kernel = processes.assign(process=processes["process"] + 1, application="[kernel]", stacks=False)
    leaves = samples.assign(process=1, stack=-1, count=2 * samples["count"]).astype(samples.dtypes)
    changed = {
        "visits": tables["visits"].assign(weight=weight),
        "processes": pd.concat([processes, kernel]).astype(processes.dtypes),
        "samples": pd.concat([samples, leaves]),
    }
    write_tables(changed, run)
    return run


def cpu(**rest):
    return ExportSelection("cpu", **rest)


def test_an_imported_profile_has_the_totals_of_the_file(tmp_path):
    said = import_files([write_cpu(tmp_path)], tmp_path / "made")
    assert [(total.event, total.samples, total.value) for total in said.totals] == [("cpu", 10, 100)]
    with Database([tmp_path / "made"]) as database:
        assert database.total(Query("cpu")) == (10, 100)
        assert database.query(Query("cpu", ("function",)))["value"].tolist() == [50, 40, 10]


@pytest.mark.parametrize("offset", [0xFFFFFFFF81000000, 2**64 - 1])
def test_a_kernel_whose_addresses_are_its_places_in_the_file_is_imported(tmp_path, offset):
    """Places of 2⁶³ bytes and more, and sums of 2⁶⁴ and more, ended an import in an error of its own."""
    start = 0xFFFFFFFF81000000
    ranges = [number_field(2, start), number_field(3, start + 4096), number_field(4, offset), number_field(5, 3)]
    parts = [
        bytes_field(1, number_field(1, 1) + number_field(2, 2)),
        bytes_field(2, packed_field(1, [1]) + packed_field(2, [7])),
        bytes_field(3, number_field(1, 1) + b"".join(ranges)),
        bytes_field(4, number_field(1, 1) + number_field(2, 1) + number_field(3, start + 0x123)),
        *(bytes_field(6, text) for text in (b"", b"samples", b"count", b"[kernel.kallsyms]")),
    ]
    (tmp_path / "kernel.pb.gz").write_bytes(gzip.compress(b"".join(parts)))
    [frame] = read_pprof((tmp_path / "kernel.pb.gz").read_bytes()).frames
    assert frame.file_address == offset + 0x123
    [total] = import_files([tmp_path / "kernel.pb.gz"], tmp_path / "imported").totals
    assert (total.event, total.value) == ("samples", 7)


def test_files_are_collections_of_their_own(tmp_path):
    files = [write_cpu(tmp_path, STACKS[at:], name) for at, name in enumerate(("a.pb.gz", "b.pb.gz"))]
    import_files(files, tmp_path / "made")
    with Database([tmp_path / "made"]) as database:
        assert database.values("collection") == ["a.pb.gz", "b.pb.gz"]
        assert database.total(Query("cpu", where=(("collection", ("a.pb.gz",)),))) == (10, 100)


def test_an_exported_profile_holds_the_totals_of_the_database(tmp_path):
    run, out = write_run(tmp_path), tmp_path / "out.pb.gz"
    said = export([run], "pprof", out, cpu())
    assert (said.samples, said.value, said.written) == (30, 2100, 30)
    profile = read_pprof(out.read_bytes())
    assert [(measure.event, profile.total(measure.event)) for measure in profile.measures] == [
        ("samples", 30),
        ("cpu", 2100),
    ]
    assert {(frame.image, frame.build_id) for frame in profile.frames} == {("web", "aa11"), ("libc.so", "bb22")}
    assert {origin.application for origin in profile.origins} == {"web", "[kernel]"}
    paths = {tuple(profile.frames[at].function for at in sample.stack) for sample in profile.samples}
    assert paths >= {("copy", "parse", "main"), ("copy",), ("parse",), ("parse", "main")}
    assert profile.default == "samples"


def test_restrictions_hold_and_weights_are_shown_first_if_asked_for(tmp_path):
    run, out = write_run(tmp_path), tmp_path / "out.pb.gz"
    said = export([run], "pprof", out, cpu(where=("job=[kernel]", "image=libc.so"), weighted=True))
    assert (said.samples, said.value, said.written) == (10, 700, 700)
    assert read_pprof(out.read_bytes()).default == "cpu"


def test_folded_stacks_hold_samples_or_values(tmp_path):
    run, out = write_run(tmp_path), tmp_path / "out.folded"
    export([run], "folded", out, cpu(where=("job=web",)))
    assert out.read_text() == "[unknown] 1\nmain;copy 2\nmain;parse 4\nmain;parse;copy 3\n"
    export([run], "folded", out, cpu(where=("job=web",), weighted=True))
    assert out.read_text() == "[unknown] 70\nmain;copy 140\nmain;parse 280\nmain;parse;copy 210\n"
    export([run], "speedscope", out, cpu(where=("job=web",), weighted=True))
    content = json.loads(out.read_text())
    names, (profile,) = [frame["name"] for frame in content["shared"]["frames"]], content["profiles"]
    paths = {";".join(names[at] for at in path) for path in profile["samples"]}
    assert paths == {"[unknown]", "main;copy", "main;parse", "main;parse;copy"}
    assert sum(profile["weights"]) == profile["endValue"] == 700


@pytest.mark.parametrize("form", ["folded", "speedscope"])
def test_a_file_of_samples_whose_shares_are_not_those_of_the_event_says_so(tmp_path, form):
    """Of a heap it held a 1 for each record, without a word."""
    heap = profile_of(
        [Measure("inuse_objects"), Measure("inuse_space", "bytes")], [((PARSE,), (3, 900)), ((COPY,), (2, 100))]
    )
    (tmp_path / "heap.pb.gz").write_bytes(write_pprof(heap))
    import_files([tmp_path / "heap.pb.gz"], tmp_path / "heap")
    notes = ["the file counts samples, whose shares are not those of inuse_space; --weighted writes inuse_space"]
    space, weighted = (ExportSelection("inuse_space", weighted=weighted) for weighted in (False, True))
    assert export([tmp_path / "heap"], form, tmp_path / "out", space).notes == notes
    assert not export([tmp_path / "heap"], form, tmp_path / "out", weighted).notes
    assert not export([tmp_path / "heap"], "pprof", tmp_path / "out", space).notes
    assert not export([write_run(tmp_path)], form, tmp_path / "out", cpu()).notes


@pytest.mark.parametrize("form", ["pprof", "folded"])
def test_a_file_written_in_small_pieces_is_the_same(tmp_path, monkeypatch, form):
    """Of a hundred million rows it took 1.6 GB, as all samples were tuples of Python before the first was written."""
    run, out = write_folder(tmp_path / "run", random_tables(2, rows=3_000)), tmp_path / "out"
    said = export([run], form, out, ExportSelection("cpu_time"))
    whole = out.read_bytes()
    for module, name in (("columns", "_AT_ONCE"), ("extract", "_ROWS_AT_ONCE")):
        monkeypatch.setattr(f"analysis.profiling.formats.{module}.{name}", 7)
    monkeypatch.setattr("analysis.profiling.formats.pprof_writing._PACKED_AT_ONCE", 100)
    export([run], form, out, ExportSelection("cpu_time"))
    assert out.read_bytes() == whole
    assert (said.size, said.written) == (len(whole), said.samples)
    if form == "pprof":
        assert gzip.compress(gzip.decompress(whole), 6, mtime=0) == whole


def exported(out, form):
    """Return the amounts of each call path in a file, the function sampled last; in pprof also by application."""
    if form == "folded":
        return out.read_bytes()
    sums = Counter()
    if form == "speedscope":
        content = json.loads(out.read_bytes())
        (profile,) = content["profiles"]
        names = [(frame["name"], frame.get("file")) for frame in content["shared"]["frames"]]
        assert profile["endValue"] == sum(profile["weights"])
        for path, weight in zip(profile["samples"], profile["weights"], strict=True):
            sums[tuple(names[at] for at in path)] += weight
        return sums
    profile = read_pprof(out.read_bytes())
    for sample in profile.samples:
        path = tuple(profile.frames[at] for at in sample.stack)
        sums.update({(profile.origins[sample.origin], path, at): own for at, own in enumerate(sample.amounts)})
    return sums, profile.measures, profile.default, set(profile.frames)


@pytest.mark.parametrize("most", [1, 2, 9])
@pytest.mark.parametrize("form", ["pprof", "folded", "speedscope"])
def test_more_call_paths_than_are_in_memory_are_exported_part_by_part(tmp_path, monkeypatch, form, most):
    """Of more than two million it was refused."""
    tables, out = random_tables(2, rows=3_000), tmp_path / "out"
    tables["samples"].loc[::3, "stack"] = -1
    run, selections = (
        write_folder(tmp_path / "run", tables),
        [ExportSelection("cpu_time", weighted=own) for own in (0, 1)],
    )
    whole = [(export([run], form, out, selection), exported(out, form)) for selection in selections]
    monkeypatch.setattr("analysis.profiling.formats.extract.MOST_ROWS", most)
    for selection, (answer, content) in zip(selections, whole, strict=True):
        again = export([run], form, out, selection)
        assert exported(out, form) == content
        assert replace(again, size=answer.size) == answer


@pytest.mark.parametrize("most", [1, 9])
def test_a_compilers_profile_of_more_call_paths_than_are_in_memory_is_put_together(tmp_path, monkeypatch, most):
    """Of more than a million it was refused, and told to choose the image that was chosen."""
    tables, out = random_tables(2, rows=3_000), tmp_path / "out"
    tables["samples"].loc[::3, "stack"] = -1
    run = write_folder(tmp_path / "run", tables)
    image = tables["locations"]["image"].mode()[0]
    selection = ExportSelection("cpu_time", where=(f"image={image}",))
    answer, whole = export([run], "llvm", out, selection), out.read_text()
    monkeypatch.setattr("analysis.profiling.formats.extract.MOST_ROWS", most)
    assert export([run], "llvm", out, selection) == answer
    assert out.read_text() == whole
    with pytest.raises(FaultsError, match="should choose one image"):
        export([run], "llvm", out, ExportSelection("cpu_time"))


def test_samples_of_one_value_are_in_order_of_application_place_sampled_and_stack(tmp_path):
    tables = random_tables(2, rows=200)
    tables["samples"]["count"], tables["rates"]["period"], tables["rates"]["duty"] = 1, 1, 1
    tables["visits"]["weight"] = 1
    tables["samples"].loc[::3, "stack"] = -1
    tables["locations"]["function"] = [f"f{number}" for number in range(len(tables["locations"]))]
    location = dict(zip(tables["locations"]["function"], tables["locations"]["location"], strict=True))
    steps = tables["stacks"].sort_values("depth").groupby("stack")["location"].agg(tuple)
    number = {path: stack for stack, path in steps.items()}
    with Database([write_folder(tmp_path, tables)]) as database:
        profile = extract(database, Query("cpu_time"))
    keys = []
    for sample in profile.samples:
        path = tuple(location[profile.frames[at].function] for at in sample.stack)
        stack = number[path] if sample.chain else -1 - path[0]
        keys.append((-sample.amounts[1], profile.origins[sample.origin].application, path[0], stack))
    assert len(number) == len(steps)
    assert keys == sorted(keys)
    assert len({key[:2] for key in keys}) < len(keys) / 2


def test_an_export_whose_files_change_between_its_parts_is_refused(tmp_path, monkeypatch):
    run = write_folder(tmp_path / "run", random_tables(2, rows=300))
    monkeypatch.setattr("analysis.profiling.formats.extract.MOST_ROWS", 4)
    with Database([run]) as database:
        parts = extract_parts(database, Query("cpu_time"))
        next(parts)
        write_folder(tmp_path / "run", random_tables(3, rows=300))
        with pytest.raises(QueryError, match="the profile's files changed while they were read; ask again"):
            next(parts)


def test_a_part_of_an_export_is_small_where_stacks_are_deep(tmp_path, monkeypatch):
    run = write_folder(tmp_path / "run", random_tables(2, rows=3_000))
    with Database([run]) as database:
        (whole,) = extract_parts(database, Query("cpu_time"))
        monkeypatch.setattr("analysis.profiling.formats.extract._MOST_FRAMES", 40)
        parts = [*extract_parts(database, Query("cpu_time"))]
    assert len(parts) > 1
    assert max(len(SampleTable.of(part.samples).frames) for part in parts) <= 40
    assert sum(part.total("cpu_time") for part in parts) == whole.total("cpu_time")
    for before, part in pairwise(parts):
        assert [*before.frames] == [*part.frames][: len(before.frames)]
        assert before.origins == part.origins[: len(before.origins)]


def test_parts_have_the_measures_that_all_together_have(tmp_path, monkeypatch):
    """Values of each part fit 64 bits, and those of all do not."""
    tables = random_tables(2, rows=300)
    with Database([write_folder(tmp_path / "small", tables)]) as database:
        value = database.total(Query("cpu_time"))[1]
    tables["samples"]["count"] *= 2**64 // value
    monkeypatch.setattr("analysis.profiling.formats.extract.MOST_ROWS", 4)
    with Database([write_folder(tmp_path / "large", tables)]) as database:
        assert database.total(Query("cpu_time"))[1] >= 2**63
        parts = [*extract_parts(database, Query("cpu_time"))]
    assert len(parts) > 2
    assert {len(part.measures) for part in parts} == {1}
    assert all("more than 64 bits hold: samples only" in part.notes[0] for part in parts)


def test_samples_are_not_read_more_often_where_numbers_of_stacks_have_gaps(tmp_path, monkeypatch):
    monkeypatch.setattr("analysis.profiling.formats.extract.MOST_ROWS", 8)
    passes, totals = [], []
    for gap in (1, 50_000_000):
        tables = random_tables(2, rows=3_000)
        for name in ("samples", "stacks"):
            stack = tables[name]["stack"]
            tables[name]["stack"] = np.where(stack < 0, stack, stack * gap)
        run = write_folder(tmp_path / str(gap), tables)
        with Database([run]) as database:
            counted = Mock(wraps=database.stack_sums)
            monkeypatch.setattr(database, "stack_sums", counted)
            totals.append(sum(part.total("cpu_time") for part in extract_parts(database, Query("cpu_time"))))
            passes.append(counted.call_count)
    assert totals[0] == totals[1]
    assert 3 < passes[1] <= passes[0] + 2


def test_folded_stacks_beyond_memory_are_put_together_from_files(tmp_path, monkeypatch):
    run, out = write_folder(tmp_path / "run", random_tables(2, rows=3_000)), tmp_path / "out"
    export([run], "folded", out, ExportSelection("cpu_time"))
    whole = out.read_bytes()
    monkeypatch.setattr("analysis.profiling.formats.folded._MOST_BYTES", 500)
    monkeypatch.setattr("analysis.profiling.formats.folded._AT_ONCE", 3)
    export([run], "folded", out, ExportSelection("cpu_time"))
    assert out.read_bytes() == whole


def test_a_call_path_is_one_sample_wherever_it_was_sampled(tmp_path):
    tables = random_tables(2, rows=3_000)
    timed = tables["samples"]["event"] == "cpu_time"
    tables["samples"].loc[timed, "location"] = np.random.default_rng(0).integers(0, 12, timed.sum())
    tables["samples"].loc[: len(timed) // 2, "stack"] = -1
    with Database([write_folder(tmp_path, tables)]) as database:
        profile, total = extract(database, Query("cpu_time")), database.total(Query("cpu_time"))
    paths = [(sample.stack, sample.origin, sample.chain) for sample in profile.samples]
    assert len(set(paths)) == len(paths)
    assert (profile.total("samples"), profile.total("cpu_time")) == total
    assert {chain for _, _, chain in paths} == {False, True}


def test_a_compiler_gets_one_image(tmp_path):
    run, out = write_run(tmp_path), tmp_path / "out.prof"
    said = export([run], "llvm", out, cpu(where=("image=web",)))
    assert out.read_text() == "parse:12:0\n 2: 12\nmain:0:0\n 8: 0 parse:4\n"
    assert said.notes == ["3 without a symbol are left out"]
    with pytest.raises(FaultsError, match="should choose one image, as --where image=NAME does, got libc"):
        export([run], "llvm", out, cpu())


def test_an_event_called_samples_has_both_its_measures(tmp_path):
    (tmp_path / "stacks.txt").write_text("main;f 3\nmain 4\n")
    import_files([tmp_path / "stacks.txt"], tmp_path / "run")
    said = export([tmp_path / "run"], "pprof", tmp_path / "a.pb.gz", ExportSelection("samples"))
    profile = read_pprof((tmp_path / "a.pb.gz").read_bytes())
    assert [measure.event for measure in profile.measures] == ["sample_count", "samples"]
    assert said.written == profile.total("sample_count") == profile.total("samples") == 7


def test_call_paths_that_refer_to_nothing_are_refused(tmp_path):
    run = write_run(tmp_path)
    stacks = pd.read_parquet(run / "stacks.parquet")
    write_tables({"stacks": stacks.assign(location=stacks["location"] + 100)}, run)
    with pytest.raises(ProfileError, match="location: should be a location, got"):
        export([run], "folded", tmp_path / "a.folded", cpu())


FUNCTIONS = st.sampled_from("fgh").map(lambda name: Frame(name, f"lib{name}", "", f"{name}.c", 3, 4))


@settings(max_examples=4, deadline=None)
@given(
    st.lists(
        st.tuples(st.lists(FUNCTIONS, min_size=1, max_size=3).map(tuple), st.tuples(st.integers(1, 99))), min_size=1
    )
)
def test_exported_and_imported_again_it_is_the_same(tmp_path_factory, stacks):
    folder = tmp_path_factory.mktemp("twice")
    import_files([write_cpu(folder, stacks)], folder / "first")
    export([folder / "first"], "pprof", folder / "again.pb.gz", cpu())
    import_files([folder / "again.pb.gz"], folder / "second")
    by = Query("cpu", ("function", "image", "file", "line"))
    with Database([folder / "first"]) as first, Database([folder / "second"]) as second:
        assert first.query(by).drop(columns="samples").equals(second.query(by).drop(columns="samples"))
        columns = ["path", "value"]
        assert first.stacks(Query("cpu"))[columns].equals(second.stacks(Query("cpu"))[columns])


def test_values_beyond_64_bits_are_refused_or_left_out(tmp_path):
    run, out = write_run(tmp_path, weight=2**60), tmp_path / "out.pb.gz"
    said = export([run], "pprof", out, cpu())
    assert said.value is None
    assert "more than 64 bits hold" in said.notes[0]
    with pytest.raises(FaultsError, match="--weighted: cpu sums to"):
        export([run], "pprof", out, cpu(weighted=True))


@pytest.mark.parametrize(
    ("form", "out", "selection", "said"),
    [
        ("pprov", "a.pb", cpu(), "--format: did you mean pprof"),
        ("pprof", "no/a.pb", cpu(), "--out: no folder"),
        ("pprof", ".", cpu(), "--out: is a folder"),
        ("pprof", "a.pb", ExportSelection("cycels"), 'unknown event "cycels"'),
        ("pprof", "a.pb", cpu(where=("job=x",)), 'unknown application "x"'),
        ("pprof", "a.pb", cpu(where=("x",)), "should be dimension=value"),
    ],
)
def test_what_cannot_be_exported_is_refused(tmp_path, form, out, selection, said):
    run = write_run(tmp_path)
    with pytest.raises((FaultsError, QueryError), match=said):
        export([run], form, tmp_path / out, selection)


def test_nothing_is_left_of_an_import_that_fails(tmp_path):
    (tmp_path / "bad").write_bytes(gzip.compress(b"hello"))
    (tmp_path / "worse").write_bytes(b"")
    with pytest.raises(ValueError, match="should be a profile") as caught:
        import_files([tmp_path / "bad", tmp_path / "worse", tmp_path / "none"], tmp_path / "made")
    assert len(str(caught.value).splitlines()) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad", "worse"]


@pytest.mark.parametrize("place", ["tables.write_samples", "tables.ProfileStore.add"])
def test_nothing_is_left_of_an_import_that_is_interrupted(tmp_path, monkeypatch, place):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    file = write_cpu(tmp_path)
    monkeypatch.setattr(f"analysis.profiling.formats.{place}", interrupted)
    with pytest.raises(KeyboardInterrupt):
        import_files([file], tmp_path / "made")
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_nothing_is_left_of_an_export_that_is_interrupted(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    run = write_run(tmp_path)
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr("pathlib.Path.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        export([run], "folded", tmp_path / "a.folded", cpu())
    assert sorted(tmp_path.iterdir()) == before


def test_a_folder_that_is_there_is_kept(tmp_path):
    with pytest.raises(FaultsError, match="--out: is already there"):
        import_files([write_cpu(tmp_path)], tmp_path)


def test_no_file_is_refused(tmp_path):
    with pytest.raises(FaultsError, match="FILE: should be at least one"):
        import_files([], tmp_path / "made")


def test_what_is_said_fits_a_line_an_event(tmp_path, capsys):
    console = pytest.importorskip("rich.console").Console(highlight=False)
    show(import_files([write_cpu(tmp_path)], tmp_path / "run").section(), console)
    show(export([tmp_path / "run"], "folded", tmp_path / "a.folded", cpu()).section(), console)
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"{tmp_path / 'cpu.pb.gz'}: cpu: 10 samples, 100 nanoseconds"
    assert said[2] == f"{tmp_path / 'a.folded'}: cpu: 10 samples, 100 nanoseconds in the fleet; a file of 55 bytes"


def test_every_format_has_a_writer():
    assert tuple(profile_files._WRITERS) == profile_files.FORMATS


def test_what_is_no_file_and_where_no_folder_can_be_made_are_named_plainly(tmp_path):
    good, taken = tmp_path / "a.folded", tmp_path / "taken"
    good.write_text("main 1\n")
    taken.write_text("")
    with pytest.raises(ValueError, match="is a folder"):
        import_files([tmp_path], tmp_path / "new")
    with pytest.raises(ValueError, match="is not there"):
        import_files([tmp_path / "none"], tmp_path / "new")
    with pytest.raises(ValueError, match="--out: cannot make a folder") as caught:
        import_files([good], taken / "new")
    assert "partial" not in str(caught.value)
