"""Sums by machine are those of a loop over instances, each with its part of its job's quota."""

import numpy as np
import pandas as pd

from analysis.effects.cells import cells
from analysis.effects.totals import totals
from models.randomness import stream
from tests.helpers.effect_studies import fleet_jobs, fleet_rows


def test_sums_are_those_of_a_loop_over_instances():
    rng = stream(1, "totals")
    rows, jobs = fleet_rows(rng), fleet_jobs(rng)
    made = totals(cells(rows, jobs))
    share = (jobs["quota"] / jobs["quota"].sum()).to_numpy()
    held = rows.groupby("job")["presence"].sum()
    x = rows[["x0", "x1"]]
    means = (x.mul(rows["presence"], axis=0)).groupby(rows["job"]).sum().div(held, axis=0)
    quota, value, known = np.zeros(14), np.zeros((14, 2)), np.zeros((14, 2))
    for row in rows.to_dict("records"):
        job, machine = row["job"], row["machine"]
        part = share[job] * row["presence"] / held[job]
        quota[machine] += part * jobs["scale"][job]
        value[machine] += part * np.array([row["off"], row["on"]])
        known[machine] += part * jobs["scale"][job] * (np.array([row["x0"], row["x1"]]) - means.loc[job])
    there = np.unique(rows["machine"])
    np.testing.assert_allclose(made.quota, quota[there])
    np.testing.assert_allclose(made.value, value[there])
    np.testing.assert_allclose(made.x, known[there], atol=1e-12)


def test_a_job_that_was_there_for_part_of_the_time_has_its_full_quota():
    rows = pd.DataFrame({"job": ["a", "b"], "machine": [0, 1], "quota": 1.0, "off": 2.0, "on": 3.0})
    rows["presence"] = [1.0, 0.1]
    made = totals(cells(rows, pd.DataFrame({"job": ["a", "b"], "quota": 1.0, "scale": 2.0})))
    np.testing.assert_allclose(made.quota, [1.0, 1.0])
