"""What is wrong with tables, said of small ones written by hand."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from models.tables import KEYS, TABLES
from scenarios.runs.disk import file_digest
from scenarios.runs.rundir import Run
from scenarios.runs.verify import changed, faults

WHOLE = {pa.int32(), pa.int64()}
MACHINES = pd.DataFrame(
    {
        "machine": [0, 1, 2],
        "rack": [0, 0, 1],
        "power_domain": 0,
        "platform": "haswell_2698v3",
        "vcpus": 64,
        "memory_bytes": 1e11,
        "feature": [True, False, True],
        "feature_from_s": [0.0, np.nan, 300.0],
    }
)


@pytest.fixture
def said(tmp_path):
    """Write one table, and return what is said of it."""

    def write(frame, table="machines", rows=None):
        frame.to_parquet(tmp_path / f"{table}.parquet", index=False)
        listed = {} if rows is None else {table: {"rows": rows}}
        return [str(fault).removeprefix(f"{tmp_path}/") for fault in faults(Run(tmp_path, {"tables": listed}))]

    return write


def test_a_sound_table_is_not_complained_of_whatever_writes_it(said):
    assert said(MACHINES) == []
    assert said(MACHINES.astype({"machine": "int16", "platform": "category", "memory_bytes": "float32"})) == []
    assert said(MACHINES.assign(memory_bytes=10**11, note="mine")) == []


def test_numbers_that_do_not_exist_may_be_nan_but_never_infinite(said):
    infinite = MACHINES.assign(feature_from_s=[np.inf, np.nan, -np.inf])
    assert said(infinite) == ["machines.parquet: feature_from_s: should be finite, got infinite in 2 of 3 rows"]


def test_numbers_are_not_negative_where_the_column_does_not_say_what_that_means(said):
    cores = MACHINES.assign(vcpus=[64, -64, 64], memory_bytes=[1e11, 1e11, -1.0])
    assert said(cores) == [
        "machines.parquet: vcpus: should be at least 0, got less in 1 of 3 rows",
        "machines.parquet: memory_bytes: should be at least 0, got less in 1 of 3 rows",
    ]
    fewest = {column.name: column.least for column in TABLES["events"]}
    assert (fewest["machine"], fewest["instance"], fewest["time_s"]) == (-1, -1, 0)
    assert {each.name for table in TABLES.values() for each in table if each.least == -np.inf} == {"change", "built_s"}


def test_an_empty_table_is_one_that_lost_its_rows_unless_it_was_written_so(said):
    assert said(MACHINES[:0], rows=3) == ["machines.parquet: should hold rows, got none"]
    assert said(MACHINES[:0]) == ["machines.parquet: should hold rows, got none"]
    assert said(MACHINES[:0], rows=0) == []


def test_everything_is_said_at_once(said):
    wrong = MACHINES.assign(machine=[0, 1, 1], platform=[None, "a", "b"], vcpus="64", memory_bytes=[1.0, np.nan, 1.0])
    assert said(wrong.drop(columns="rack")) == [
        "machines.parquet: rack: column is missing, got columns machine, power_domain, platform, vcpus, memory_bytes, "
        "feature, feature_from_s",
        "machines.parquet: vcpus: should hold whole numbers, got type large_string",
        "machines.parquet: platform: should be in every row, got nothing in 1 of 3 rows",
        "machines.parquet: memory_bytes: should be a number, got NaN or infinite in 1 of 3 rows",
        "machines.parquet:4:1: machine: should be there once, got 1 again",
    ]


def test_damage_within_a_file_is_found(said, tmp_path):
    rows = pd.DataFrame({"job": np.arange(20_000), "quota_vcpu": np.random.default_rng(1).random(20_000)})
    frame = rows.assign(name=rows["job"].astype(str), latency_critical=True, instances=1)
    assert said(frame, "jobs") == []
    file = tmp_path / "jobs.parquet"
    content = bytearray(file.read_bytes())
    content[4:2000] = bytes(1996)
    file.write_bytes(content)
    (fault,) = faults(Run(tmp_path, {"tables": {}}))
    assert str(fault).startswith(f"{file}: cannot be read: ")


def test_other_tables_and_those_of_cells_are_left_alone(said, tmp_path):
    assert said(pd.DataFrame({"mine": [1, 1]}), "own") == []
    assert list(faults(Run(tmp_path, {"tables": {}, "cells": {"c0001": {}}}))) == []


def test_keys_are_columns_of_their_tables_that_are_never_nan():
    for table, key in KEYS.items():
        named = {column.name: column for column in TABLES[table]}
        assert set(key) <= set(named)
        assert not any(named[name].may_be_nan for name in key)


def test_only_what_was_changed_is_named(tmp_path):
    files = [tmp_path / f"{name}.parquet" for name in ("jobs", "machines")]
    for file in files:
        file.write_bytes(b"rows")
    listed = {file.stem: {"file_bytes": 4, "file_digest": file_digest(file)} for file in files} | {"epochs": {}}
    assert changed(Run(tmp_path, {"tables": listed})) == ()
    files[1].write_bytes(b"rose")
    assert changed(Run(tmp_path, {"tables": listed})) == ("machines.parquet",)


def test_rows_that_another_table_does_not_have_are_named_once_all_else_is_sound(said):
    counted = {column.name: np.zeros(3) for column in TABLES["machine_windows"]}
    windows = pd.DataFrame(counted | {"machine": [0, 7, 9], "window": "all"})
    windows = windows.astype({column.name: "int64" for column in TABLES["machine_windows"] if column.type in WHOLE})
    assert said(MACHINES) == []
    assert said(windows, "machine_windows") == [
        "machine_windows.parquet: machine: should be of machines, got 7 and 1 more"
    ]
    assert said(windows.assign(machine=[0, 1, 1]), "machine_windows") == [
        "machine_windows.parquet:4:1: machine, window: should be there once, got 1, all again"
    ]
