import numpy as np
import pandas as pd
import pytest

from analysis.wsmeter.measurements import FileError, measurements, read_jobs, read_measurements, read_plan
from models.fleet.metrics import METRICS


def written(path, lines):
    path.write_text("\n".join(lines) + "\n")
    return path


def said(path, reader=read_measurements):
    """Return the message of the error that reading the file raises."""
    with pytest.raises(FileError) as caught:
        reader(path)
    return str(caught.value)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "table.csv"


def test_one_value_per_machine_is_one_job_on_machines_of_their_own(file):
    reading = read_measurements(written(file, ["value,runtime,VM_id", "89.0,7.98,0", "89.0,8.74,1"]))
    assert reading.table.to_dict("list") == {
        "job": ["all"] * 2,
        "machine": ["0", "1"],
        "weight": [1, 1],
        "value": [89, 89],
    }
    assert reading.notes == (
        "no column job: all rows are one job",
        "no column machine: every row is a machine of its own",
        "no column weight: every row weighs 1",
        "columns not used: runtime, VM_id",
    )


def test_equal_values_alone_are_no_repetition(file):
    assert len(read_measurements(written(file, ["value", "1", "1", "1"])).table) == 3


def test_columns_may_stand_in_any_order_and_blank_lines_are_skipped(file):
    table = read_measurements(written(file, ["\ufeffvalue, machine,weight,job", "2,m,1,a", "", "3,n,1,a"])).table
    assert table.to_dict("list") == {"job": ["a", "a"], "machine": ["m", "n"], "weight": [1, 1], "value": [2, 3]}


def test_two_instances_of_a_job_on_a_machine_need_an_instance_column(file):
    lines = ["job,machine,instance,weight,value", "a,m,1,1,2", "a,m,2,1,2"]
    assert len(read_measurements(written(file, lines)).table) == 2


def test_a_job_stands_once_in_a_jobs_table(file):
    lines = ["job,quota,instances", "a,1,2", "b,0,1.5", "a,3,x"]
    assert said(written(file, lines), read_jobs).splitlines() == [
        '3:2: quota: should be above 0, got "0"',
        '3:3: instances: should be a whole number, got "1.5"',
        "4:1: job: should be there once (a query in place of the table makes one row of several: "
        "SELECT … GROUP BY job), got the same as in line 2",
        '4:3: instances: should be a number, got "x"',
    ]


def test_a_jobs_table_notes_the_columns_it_does_not_use(file):
    reading = read_jobs(written(file, ["job,quota,instances,owner", "a,1,2,me"]))
    assert (reading.notes, list(reading.table)) == (("columns not used: owner",), ["job", "quota", "instances"])
    assert reading.table["instances"].dtype == np.int64


def test_a_plans_table_needs_all_its_columns(file):
    assert said(written(file, ["job,weight,mean,instances", "a,1,0,3"]), read_plan).splitlines() == [
        "1:1: std: column is missing (--column std=EXPRESSION makes it of yours), "
        "got columns job, weight, mean, instances",
        "1:1: cost: column is missing (--column cost=EXPRESSION makes it of yours), "
        "got columns job, weight, mean, instances",
    ]


def run_tables():
    instances = pd.DataFrame(
        {
            "residence": [0, 1, 2, 3],
            "instance": [0, 1, 1, 2],
            "job": [5, 5, 5, 6],
            "machine": [1, 1, 2, 2],
            "rack": 0,
            "quota_vcpu": [2.0, 4.0, 4.0, 1.0],
            "feature": [False, True, True, False],
        }
    )
    counters = pd.DataFrame(
        {
            "residence": [2, 0, 1, 3, 0],
            "window": ["day", "day", "day", "day", "night"],
            "instructions": [3.0, 6.0, 8.0, 1.0, 9.0],
            "cycles": [2.0, 4.0, 8.0, 0.0, 9.0],
            "cpu_s": [1.0, 4.0, 2.0, 5.0, 9.0],
            "wall_s": [9.0, 100.0, 50.0, 100.0, 100.0],
            "requests": [30.0, 60.0, 70.0, 10.0, 9.0],
        }
    )
    return counters, instances


