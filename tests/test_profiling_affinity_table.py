import numpy as np
import pandas as pd
import pytest

from analysis.profiling.affinity.table import Table, frame_of, read
from analysis.readers import TableError
from tests.affinities import TABLE_1, random_table


def written(folder, text):
    file = folder / "table.csv"
    file.write_text(text)
    return file


def test_table_1_of_the_paper_is_read(tmp_path):
    table = read(written(tmp_path, TABLE_1))
    assert (table.jobs, table.platforms) == (("NumCrunch", "MemBench"), ("1", "2"))
    assert table.cpi.tolist() == [[1.0, 1.0], [1.0, 2.0]]
    assert table.capacity.tolist() == [200.0, 300.0]
    assert table.total.tolist() == [200.0, 200.0]
    assert table.allowed.all()


def test_a_pair_without_a_row_is_not_allowed_and_one_without_cpi_not_observed(tmp_path):
    table = read(written(tmp_path, "job,platform,load,cpi,capacity\na,p,5,2,10\na,q,0,,20\nb,q,1,3,20\n"))
    assert table.allowed.tolist() == [[True, True], [False, True]]
    assert table.unobserved.tolist() == [[False, True], [False, False]]


def test_parquet_says_the_same_as_csv(tmp_path):
    truth = random_table(1, 7, 3, allowed=0.7)
    frame = frame_of(truth, np.where(truth.allowed, truth.load, 0.0))
    job, platform = pd.factorize(frame["job"])[0], np.array([truth.platforms.index(p) for p in frame["platform"]])
    frame = frame.assign(cpi=truth.cpi[job, platform], capacity=truth.capacity[platform], clock_hz=2e9)
    frame.loc[frame.index[1], "cpi"] = None if (frame["job"] == frame["job"][1]).sum() > 1 else 1.0
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    one, other = read(tmp_path / "t.csv"), read(tmp_path / "t.parquet")
    for name in ("jobs", "platforms"):
        assert getattr(one, name) == getattr(other, name)
    for name in ("load", "cpi", "allowed", "capacity", "clock_hz"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_every_fault_is_told_at_once_with_its_line(tmp_path):
    text = (
        "job,platform,load,cpi,capacity,clock_hz\n"
        "a,1,100,1,200,1e9\n"
        "a,1,-5,1,201,2e9\n"
        "\n"
        "b,2,nan,0,300,\n"
        ",2,1,x,300,1e9\n"
    )
    with pytest.raises(TableError) as caught:
        read(written(tmp_path, text))
    told = str(caught.value).splitlines()
    assert [line.split(": ")[:2] for line in told] == [
        ["3:1", "job, platform"],
        ["3:3", "load"],
        ["3:5", "capacity"],
        ["3:6", "clock_hz"],
        ["5:3", "load"],
        ["5:4", "cpi"],
        ["5:6", "clock_hz"],
        ["6:1", "job"],
        ["6:4", "cpi"],
    ]


@pytest.mark.parametrize("missing", ["job", "platform", "load", "cpi", "capacity"])
def test_missing_columns_are_named(tmp_path, missing):
    kept = pd.read_csv(written(tmp_path, TABLE_1)).drop(columns=missing)
    kept.to_csv(tmp_path / "less.csv", index=False)
    with pytest.raises(TableError, match=f"1:1: {missing}: column is missing"):
        read(tmp_path / "less.csv")


def test_a_job_of_which_no_cpi_is_known_is_refused(tmp_path):
    with pytest.raises(TableError, match="3:4: cpi: should be known on one platform at least for job b"):
        read(written(tmp_path, "job,platform,load,cpi,capacity\na,p,5,2,10\nb,p,1,,10\n"))


def test_costs_are_infinite_where_a_job_may_not_run():
    table = random_table(2, 20, 3, allowed=0.5)
    assert (np.isfinite(table.cost(table.cpi)) == table.allowed).all()
    assert isinstance(Table.of(frame_of(table, table.load).assign(cpi=1.0, capacity=1.0)), Table)
