"""Series, truth and scorer as files; the drawn series have the spread and the cost that are declared."""

import json

import numpy as np
import pandas as pd
import pytest

from analysis.profiling.changes.spread import Lasting
from benchmarks.watch import cusum, main, over_week
from models.randomness import stream
from tests.helpers.machine_days import MachineDays
from tests.helpers.watched_fleets import HOURS, Design, WatchedFleet


def test_a_tools_alarms_are_scored_from_files(tmp_path, capsys):
    main(["draw", str(tmp_path), "--worlds", "2"])
    truth = pd.read_csv(tmp_path / "truth.csv", keep_default_na=False)
    rows = truth.assign(kind=["growth", "growth"])[["world", "function", "kind", "start", "dimension", "value"]]
    rows.to_csv(tmp_path / "alarms.csv", index=False)
    main(["score", str(tmp_path), str(tmp_path / "alarms.csv"), "--json"])
    scores = json.loads(capsys.readouterr().out)
    assert scores["regression"] == {"worlds": 1, "named": 1, "right_cause": 1, "other_functions": 0}
    assert scores["improvement"]["named"] == 0
    main(["run", str(tmp_path)])
    own = pd.read_csv(tmp_path / "alarms.csv")
    assert ("growth", int(truth["function"][0])) in set(zip(own["kind"], own["function"], strict=True))


def test_a_tool_that_names_nothing_may_leave_its_file_empty_and_a_table_without_a_column_is_refused(tmp_path, capsys):
    main(["draw", str(tmp_path), "--worlds", "1"])
    alarms = tmp_path / "alarms.csv"
    alarms.write_text("")
    main(["score", str(tmp_path), str(alarms), "--json"])
    assert json.loads(capsys.readouterr().out)["regression"]["named"] == 0
    alarms.write_text("world,function\n0,1\n")
    with pytest.raises(SystemExit, match="should be a table with columns world, function, kind, start"):
        main(["score", str(tmp_path), str(alarms)])


@pytest.mark.parametrize("what", ["regression", "improvement"])
def test_what_is_planted_costs_what_is_declared(what):
    design = Design(functions=3, days=16)
    fleet = WatchedFleet(1, what, design)
    extra = (fleet.expected - fleet.usual)[fleet.planted.function, :, fleet.planted.start :].sum()
    everything = fleet.load[fleet.planted.start :].sum() / design.of_fleet
    assert extra / everything == pytest.approx(fleet.planted.cost, rel=1e-6)


def test_machine_days_differ_as_declared():
    """Variance of the sum over 1,000 machines, of 24 functions over 14 days, is within a fifth: 3 standard errors."""
    fleet = WatchedFleet(3, "nothing", Design(days=16, churn=0.9))
    factor = fleet._lasting(14) * fleet._daily(14)
    part = fleet.classes["part"].to_numpy()
    together = (factor * part[:, None]).sum(axis=1)
    assert together.mean() == pytest.approx(1.0, abs=0.001)
    assert together.var() * 1000 == pytest.approx(0.1**2 + 0.1**2, rel=0.2)


def test_machine_days_have_the_noise_that_is_declared():
    """Two functions of 200 and of 20 samples on each machine: the excess of 0.02 times them is within 15%.

    That is over 4 standard errors: 1,270 machines tell what lasts, half of the variance, to 4%, and 28,000 machine-days
    the whole to 1% and 3%.
    """
    design, mean = Design(), np.repeat([[200.0], [20.0]], 28, axis=1)
    seen = MachineDays.drawn(stream(5, "noise"), mean, design, np.arange(2))
    rows = seen.strays(np.arange(2), design)
    lasting = Lasting([rows]).share()
    noise = seen.spread(design, np.full(28, float(HOURS))).noise(np.arange(2), lasting)
    assert seen.totals.mean(axis=1) / design.machines == pytest.approx(mean[:, 0], rel=0.02)
    assert noise.excess == pytest.approx([4.0, 0.4], rel=0.15)
    assert lasting == pytest.approx(0.5, abs=0.05)
    assert rows["machine"].nunique() == design.machines + 27 * 10
    np.testing.assert_allclose(seen.every.sum(axis=2), seen.totals)


def test_rivals_rise_where_a_function_grows():
    counts = np.full((2, 1, 20 * HOURS), 1000.0) + np.arange(20 * HOURS) % 7
    counts[0, 0, 15 * HOURS :] *= 3.0
    assert over_week(counts)[0, 16 * HOURS :].max() > 1.3
    assert over_week(counts)[1].max() < 1.1
    path = cusum(counts)
    assert path[0, 16 * HOURS] > 20 > path[1, 14 * HOURS]
