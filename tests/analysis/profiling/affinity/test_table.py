import numpy as np
import pandas as pd
import pytest

from analysis.profiling.affinity.table import AffinityTable, frame_of, read
from analysis.tables.faults import FileError
from tests.helpers.affinities import TABLE_1, random_table


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
    with pytest.raises(FileError) as caught:
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
    with pytest.raises(FileError, match=f"1:1: {missing}: column is missing"):
        read(tmp_path / "less.csv")


def test_a_job_of_which_no_cpi_is_known_is_refused(tmp_path):
    with pytest.raises(FileError, match="3:4: cpi: should be known on one platform at least for job b"):
        read(written(tmp_path, "job,platform,load,cpi,capacity\na,p,5,2,10\nb,p,1,,10\n"))


def test_costs_are_infinite_where_a_job_may_not_run():
    table = random_table(2, 20, 3, allowed=0.5)
    assert (np.isfinite(table.cost(table.cpi)) == table.allowed).all()
    assert isinstance(AffinityTable.of(frame_of(table, table.load).assign(cpi=1.0, capacity=1.0)), AffinityTable)


def test_a_column_of_an_unknown_name_is_a_fault_with_the_nearest(tmp_path):
    with pytest.raises(FileError) as caught:
        read(written(tmp_path, "job,platform,load,cpi,capacity,clok_hz,x\na,p,5,2,10,1e9,1\n"))
    assert [fault[:3] for fault in caught.value.faults] == [(1, 6, "clok_hz"), (1, 7, "x")]
    assert "did you mean clock_hz?" in caught.value.faults[0].problem
    assert "there are job, platform" in caught.value.faults[1].problem


def test_counters_that_no_processor_makes_are_faults(tmp_path):
    head = "job,platform,load,cpi,capacity,l1_misses,l2_misses,llc_misses,mispredictions\n"
    rows = ["a,p,5,2,10,0.03,0.02,0.01,0.004", "b,p,5,2,10,0.01,0.02,0.015,0.004", "c,p,5,2,10,0.03,,0.04,1.5"]
    rows.append("d,p,5,2,10,0.02,0.02,0.02,1")
    with pytest.raises(FileError) as caught:
        read(written(tmp_path, head + "\n".join(rows) + "\n"))
    assert [fault[:3] for fault in caught.value.faults] == [
        (3, 7, "l2_misses"),
        (3, 8, "llc_misses"),
        (4, 8, "llc_misses"),
        (4, 9, "mispredictions"),
    ]


def test_counters_without_the_others_are_not_used(tmp_path):
    table = read(written(tmp_path, "job,platform,load,cpi,capacity,l1_misses\na,p,5,2,10,0.03\n"))
    assert table.counters is None
    assert table.unused == ("l1_misses",)
