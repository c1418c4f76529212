"""Other collectors' tables: what a sample stands for, by hand."""

import pandas as pd

from scenarios.profiling.collectors import _look

RATES = pd.DataFrame(
    {
        "collection": ["fleet", "fleet", "fleet", "fleet", "watch"],
        "platform": ["haswell", "rome", "haswell", "rome", "haswell"],
        "event": ["cycles", "cycles", "instructions", "instructions", "cycles"],
        "period": [1000, 2000, 500, 900, 10],
        "duty": [7, 7, 7, 7, 1],
    }
)
VISITS = pd.DataFrame({"visit": [0, 1], "platform": ["haswell", "rome"], "weight": [12, 24]})
PROCESSES = pd.DataFrame(
    {"process": [0, 1, 2, 3], "visit": [0, 0, 1, 1], "application": ["mail", "[kernel]", "mail", "search"]}
)
LOCATIONS = pd.DataFrame({"location": [0, 1, 2], "image": ["m", "m", "z"], "function": ["f", "f", "g"]})
SAMPLES = pd.DataFrame(
    {
        "process": [0, 0, 0, 1, 2, 3, 0, 2],
        "event": ["cycles"] * 6 + ["instructions"] * 2,
        "location": [0, 1, 2, 2, 0, 2, 0, 2],
        "count": [2, 3, 4, 50, 6, 1, 8, 9],
    }
)


def looked(samples=SAMPLES, rates=RATES):
    return _look(samples, LOCATIONS, PROCESSES, VISITS, rates)


def test_a_sample_stands_for_period_times_duty_times_weight():
    on_haswell, on_rome = 1000 * 7 * 12, 2000 * 7 * 24
    look = looked()
    assert look.functions.to_numpy().tolist() == [
        ["m", "f", 0, 5, 5 * on_haswell],
        ["m", "f", 1, 6, 6 * on_rome],
        ["z", "g", 0, 4, 4 * on_haswell],
        ["z", "g", 1, 1, 1 * on_rome],
    ]
    assert look.cycles.to_numpy().tolist() == [
        ["mail", 0, 9, 9 * on_haswell],
        ["mail", 1, 6, 6 * on_rome],
        ["search", 1, 1, 1 * on_rome],
    ]
    assert look.instructions.to_numpy().tolist() == [["mail", 0, 8, 8 * 500 * 7 * 12], ["mail", 1, 9, 9 * 900 * 7 * 24]]


def test_what_machines_do_of_their_own_counts_in_visits_alone():
    look = looked()
    assert look.of_visits.to_numpy().tolist() == [[0, 59, 59 * 1000 * 7 * 12], [1, 7, 7 * 2000 * 7 * 24]]
    assert "[kernel]" not in set(look.cycles["application"]) | set(look.instructions["application"])
    assert look.functions["samples"].sum() == 16


def test_a_value_is_the_nearest_number_to_the_integer():
    """Beyond 2⁵³ every term of a float sum would be rounded; the one product is rounded once."""
    odd = RATES.assign(period=RATES["period"] * 10**9 + 1)
    many = pd.concat([SAMPLES.query("event == 'cycles' and process == 0")] * 401)
    (row,) = looked(many, odd).cycles.to_dict("records")
    assert row["value"] == float(401 * 9 * (1000 * 10**9 + 1) * 7 * 12)
