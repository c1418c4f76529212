"""Tables of observations: what is read, what is refused and where, files taken together, runs as observations."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.effects import observations
from analysis.effects.observations import (
    Observations,
    between,
    joined,
    numbered,
    read_observations,
    without_rolled_back,
)
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


def of_days(*days, controls=0):
    """Rows of a job: a line of 0 and 1 for each day, whose columns are machines; others never have the feature."""
    rows = [(p, m, int(on)) for p, day in enumerate(days) for m, on in enumerate(day + "0" * controls)]
    return pd.DataFrame(rows, columns=["period", "machine", "treated"]).assign(job="a", weight=1.0, value=1.0)


@pytest.mark.parametrize(
    ("days", "controls", "out"),
    [
        (("1111", "1110"), 1, 1),  # one of four is taken out
        (("1111", "1100"), 1, 0),  # half of them: a crossover of these
        (("11000", "00111"), 1, 0),  # all switch, though fewer lose the feature than gain it
        (("1111100000", "1111011111"), 1, 1),  # a roll-out with a tenth taken back
        (("1111100000", "1110011111"), 1, 0),  # two of ten: others gain it when these have it no more
        (("1111100000", "1110011111"), 4, 0),
        (("1111100000", "1111011111"), 4, 1),
        (("1111", "1111", "0000"), 4, 8),  # an end of all, beside four that never have it
        (("1111", "1111", "0000"), 1, 5),
        (("1111", "1111", "0000"), 0, 0),  # there is nothing beside them: before and after is all that there is
        (("1111", "0011", "0000"), 3, 0),  # too few to be compared with where machines lose it in turn
        (("1111", "0011", "0000"), 4, 10),  # an end that takes two days
        (("1111", "0111", "0000"), 4, 9),  # one is taken out, then all
        (("1111", "0000", "1111", "0000"), 4, 0),  # on and off
        (("1111", "0011", "1111", "0000"), 4, 0),  # half of them go on
        (("111", "011", "111"), 4, 2),  # one of three goes on: fewer than keep it
        (("1100", "1111", "0000"), 4, 8),  # the end of a roll-out
        (("1100", "0111", "0000"), 4, 0),  # a quarter loses it while others gain it
    ],
)
def test_losses_of_a_feature_are_told_from_a_crossover_by_whether_others_gain_it(days, controls, out):
    table = of_days(*days, controls=controls)
    coded = Observations.of(table)
    assert coded.rolled_back.sum() == out
    assert out == 0 or not Observations.of(table[~coded.rolled_back]).lost.any()


def test_controls_that_come_after_the_end_are_none():
    """Four machines without the feature, three of which have rows of the last day only, are one to compare with."""
    table = of_days("1111", "0011", "0000", controls=4)
    assert not Observations.of(table[(table["machine"] < 5) | (table["period"] == 2)]).rolled_back.any()


@pytest.mark.parametrize("seed", range(30))
def test_a_crossover_by_coins_is_one(seed):
    """A coin for each of 40 machines and each of two days, so that about ten never have the feature."""
    on = np.random.default_rng(seed).random((2, 40)) < 0.5
    assert not Observations.of(of_days(*("".join("01"[int(x)] for x in day) for day in on))).rolled_back.any()


def test_what_is_left_out_is_told():
    """Two of six are taken out on the second day, the others on the fourth."""
    rows, notes = without_rolled_back(of_days("111111", "001111", "001111", "000000", controls=4))
    assert len(rows) == 3 * 10 - 4
    assert notes == [
        "2 machines lose the feature early (0, 1): their rows since then are left out; 4 keep it; "
        "if their values were the reason, the estimate is biased",
        "no machine has the feature from period 3 on: 10 rows of the time since are left out",
    ]


def test_a_machine_that_has_a_feature_again_is_out_since_it_lost_it():
    """What it does later may still show what it was without."""
    rows = [(p, m, int(m < 5 and (m, p) != (0, 1))) for p in range(3) for m in range(6)]
    table = pd.DataFrame(rows, columns=["period", "machine", "treated"]).assign(job="a", weight=1.0, value=1.0)
    assert table[Observations.of(table).rolled_back][["period", "machine"]].to_numpy().tolist() == [[1, 0], [2, 0]]
