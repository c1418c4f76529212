"""The law beside the kernel: tables from what was recorded, and the arithmetic of their errors."""

import numpy as np
import pandas as pd
import pytest

from scenarios.live.run import Observed
from scenarios.live.summary import errors, summary, tables

REQUESTS = pd.DataFrame(
    {"session": [0, 1, 0], "arrival_s": [0.0, 1.0, 6.0], "departure_s": [3.0, 4.0, 8.0], "demand_s": [2.0, 2.0, 2.0]}
)
CPU = pd.DataFrame(
    {
        "start_s": [0.0, 5.0],
        "end_s": [5.0, 10.0],
        "utilisation": [0.7, 0.4],
        "cpu_s": [3.5, 2.0],
        "run_queue_wait_s": [2.5, 0.0],
        "others_s": [0.0, 0.0],
        "stolen_s": [0.0, 0.0],
    }
)


def test_the_law_and_the_kernel_stand_side_by_side():
    said = summary(REQUESTS, CPU, servers=1)
    assert (said["requests"], said["failed"], said["sessions"], said["peak"]) == (3, 0, 2, 2)
    assert (said["service_time_s"], said["queueing_time_s"], said["response_time_s"]) == (6.0, 2.0, 8.0)
    assert said["utilisation"] == 0.6
    assert said["kernel"] == {"cpu_s": 5.5, "run_queue_wait_s": 2.5, "utilisation": 0.55}
    assert [row["utilisation"] for row in said["intervals"]] == [0.8, 0.4]
    assert [row["error"] for row in said["intervals"]] == pytest.approx([0.1, 0.0])
    assert [row["queueing_time_s"] for row in said["intervals"]] == [2.0, 0.0]
    assert said["errors"]["queueing"] == pytest.approx(-0.2)
    assert said["errors"]["raw"]["max"] == pytest.approx(0.1)
    assert said["errors"]["normalised"]["max"] == pytest.approx(0.1 / 0.7)


def test_with_two_servers_utilisation_is_of_both():
    assert summary(REQUESTS, CPU, servers=2)["utilisation"] == 0.4


def test_requests_without_an_answer_are_counted_and_left_out():
    lost = pd.concat([REQUESTS, pd.DataFrame({"session": [2], "arrival_s": [2.0], "departure_s": [np.nan]})])
    said = summary(lost, CPU, servers=1)
    assert (said["requests"], said["failed"], said["service_time_s"]) == (4, 1, 6.0)


def test_where_nobody_waited_the_error_of_queueing_is_not_a_number():
    assert np.isnan(summary(REQUESTS, CPU.assign(run_queue_wait_s=0.0), servers=1)["errors"]["queueing"])


@pytest.mark.parametrize("empty", ["requests", "answers", "intervals"])
def test_nothing_to_compare_is_refused(empty):
    requests = {"requests": REQUESTS[:0], "answers": REQUESTS.assign(departure_s=np.nan)}.get(empty, REQUESTS)
    with pytest.raises(ValueError, match=r"of \d requests \d were answered in \d intervals; none will do"):
        summary(requests, CPU[:0] if empty == "intervals" else CPU, servers=1)


def spread(error, kernel, length_s=1.0):
    rows = pd.DataFrame({"error": error, "kernel_utilisation": kernel, "start_s": 0.0})
    return errors(rows.assign(end_s=length_s))


def test_errors_are_without_sign_and_their_quantiles_as_everywhere():
    found = spread(np.linspace(-0.1, 0.0, 101), 0.5)
    assert found["raw"] == pytest.approx({"median": 0.05, "p97": 0.097, "max": 0.1})
    assert found["normalised"] == pytest.approx({"median": 0.1, "p97": 0.194, "max": 0.2})


def test_an_idle_interval_has_no_normalised_error():
    assert spread([0.0002, 0.05], [0.0002, 0.5])["normalised"]["max"] == pytest.approx(0.1)


def test_a_short_last_interval_is_left_out_of_the_errors():
    assert spread([0.01, 0.9], [0.5, 0.05], [1.0, 0.4])["raw"]["max"] == 0.01


def test_tables_are_differences_of_the_samples_to_the_microsecond():
    samples = {
        "time_s": [0.0, 2.0, 4.00000049],
        "run_s": [1.0, 2.5, 3.5],
        "wait_s": [0.0, 0.25, 0.25],
        "busy_s": [10.0, 12.0, 12.9],
        "stolen_s": [0.0, 0.0, 0.1],
    }
    seen = {"session": [0], "arrival_s": [0.12345678], "departure_s": [1.0], "demand_s": [0.5]}
    requests, cpu = tables(Observed(pd.DataFrame(seen), pd.DataFrame(samples), pd.DataFrame(), 1.0), servers=1)
    assert requests["arrival_s"].tolist() == [0.123457]
    assert cpu["end_s"].tolist() == [2.0, 4.0]
    assert cpu["utilisation"].tolist() == [0.75, 0.5]
    assert cpu["run_queue_wait_s"].tolist() == [0.25, 0.0]
    assert cpu["others_s"].tolist() == [0.5, 0.0]
    assert cpu["stolen_s"].tolist() == [0.0, 0.1]
