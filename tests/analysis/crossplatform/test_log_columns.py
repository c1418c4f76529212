import pytest

from analysis.crossplatform.log_columns import log_columns

GOOD = ["timestamp", "requests_buy", "instructions", "l1_misses", "l2_misses"]


def said(names):
    remedy = " (--column {}=EXPRESSION makes it of yours)"
    faults = [(fault.column, fault.field, fault.problem, fault.got) for fault in log_columns(names)[1]]
    return [
        f"{place}: {name}: {what.replace(remedy.format(name), ' [--column]')}, got {got}"
        for place, name, what, got in faults
    ]


def test_the_table_of_the_paper_has_no_fault():
    assert said(GOOD) == []


def test_columns_are_found_by_what_they_hold():
    names = ["start_ms", "requests_search items by region", "instructions_1e4", "l1_misses", "l2_misses_1e3"]
    columns, faults = log_columns([*names, "l3_misses", "response_time_us", "utilisation"])
    assert not faults
    assert {holds: column.factor for holds, column in columns.items()} == {
        "start": 1e-3,
        "requests_search items by region": 1.0,
        "instructions": 1e4,
        "l1_misses": 1.0,
        "l2_misses": 1e3,
        "l3_misses": 1.0,
        "response_time": 1e-6,
        "utilisation": 1.0,
    }


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("utilization", "perhaps utilisation"),
        ("L1 miss", "perhaps l1_misses"),
        ("Instr. count", "perhaps instructions"),
        ("response_time", "perhaps response_time_s"),
        ("Time stamp", "perhaps timestamp"),
        ("type:1", "perhaps requests_TYPE"),
        ("requests", "perhaps requests_TYPE"),
        ("colour", "those are start_s, timestamp, instructions, l1_misses, l2_misses, response_time_s, "),
    ],
)
def test_an_unknown_column_is_told_the_nearest_one(name, hint):
    (fault,) = said([*GOOD, name])
    assert fault.startswith(f"6: {name}: is no column of a service log; {hint}")


@pytest.mark.parametrize(
    ("names", "faults"),
    [
        (GOOD[1:], ["1: start_s: or timestamp should be there [--column], got columns " + ", ".join(GOOD[1:])]),
        (
            ["timestamp", *GOOD[2:]],
            [
                "1: requests_TYPE: should be there for at least one type [--column], got columns timestamp, "
                + ", ".join(GOOD[2:])
            ],
        ),
        (GOOD[:-1], ["1: l2_misses: column is missing [--column], got columns " + ", ".join(GOOD[:-1])]),
        (
            [*GOOD, "l4_misses"],
            ["1: l3_misses: column is missing [--column], got columns " + ", ".join([*GOOD, "l4_misses"])],
        ),
        (["start_s", *GOOD], ["2: timestamp: should not be there beside start_s, got both"]),
        ([*GOOD, "l1_misses_1e3"], ["6: l1_misses_1e3: should not be there beside l1_misses, got both"]),
    ],
)
def test_columns_that_are_missing_or_say_the_same_are_faults(names, faults):
    assert said(names) == faults
