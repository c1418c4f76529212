"""Answers side by side in numbers, beside the same with names."""

import numpy as np
import pandas as pd
import pytest

from analysis.profiling import counted_shares, differences
from analysis.profiling.counted_shares import coded_moments
from analysis.profiling.database import Database
from analysis.profiling.differences import CodedAnswer, CodedKeys, Difference
from analysis.profiling.query import Query
from tests.helpers.profile_tables import random_tables, write_folder

BY = ("machine", "function", "day", "symbolised")


def answer_of(rng, rows, by):
    """Return a random answer: names, value."""
    columns = {
        "machine": [f"m{number}" for number in rng.integers(0, 12, rows)],
        "function": rng.choice(["größe", "main", "Z", "[unknown]", "f(a, b)"], rows),
        "day": rng.integers(8, 12, rows),
        "symbolised": rng.random(rows) < 0.5,
    }
    names = pd.DataFrame(columns)[list(by)].drop_duplicates(ignore_index=True)
    return names.assign(value=rng.integers(0, 6, len(names)) * 1000)


def by_names(a, b, by):
    """Return two answers side by side: merged and sorted by their names."""
    sides = [
        side.assign(share=side["value"] / max(side["value"].sum(), 1)).rename(
            columns={"value": f"value_{name}", "share": f"share_{name}"}
        )
        for name, side in (("a", a), ("b", b))
    ]
    rows = sides[0].merge(sides[1], on=list(by), how="outer")
    measures = ["value_a", "value_b", "share_a", "share_b"]
    rows[measures] = rows[measures].fillna(0)
    rows = rows.astype({"value_a": np.int64, "value_b": np.int64}).assign(change=rows["share_b"] - rows["share_a"])
    order = rows.assign(size=-rows["change"].abs()).sort_values(["size", *by]).index
    return rows.loc[order, [*by, *measures, "change"]].reset_index(drop=True)


def coded(answer, by):
    value = answer["value"].to_numpy()
    return CodedAnswer(CodedKeys.of(answer[list(by)]), value, int(value.sum()))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("by", [BY, BY[::-1], BY[:1], BY[1:2], BY[1::2]], ids=",".join)
def test_they_are_those_of_a_merge_by_names(seed, by, monkeypatch):
    monkeypatch.setattr(differences, "_AT_ONCE", 7)
    rng = np.random.default_rng(seed)
    a, b = answer_of(rng, 90, by), answer_of(rng, 60, by)
    difference, expected = Difference.of(coded(a, by), coded(b, by), by), by_names(a, b, by)
    change = difference.change
    pd.testing.assert_frame_equal(difference.table(difference.greatest(change, len(difference))), expected)
    for most in (1, 3):
        pd.testing.assert_frame_equal(difference.table(difference.greatest(change, most)), expected.head(most))
    grown = difference.table(difference.greatest(change, 2, np.flatnonzero(change > 0)))
    pd.testing.assert_frame_equal(grown, expected[expected["change"] > 0].head(2).reset_index(drop=True))
    strange = pd.concat([a, answer_of(rng, 200, by).replace({"m1": "m99"})]).drop_duplicates(
        list(by), ignore_index=True
    )
    keys = strange[list(by)].sample(frac=1.0, random_state=seed, ignore_index=True)
    own = expected[list(by)].merge(keys.assign(at=np.arange(len(keys))), on=list(by), how="left")["at"].fillna(-1)
    at = difference.at_keys(CodedKeys.of(keys))
    pd.testing.assert_series_equal(
        pd.Series(at[difference.greatest(change, len(difference))], name="at"), own, check_dtype=False
    )


def coded_apart(answer):
    """Return an answer whose processes and places are tables of their own, in no order."""
    parts = []
    for names in (["machine", "day"], ["function", "symbolised"]):
        number, first = answer.groupby(names, sort=False).ngroup(), answer[names].drop_duplicates(ignore_index=True)
        parts.append((first[::-1].reset_index(drop=True), (len(first) - 1 - number).to_numpy(np.int32)))
    (processes, process), (places, place) = parts
    value = answer["value"].to_numpy()
    return CodedAnswer(CodedKeys(processes, places, process, place), value, int(value.sum()))


@pytest.mark.parametrize("seed", range(3))
def test_sides_may_have_other_processes_and_places(seed, monkeypatch):
    monkeypatch.setattr(differences, "_AT_ONCE", 7)
    rng = np.random.default_rng(seed)
    a, b = answer_of(rng, 90, BY), answer_of(rng, 60, BY).query("function != 'main'").reset_index(drop=True)
    difference = Difference.of(coded_apart(a), coded_apart(b), BY)
    table = difference.table(difference.greatest(difference.change, len(difference)))
    pd.testing.assert_frame_equal(table, by_names(a, b, BY))


def test_an_answer_beside_nothing_is_itself():
    answer = answer_of(np.random.default_rng(0), 20, BY)
    difference = Difference.of(coded(answer.head(0), BY), coded(answer, BY), BY)
    table = difference.table(difference.greatest(difference.change, 100))
    pd.testing.assert_frame_equal(table, by_names(answer.head(0), answer, BY), check_dtype=False)
    assert set(difference.at_keys(coded(answer.head(0), BY).keys)) == {-1}


@pytest.mark.parametrize("dense", [0, 1_000_000])
@pytest.mark.parametrize("by", [("function",), ("machine", "line"), ("application",)], ids=",".join)
def test_events_that_are_summed_for_their_errors_are_those_of_the_answer(tmp_path, monkeypatch, by, dense):
    monkeypatch.setattr(counted_shares, "_PER_PART", 7)
    monkeypatch.setattr(counted_shares, "_DENSE", dense)
    tables = random_tables(3)
    count = np.asarray(tables["samples"]["count"]) * 2**20 + 1
    tables["samples"]["count"] = np.where(np.arange(len(count)) < 9, 0, count)
    with Database([write_folder(tmp_path, tables)]) as database:
        query = Query(by=by)
        keys, value, moments = coded_moments(database, query)
        rows = keys.names(np.arange(len(value)), by).assign(value=value)
        expected = database.query(query)
        rows = rows.sort_values(["value", *by], ascending=[False, *(True for _ in by)], ignore_index=True)
        pd.testing.assert_frame_equal(rows, expected[[*by, "value"]], check_dtype=False)
        np.testing.assert_allclose(moments.share, value / value.sum(), rtol=1e-12)


def test_events_that_64_bits_do_not_hold_are_left_to_the_answer(tmp_path):
    tables = random_tables(0)
    tables["samples"]["count"] = 2**40
    tables["rates"]["period"] = 2**20
    with Database([write_folder(tmp_path, tables)]) as database:
        keys, value, moments = coded_moments(database, Query())
        assert value is None
        assert len(keys.place) == len(moments.share) > 0
