"""Figures 4 to 6 hold in worlds with their finding and fail in worlds without it."""

import numpy as np
import pandas as pd

from analysis.figures.criteria import number
from analysis.figures.wsmeter import selection
from analysis.figures.wsmeter.draws import Halves
from tests.helpers.reproduce_worlds import failing, fleet


def wsc(common, local, first, heavy=1000.0):
    """Return the jobs of a WSC: `common` ones that hold most, and `local` ones that it alone runs."""
    names = [f"common-{i}" for i in range(common)] + [f"local-{first}-{i}" for i in range(local)]
    quota = np.concatenate([heavy / np.arange(1, common + 1) ** 1.5, np.full(local, 20.0 / max(local, 1))])
    return pd.DataFrame({"job": range(len(names)), "name": names, "quota": quota})


def two(common, local, heavy=1000.0):
    return wsc(common, local, 1, heavy), wsc(common, local, 2, heavy)


def test_fig4_holds_where_three_in_ten_names_are_common():
    made = selection.measure_fig4(*two(600, 700))
    assert number(made, "common_share") == 0.3
    assert failing("wsmeter/fig4", made) == []


def test_fig4_fails_where_both_run_the_same_jobs():
    assert failing("wsmeter/fig4", selection.measure_fig4(*two(600, 0))) == ["common_share_high"]


def test_fig4_fails_where_they_have_nothing_in_common():
    assert failing("wsmeter/fig4", selection.measure_fig4(*two(0, 600))) == ["common_share_low"]


def test_fig5_holds_where_the_common_jobs_are_the_heavy_ones():
    assert failing("wsmeter/fig5", selection.measure_fig5(*two(600, 700))) == []


def test_fig5_fails_where_the_local_jobs_hold_much():
    assert "common_quota_share_min" in failing("wsmeter/fig5", selection.measure_fig5(*two(600, 700, heavy=40.0)))


def test_fig5_fails_where_all_jobs_are_alike():
    alike = [table.assign(quota=1.0) for table in two(950, 50)]
    assert "top_5_percent_quota_min" in failing("wsmeter/fig5", selection.measure_fig5(*alike))


def fig6(**world):
    made = fleet(**{"jobs": 300, "popularity": 1.3, "job_sd": 0.3, **world})
    return selection.measure_fig6(made, made.jobs)


def test_fig6_holds_where_few_jobs_hold_most():
    assert failing("wsmeter/fig6", fig6()) == []


def test_fig6_fails_where_all_jobs_are_equally_heavy():
    assert {"quota_coverage_at_20_percent", "deviation_from_20_percent"} <= set(
        failing("wsmeter/fig6", fig6(popularity=0.0, job_sd=1.0))
    )


def test_fig6_fails_where_more_jobs_lead_away_from_the_whole():
    value = np.select([np.arange(1000) < 10, np.arange(1000) < 505], [1.0, 1.5], 0.5)
    jobs = pd.DataFrame({"job": range(1000), "name": [str(i) for i in range(1000)], "quota": np.linspace(1.1, 1, 1000)})
    table = pd.DataFrame({"job": range(1000), "machine": 0, "weight": 1.0, "value": value})
    names = failing("wsmeter/fig6", selection.measure_fig6(Halves(table, table, jobs), jobs))
    assert {"reduction", "deviation_from_20_percent"} <= set(names)
