"""Tables of observations: what is read, what is refused and where, files taken together, runs as observations."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.effects import observations
from analysis.effects.observations import Observations, between, joined, numbered, read_observations
from analysis.tables.faults import FileError

HEAD = "period,job,machine,weight,value,treated\n"


def written(folder, text, name="seen.csv"):
    file = folder / name
    file.write_text(text)
    return file


def test_parquet_and_csv_say_the_same(tmp_path):
    file = written(tmp_path, HEAD + "0,a,7,2,1.5,0\n1,a,7,2,1.75,1\n")
    plain = read_observations(file).table
    plain.assign(machine=[7, 7]).to_parquet(tmp_path / "seen.parquet")
    pd.testing.assert_frame_equal(plain, read_observations(tmp_path / "seen.parquet").table)


def test_all_faults_are_told_at_once_with_line_and_column(tmp_path):
    text = HEAD + "0,a,m,2,1.5,0\n\n0,,m,-1,nan,0\n1,b,m,2,1.5,2\n1,b,m,x,1.5,0\n0,a,m,2,1.5,0\n"
    with pytest.raises(FileError) as caught:
        read_observations(written(tmp_path, text))
    assert [(line, column, name) for line, column, name, *_ in caught.value.faults] == [
        (4, 2, "job"),
        (4, 4, "weight"),
        (4, 5, "value"),
        (5, 6, "treated"),
        (6, 4, "weight"),
        (7, 1, "row"),
    ]


def test_flags_may_be_numbers_or_words_and_nothing_else(tmp_path):
    row = pd.DataFrame({"period": range(4), "job": "a", "machine": "m", "weight": 1.0, "value": 1.0})
    for said in (["0", "1", "1.0", "0"], ["False", "TRUE", "true", " false"]):
        row.assign(treated=said).to_csv(tmp_path / "seen.csv", index=False)
        assert read_observations(tmp_path / "seen.csv").table["treated"].tolist() == [0, 1, 1, 0]
    for typed in ([False, True, True, False], [0.0, 1.0, 1.0, 0.0]):
        row.assign(treated=typed).to_parquet(tmp_path / "seen.parquet")
        assert read_observations(tmp_path / "seen.parquet").table["treated"].tolist() == [0, 1, 1, 0]
    row.assign(treated=["yes", "", "nan", "0.5"]).to_csv(tmp_path / "seen.csv", index=False)
    with pytest.raises(FileError) as caught:
        read_observations(tmp_path / "seen.csv")
    assert str(caught.value).splitlines() == [
        '2:6: treated: should be 0 or 1, true or false, got "yes"',
        '3:6: treated: should not be empty, got ""',
        '4:6: treated: should be 0 or 1, true or false, got "nan"',
        '5:6: treated: should be 0 or 1, true or false, got "0.5"',
    ]
    row.assign(treated=["0", "1", "1", "0"]).to_parquet(tmp_path / "seen.parquet")
    assert read_observations(tmp_path / "seen.parquet").table["treated"].tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("column", ["period", "job", "machine", "weight", "value"])
def test_a_missing_column_is_named(tmp_path, column):
    table = pd.DataFrame({"period": [0], "job": "a", "machine": "m", "weight": 1.0, "value": 1.0}).drop(columns=column)
    table.to_csv(tmp_path / "seen.csv", index=False)
    with pytest.raises(FileError, match=f"{column}: column is missing"):
        read_observations(tmp_path / "seen.csv")


def test_without_treated_nothing_has_the_feature_and_unknown_columns_are_told(tmp_path):
    reading = read_observations(written(tmp_path, "period,job,machine,weight,value,colour\n0,a,m,2,1.5,red\n"))
    assert reading.table["treated"].tolist() == [0]
    assert "colour" not in reading.table
    assert reading.notes == ("columns not used: colour", "no column treated: nothing has the feature")


def test_files_are_joined_by_what_all_of_them_have(tmp_path):
    row = {"job": ["a"], "machine": ["m"], "weight": [1.0], "value": [2.0], "treated": [0]}
    first, second = (pd.DataFrame({"period": [period]} | row) for period in (0.0, 1.0))
    whole = joined({"one": first.assign(rack="r"), "two": second})
    assert "rack" not in whole
    assert whole["period"].tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match=r"period 0\.0, job a, machine m stands in three and in one"):
        joined({"one": first, "two": second, "three": first})


def test_a_period_between_the_others_is_named_by_its_lines(tmp_path):
    rows = [f"{period},a,m1,2,1.5" for period in (0, 1, 1.5, 2, 3, 10, 11)]
    (tmp_path / "odd.csv").write_text("\n".join(["period,job,machine,weight,value", "", *rows]))
    with pytest.raises(FileError) as refused:
        read_observations(tmp_path / "odd.csv")
    assert refused.value.lines() == ["5:1: period: should be as far from the next period as others are, got 1.5"]


@pytest.mark.parametrize("periods", [[0, 1], [0, 1, 5], [0, 1, 3, 7], [3, 4, 5, 20, 21], [0, 23, 47, 71, 94, 118, 142]])
def test_gaps_hours_that_are_set_back_and_uneven_lengths_are_left_alone(periods):
    assert not between(np.array(periods, dtype=float)).any()


ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.integers(-1, 1)), min_size=1, max_size=30)


@pytest.mark.parametrize("most", [2**62, 4])
@settings(max_examples=30)
@given(rows=ROWS)
def test_rows_are_numbered_as_pandas_groups_them(most, rows):
    """As pandas' grouping does; with room for few combinations only, numbers are made small again on the way."""
    table = pd.DataFrame(rows, columns=["x", "y", "z"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(observations, "_MOST", most)
        number, first = numbered([table["x"], table["y"], table["z"].to_numpy()])
    np.testing.assert_array_equal(number, table.groupby(["x", "y", "z"], sort=False).ngroup())
    np.testing.assert_array_equal(first, table.drop_duplicates().index)


@pytest.mark.parametrize(
    ("first", "second", "out"),
    [
        ("1 1 1 1", "1 1 1 0", 1),  # one of four is taken out
        ("1 1 1 1", "1 1 0 0", 0),  # half of them: a crossover of these
        ("1 1 0 0 0", "0 0 1 1 1", 0),  # all switch, though fewer lose the feature than gain it
        ("1 1 1 1 1 0 0 0 0 0", "1 1 1 1 0 1 1 1 1 1", 1),  # a roll-out with a tenth taken back
    ],
)
def test_few_machines_that_lose_a_feature_are_told_from_a_crossover(first, second, out):
    """Two periods; one machine never has the feature."""
    rows = [(p, m, int(on)) for p, day in enumerate((first, second)) for m, on in enumerate(f"{day} 0".split())]
    table = pd.DataFrame(rows, columns=["period", "machine", "treated"]).assign(job="a", weight=1.0, value=1.0)
    coded = Observations.of(table)
    assert coded.rolled_back.sum() == out
    assert out == 0 or not Observations.of(table[~coded.rolled_back]).lost.any()


def test_a_machine_that_has_a_feature_again_is_out_since_it_lost_it():
    """What it does later may still show what it was without."""
    rows = [(p, m, int(m < 5 and (m, p) != (0, 1))) for p in range(3) for m in range(6)]
    table = pd.DataFrame(rows, columns=["period", "machine", "treated"]).assign(job="a", weight=1.0, value=1.0)
    assert table[Observations.of(table).rolled_back][["period", "machine"]].to_numpy().tolist() == [[1, 0], [2, 0]]
