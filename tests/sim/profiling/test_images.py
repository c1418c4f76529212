"""Images, symbols and sources: the round trip of every address, and what a release changes, by brute force."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from analysis.profiling.symbolise import Repository
from models.fleet.inventory import build_jobs, build_machines
from models.fleet.world import Fleet, Population
from models.profiling.programs import build_programs
from models.profiling.world import ProfileWorld, Profiling, Releases
from models.tables import SCHEMAS
from sim.profiling.builds import NEVER, build_builds, changed_functions
from sim.profiling.hits import Stacks
from sim.profiling.images import lay_out

WORLD = ProfileWorld(
    seed=5,
    horizon_s=14 * 86400.0,
    fleet=Fleet(8),
    population=Population(14, 8, heavyweights=2),
    profiling=Profiling(releases=Releases(unstored_share=0.15)),
)


@pytest.fixture(scope="module")
def images():
    world = WORLD
    programs = build_programs(world, build_jobs(world, build_machines(world)), ["haswell_2698v3"])
    builds = build_builds(world, programs)
    layout = lay_out(world, programs, builds)
    return SimpleNamespace(
        programs=programs,
        builds=builds,
        addresses=layout.addresses,
        build_rows=table(layout.build_columns()),
        symbols=table(layout.symbol_columns()),
        sources=table(layout.source_columns()),
        traits=table(layout.trait_columns()),
    )


def table(columns):
    return pa.table({k: pa.array(v).dictionary_decode() if pa.types.is_dictionary(pa.array(v).type) else pa.array(v)
                     for k, v in columns.items()})  # fmt: skip


def test_every_line_of_every_function_of_every_stored_build_is_found_again(images):
    layout, code = images.addresses, images.addresses.code
    stored = np.append(images.builds.stored, True)
    assert 0 < (~stored).sum() < stored.size / 2
    build, address, line, function = [], [], [], []
    for b, image in enumerate(layout.image_of_build.tolist()):
        for f in range(layout.first[image], layout.first[image + 1]):
            start = int(layout.start_of(np.array([b]), np.array([f]), np.array([0]))[0])
            for k in range(code.line_start[f], code.line_start[f + 1]):
                for i in (0, layout.instructions[k] - 1):
                    build.append(b)
                    address.append(start + layout.line_offset[k] + 4 * i)
                    line.append(int(code.line[k]))
                    function.append(code.name[f])
    repository = Repository.of(images.symbols, images.build_rows)
    found = repository.look_up(np.array(build), np.array(address))
    where = repository.locations(found)
    known = stored[build]
    assert (np.array(where["symbolised"].to_pylist()) == known).all()
    assert (np.array(where["line"].to_pylist())[known] == np.array(line)[known]).all()
    assert (np.array(where["function"].to_pylist())[known] == np.array(function)[known]).all()
    assert set(np.array(where["function"].to_pylist())[~known]) == {"[unknown]"}


def test_functions_of_a_build_do_not_overlap_and_builds_differ(images):
    layout, code = images.addresses, images.addresses.code
    sizes = np.add.reduceat(layout.instructions, code.line_start[:-1]) * 4
    for b, image in enumerate(layout.image_of_build.tolist()):
        here = slice(*layout.build_start[b : b + 2])
        order = np.argsort(layout.function_start[here])
        start, size = layout.function_start[here][order], sizes[layout.first[image] : layout.first[image + 1]][order]
        assert (start[1:] >= (start + size)[:-1]).all()
        assert (start % 16 == 0).all()
    twice = np.flatnonzero(layout.of_image[:, 0] != layout.of_image[:, 1])
    assert twice.size > 3
    for old, new in layout.of_image[twice]:
        before, after = (layout.function_start[slice(*layout.build_start[b : b + 2])] for b in (old, new))
        assert (before != after).mean() > 0.5


def test_a_file_has_a_new_signature_where_a_release_changed_a_function_in_it(images):
    layout, code = images.addresses, images.addresses.code
    changed = changed_functions(WORLD, images.programs)
    by_build = {
        b: dict(zip(rows.file, rows.file_hash, strict=True)) for b, rows in images.symbols.to_pandas().groupby("build")
    }
    compared = 0
    for program in np.flatnonzero(images.builds.release_day < NEVER):
        image = images.programs.image_of_program[program]
        old, new = layout.of_image[image]
        if old not in by_build or new not in by_build:
            continue
        mine = range(layout.first[image], layout.first[image + 1])
        touched = {code.file[f] for f in mine if changed[f]}
        for file in by_build[old]:
            compared += 1
            assert (by_build[old][file] != by_build[new][file]) == (file in touched)
    assert compared > 20


def test_sources_have_every_line_that_symbols_name(images):
    sources = images.sources.to_pandas()
    symbols = images.symbols.to_pandas()
    for _, rows in sources.groupby(["file", "file_hash"]):
        assert rows.line.tolist() == list(range(1, len(rows) + 1))
    text = sources.set_index(["file", "file_hash", "line"]).text
    assert text.index.is_unique
    heads = text[pd.MultiIndex.from_frame(symbols[["file", "file_hash", "function_line"]])]
    assert all(function in head for function, head in zip(symbols.function, heads, strict=True))
    body = text[pd.MultiIndex.from_frame(symbols[["file", "file_hash", "line"]])]
    assert (body.str.len() > 3).mean() > 0.99
    assert set(zip(sources.file, sources.file_hash, strict=True)) == set(
        zip(symbols.file, symbols.file_hash, strict=True)
    )


def test_columns_are_those_of_the_tables(images):
    for name, found in (("symbols", images.symbols), ("sources", images.sources), ("function_traits", images.traits)):
        assert found.column_names == SCHEMAS[name].names
    assert images.build_rows.column_names == SCHEMAS["builds"].names
    assert len(set(images.build_rows["build_id"].to_pylist())) == images.build_rows.num_rows
    assert images.build_rows["image"].to_pylist()[-1] == "fleetd"


def test_stacks_are_numbered_as_they_are_met_and_written_once(images):
    programs = images.programs
    entry_program = np.repeat(np.arange(programs.count), np.diff(programs.start))
    stacks = Stacks(images.addresses, programs.paths, np.repeat(entry_program, np.diff(programs.paths.start)))
    none, one = np.zeros(4, int), np.ones(4, int)
    number, rows = stacks.number(np.array([9, -1, 5, 9]), none, none)
    assert number.tolist() == [0, -1, 1, 0]
    assert sorted(set(rows["stack"].tolist())) == [0, 1]
    number, rows = stacks.number(np.array([5, 9, 9, 5]), one, none)
    assert number.tolist() == [2, 3, 3, 2]
    again, rows = stacks.number(np.array([9, 5, 9, 5]), none, none)
    assert again.tolist() == [0, 1, 0, 1]
    assert len(rows["stack"]) == 0