@pytest.mark.parametrize(
    ("metric", "values", "exposures"),
    [
        ("ipc", {0: 1.5, 1: 1.0}, {0: 4.0, 1: 8.0}),
        ("ips", {0: 1.5, 1: 4.0, 3: 0.2}, {0: 4.0, 1: 2.0, 3: 5.0}),
        ("requests_per_cpu_s", {0: 15.0, 1: 35.0, 3: 2.0}, {0: 4.0, 1: 2.0, 3: 5.0}),
        ("requests_per_s", {0: 0.6, 1: 1.4, 3: 0.1}, {0: 100.0, 1: 50.0, 3: 100.0}),
    ],
)
def test_each_metric_is_a_ratio_of_counters_over_long_enough_stays(metric, values, exposures):
    table = measurements(*run_tables(), metric, window="day").set_index("residence")
    assert table["value"].to_dict() == pytest.approx(values)
    assert table["exposure"].to_dict() == exposures


def test_a_stay_counts_from_the_least_presence_on():
    counters, instances = run_tables()
    found = [
        measurements(counters, instances, "ips", "day", least_presence=least)["residence"].tolist()
        for least in (0.09, 0.5, 0.51)
    ]
    assert [sorted(each) for each in found] == [[0, 1, 2, 3], [0, 1, 3], [0, 3]]


def test_measurements_say_where_each_instance_ran_and_whether_it_had_the_feature():
    table = measurements(*run_tables(), "ipc", "day").sort_values("residence")
    columns = ["job", "machine", "weight", "rack", "instance", "feature"]
    assert table[columns].to_numpy().tolist() == [[5, 1, 2.0, 0, 0, False], [5, 1, 4.0, 0, 1, True]]


def test_an_unknown_window_or_metric_says_which_there_are():
    with pytest.raises(ValueError, match=r"^window must be one of day, night, got all$"):
        measurements(*run_tables(), "ipc")
    with pytest.raises(ValueError, match=rf"^metric must be one of {', '.join(METRICS)}, got speed$"):
        measurements(*run_tables(), "speed", "day")


def test_stays_without_counters_are_not_said_to_be_in_another_window():
    counters, instances = run_tables()
    with pytest.raises(ValueError, match=r"^no stay has counters, so nothing is measured in window day$"):
        measurements(counters[:0], instances, "ipc", "day")


def test_several_windows_have_a_row_each_and_a_pattern_sums_them_per_stay():
    counters, instances = run_tables()
    each = measurements(counters, instances, "ips", ["day", "night"], least_presence=0.0, keep=("residence", "window"))
    assert each.sort_values(["residence", "window"])["window"].tolist() == ["day", "night", "day", "day", "day"]
    both = measurements(pd.concat([counters, counters[:4].assign(window="dawn")]), instances, "ips", "d*")
    assert both.set_index("residence")["value"].to_dict() == pytest.approx({0: 1.5, 1: 4.0, 3: 0.2})
    assert both.set_index("residence")["exposure"].to_dict() == {0: 8.0, 1: 4.0, 3: 10.0}


def test_the_windows_that_there_are_are_told_where_no_name_begins_like_a_pattern():
    with pytest.raises(ValueError, match=r"^window must be one of day, night, got rest\.\*$"):
        measurements(*run_tables(), "ipc", "rest.*")


def test_stays_that_counted_nothing_count_unless_only_busy_ones_are_asked_for():
    counters, instances = run_tables()
    idle = counters.assign(requests=counters["requests"].where(counters["residence"] != 1, 0.0))
    asked = [measurements(idle, instances, "requests_per_s", "day", busy=busy)["residence"] for busy in (False, True)]
    assert [sorted(residences) for residences in asked] == [[0, 1, 3], [0, 3]]


def test_units_of_a_jobs_table_are_told(file):
    reading = read_jobs(written(file, ["job,quota,instances", "a,500m,3"]))
    assert reading.table["quota"].tolist() == [0.5]
    assert reading.notes == ("quota: units are those of quantities: 500m is 0.5, 1.5k is 1500",)
