"""The command that looks at an experiment any time: looks, horizons, verdicts and faults."""

import io
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

from analysis.audit.guards import AT_THE_END
from analysis.effects.estimand import Estimand
from analysis.effects.linearisation import Linearised
from analysis.effects.methods import RECOMMENDED, method
from models.randomness import stream
from scenarios.commands.app import app
from scenarios.effects.effect import effect as effect_of
from scenarios.effects.monitor import monitor as monitor_of
from scenarios.files.faults import FaultsError
from scenarios.views.terminal import show


def monitor(*sources, **options):
    """What the command prints as JSON."""
    return monitor_of(*sources, **options).payload()


def observations(change, *, periods=6, machines=40, step=1.0, waves=False):
    rng = stream(1, "observations")
    machine, job = np.divmod(np.arange(machines * 3), 3)
    rows = pd.DataFrame({"job": job, "machine": machine, "weight": 1.0 + job})
    own = 1.0 + 0.03 * rng.standard_normal(len(rows))
    tables = []
    for period in range(periods):
        started = (period >= 2) & (machine % 2 == 0) & ((machine % 4 == 0) | (not waves) | (period >= 4))
        value = own * (1 + change * started) * (1 + 0.01 * rng.standard_normal(len(rows)))
        tables.append(rows.assign(period=period * step, value=value, treated=started.astype(int)))
    return pd.concat(tables, ignore_index=True)


def written(folder, table, name="table.csv"):
    path = folder / name
    table.to_csv(path, index=False)
    return [path]


def test_a_gain_is_found_and_the_looks_are_told(tmp_path):
    payload = monitor(written(tmp_path, observations(0.05)), planned=8)
    assert (payload["kind"], payload["estimator"], payload["design"]) == ("monitor", RECOMMENDED, "concurrent")
    assert [look["period"] for look in payload["looks"]] == [2, 3, 4, 5]
    shares = [look["share"] for look in payload["looks"]]
    # Machines persist, so that the first of eight looks tells far more than an eighth.
    assert 0.2 < shares[0] < shares[3] < 1
    assert (payload["change"], payload["planned"], payload["notes"]) == ("gained", 8, [])
    assert payload["decided"] in {2, 3, 4, 5}
    assert json.loads(json.dumps(payload, allow_nan=False)) == payload
    last = payload["looks"][-1]
    assert last["low"] < last["fixed_low"] < 0.05 < last["fixed_high"] < last["high"]


def test_what_an_earlier_look_ruled_out_stands_and_is_said_beside_a_last_interval_that_holds_it(tmp_path):
    answer = monitor_of(written(tmp_path, observations(0.05)), planned=8)
    looks = answer.looks.copy()
    looks.loc[looks.index[-1], ["low", "high"]] = -0.01, 0.11
    assert replace(answer, looks=looks).verdict.startswith(
        f"faster: zero was ruled out in period {answer.decided:g}, and that stands; at the last look the interval holds"
    )


def test_a_spent_error_makes_narrower_intervals_up_to_the_planned_end(tmp_path):
    files = written(tmp_path, observations(0.05))
    answer = monitor_of(files, planned=3, spending="obrien-fleming")
    payload, any_time = answer.payload(), monitor(files, planned=3)
    assert (payload["spending"], any_time["spending"]) == ("obrien-fleming", "any-time")
    assert payload["looks"][0]["low"] < any_time["looks"][0]["low"]
    assert payload["looks"][2]["low"] > any_time["looks"][2]["low"]
    assert (payload["looks"][3]["low"], any_time["looks"][3]["low"] is None) == (None, False)
    assert payload["notes"][0].startswith("there are 4 looks, more than the 3 planned: all error is spent")
    shown = io.StringIO()
    show(answer.section(), Console(file=shown, width=160))
    assert "hold at all of 3 looks (error spent as by O'Brien and Fleming)" in shown.getvalue()
    assert not any("is known up to a confidence of 99.9%" in note for note in payload["notes"])
    assert any("99.9%" in note for note in monitor(files, spending="pocock", confidence=0.9999)["notes"])
    assert "at most 0.001" in shown.getvalue()
    assert (payload["least_p_value"], monitor(files)["least_p_value"]) == (0.001, 0.0)
    staged = monitor_of(written(tmp_path, observations(0.05, waves=True), "waves.csv"), spending="pocock").payload()
    assert any(note.startswith("increments of a staged study's estimates") for note in staged["notes"])


def test_no_change_stays_open_and_an_unplanned_horizon_is_noted(tmp_path):
    payload = monitor(written(tmp_path, observations(0.0)))
    assert (payload["change"], payload["decided"]) == ("open", None)
    assert payload["notes"] == [
        "as many looks are planned as the table has, 4; plan their number before the first look, by --planned"
    ]


def test_looks_are_taken_every_day_of_seconds_and_every_so_many_periods(tmp_path):
    hours = written(tmp_path, observations(-0.05, periods=10, step=28800.0))
    payload = monitor(hours, every="day")
    # From the third period on, 57,600 s, a day is three periods of eight hours.
    assert [look["period"] for look in payload["looks"]] == [115200, 201600, 259200]
    assert payload["change"] == "lost"
    days = written(tmp_path, observations(0.0), "days.csv")
    assert [look["period"] for look in monitor(days, every="day")["looks"]] == [2, 3, 4, 5]
    assert [look["period"] for look in monitor(days, every=2.0)["looks"]] == [3, 5]


def test_a_staged_roll_out_has_its_own_estimator(tmp_path):
    payload = monitor(written(tmp_path, observations(0.05, waves=True)))
    assert (payload["estimator"], payload["design"], payload["machines"]) == ("staged", "staged", 20)


@pytest.mark.parametrize("lost", [1, 2, 6])
def test_few_machines_that_lose_the_feature_undo_no_look(tmp_path, lost):
    """Some of 20 machines are taken out on the last day: all looks stand, and the last is that of the others."""
    table = observations(0.05)
    losing = np.unique(table.loc[table["treated"] == 1, "machine"])[:lost]
    out = table["machine"].isin(losing) & (table["period"] == 5)
    rows = table.assign(treated=table["treated"].where(~out, 0), value=table["value"] / (1 + 0.05 * out))
    payload, alone = monitor(written(tmp_path, rows), planned=8), monitor(written(tmp_path, table[~out]), planned=8)
    assert payload["looks"] == alone["looks"]
    assert payload["design"] == "concurrent"
    (note,) = (note for note in payload["notes"] if "the feature early (" in note)
    assert f"left out; {20 - lost} keep it; if" in note
    once = effect_of(written(tmp_path, rows)).payload()
    assert (once["design"], once["change"]) == ("concurrent", payload["looks"][-1]["change"])
    assert note in once["notes"]


@pytest.mark.parametrize(("out", "first"), [(0, 6), (1, 4), (10, 5)])
def test_days_after_the_end_of_an_experiment_are_no_crossover(tmp_path, out, first):
    """Some of 20 machines lose the feature before all do, for two days: looks stand as without the rows since then."""
    table = observations(0.05, periods=8)
    losing = table["machine"].isin(np.unique(table.loc[table["treated"] == 1, "machine"])[:out])
    off = (table["period"] >= 6) | (losing & (table["period"] >= first))
    lost = off & (table["treated"] == 1)
    rows = table.assign(treated=table["treated"].where(~off, 0), value=table["value"] / (1 + 0.05 * lost))
    cut = table[(table["period"] < 6) & ~lost]
    payload, alone = monitor(written(tmp_path, rows), planned=4), monitor(written(tmp_path, cut), planned=4)
    assert payload["looks"] == alone["looks"]
    (note,) = (note for note in payload["notes"] if note.startswith("no machine has the feature from"))
    assert note == "no machine has the feature from period 6 on: 240 rows of the time since are left out"
    assert sum("the feature early (" in note for note in payload["notes"]) == (out > 0)
    once = effect_of(written(tmp_path, rows)).payload()
    assert (once["design"], once["change"]) == ("concurrent", effect_of(written(tmp_path, cut)).effect.change)


def test_what_is_printed_says_the_verdict(tmp_path):
    shown = io.StringIO()
    show(monitor_of(written(tmp_path, observations(0.05)), planned=8).section(), Console(file=shown, width=160))
    assert "zero is ruled out since period" in shown.getvalue()
    assert "times as wide as those for one look, after 8 looks" in shown.getvalue()


def test_looks_past_the_plan_are_told_and_no_share_is_above_one(tmp_path):
    answer = monitor_of(written(tmp_path, observations(0.05)), planned=1)
    payload = answer.payload()
    shares = [look["share"] for look in payload["looks"]]
    assert shares[0] == 1 < shares[1] < shares[2] < shares[3]
    assert payload["notes"][0].startswith("there are 4 looks, more than the 1 planned: intervals hold")
    shown = io.StringIO()
    show(answer.section(), Console(file=shown, width=160))
    assert "100%" in shown.getvalue()
    assert not any(f"{share}00%" in shown.getvalue() for share in (2, 3, 4))
    assert shown.getvalue().count("past ") >= 3
    assert "as wide as those for one look, after 1 look." in shown.getvalue()


def test_guards_that_need_no_end_are_asked_and_shown_as_notes(tmp_path):
    table = observations(0.05)
    table.loc[table["period"] >= 4, "value"] *= 1000
    answer = monitor_of(written(tmp_path, table), planned=8)
    payload = answer.payload()
    assert [one["code"] for one in payload["findings"]] == ["unit_change"]
    assert "unusable_values" in payload["checked"]
    assert not set(payload["checked"]) & AT_THE_END
    shown = io.StringIO()
    show(answer.section(), Console(file=shown, width=160))
    assert "error unit_change: value: " in shown.getvalue()
    assert "remedy: bring all files to one unit" in shown.getvalue()


def test_looks_at_which_machines_do_not_differ_say_nothing(tmp_path):
    table = observations(0.0)
    with pytest.raises(FaultsError, match=r"no job whose machines differ in value in an arm: at least 1 is needed"):
        monitor(written(tmp_path, table.assign(value=0.1)))
    table.loc[table["period"] < 4, "value"] = 0.1
    payload = monitor(written(tmp_path, table))
    assert [look["period"] for look in payload["looks"]] == [4, 5]
    assert "no estimate until 3: no job whose machines differ" in payload["notes"][1]


KINDS = {
    "mean": lambda value: np.where(value < 0.97, 0.0, 100.0 * (value - 1.0)),
    "proportion": lambda value: (value > 1.02).astype(float),
    "ratio": lambda value: value * (1 + np.arange(len(value)) % 3),
    "p75": lambda value: 100.0 * value,
}


@pytest.mark.parametrize(
    ("kind", "change"), [("mean", None), ("proportion", "relative"), ("ratio", "absolute"), ("p75", "absolute")]
)
def test_each_look_says_what_an_estimate_of_its_rows_does_of_any_kind_of_metric(tmp_path, kind, change):
    table = observations(0.05).assign(exposure=lambda rows: 1 + np.arange(len(rows)) % 3, instance=range(720))
    table = table.assign(value=KINDS[kind](table["value"].to_numpy()))
    spending = "pocock" if kind == "p75" else "obrien-fleming"
    answer = monitor_of(written(tmp_path, table), metric_kind=kind, change=change, planned=4, spending=spending)
    payload = answer.payload()
    told = {"kind": payload["metric_kind"], "change": payload["change_kind"], "target": payload["target"]}
    for look in payload["looks"][1:2]:
        rows = table[table["period"] <= look["period"]]
        alone = effect_of([rows], metric_kind=kind, change=change)
        wanted = [alone.change, alone.low, alone.high, alone.effect.error]
        assert [look[name] for name in ("change", "fixed_low", "fixed_high", "error")] == pytest.approx(wanted)
        assert told == {"kind": kind, "change": alone.estimand.change, "target": alone.estimand.target}
        assert look["zero_ruled_out"] == (look["low"] > 0 or look["high"] < 0) == (look["p_value"] < 0.05)
    assert payload["change"] == "rose"
    assert "higher by " in answer.verdict
    what = "quantile" if kind == "p75" else kind
    assert any(f"guards that cannot look at a {what}" in note for note in payload["notes"])
    assert f"{answer.estimand.unit or '+'}" in answer._repr_html_()
    assert answer.figure().axes[0].get_ylabel() == "change so far" + ", points" * (answer.estimand.unit == "points")


def test_a_relative_change_has_the_distance_of_its_interval_from_zero():
    """The interval of a look whose arms are just so many errors apart ends at zero."""
    table = observations(0.02).assign(instance=range(720))
    table = table.assign(value=KINDS["proportion"](table["value"].to_numpy()))
    relative = Linearised.of(table, None, Estimand.of("proportion", "relative")).relative(method("adjusted"))
    low, high = relative.ends(relative.distance)
    assert (low, high > 0) == (pytest.approx(0.0, abs=1e-9), True)
    assert relative.ends(1e6) == (-np.inf, np.inf)


def test_looks_whose_level_is_zero_are_left_out_of_relative_changes(tmp_path):
    table = observations(0.05).assign(value=lambda rows: rows["value"] * (rows["period"] >= 4))
    payload = monitor(written(tmp_path, table), metric_kind="mean", change="relative")
    assert [look["period"] for look in payload["looks"]] == [4, 5]
    assert "no estimate until 2: change: relative needs a mean above 0 without the feature" in payload["notes"][1]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--metric-kind", "p99.9"), "machines in each arm are needed for p99.9"),
        (("--metric-kind", "p75", "--spending", "obrien-fleming"), "--spending: should be any-time or pocock"),
        (("--metric-kind", "mean", "--estimator", "published"), "--estimator: published estimates the relative change"),
        (("--metric-kind", "ratio"), "exposure: is missing: a ratio needs its denominators there"),
        (("--metric-kind", "mean", "--change", "relative"), "; give --change absolute"),
    ],
)
def test_looks_that_cannot_be_taken_are_refused(tmp_path, words, told):
    table = observations(0.05).assign(value=lambda rows: rows["value"] - 1.1)
    ended = CliRunner().invoke(app, ["monitor", *map(str, written(tmp_path, table)), *words])
    assert ended.exit_code == 2
    assert told in ended.output


def test_faults_are_located_and_all_told(tmp_path):
    table = observations(0.0).astype({"treated": object})
    table.loc[0, "treated"] = "x"
    table.loc[1, "weight"] = 1e60
    with pytest.raises(FaultsError) as caught:
        monitor(written(tmp_path, table))
    assert [line.partition("table.csv:")[2] for line in str(caught.value).splitlines()] == [
        '2:6: treated: should be 0 or 1, true or false, got "x"',
        '3:3: weight: should be at most 1e+50, got "1e+60"',
    ]
    with pytest.raises(FaultsError, match=r"table.csv: nothing has the feature: no row has treated 1"):
        monitor(written(tmp_path, observations(0.0).assign(treated=0)))
    said = CliRunner().invoke(app, ["monitor", *map(str, written(tmp_path, observations(0.0))), "--every", "never"])
    assert (said.exit_code, said.stderr) == (
        2,
        '--every: should be period, day, or a number above 0 in the unit of the periods, got "never"\n',
    )
    with pytest.raises(ValueError, match="estimator: should be one of"):
        monitor(written(tmp_path, observations(0.0)), estimator="best")


@pytest.mark.parametrize("confidence", [1e-6, 0.01, 1 - 1e-15])
def test_any_confidence_has_intervals(tmp_path, confidence):
    looks = monitor(written(tmp_path, observations(0.05)), confidence=confidence)["looks"]
    assert all(look["low"] <= look["fixed_low"] <= look["fixed_high"] <= look["high"] for look in looks)
    with pytest.raises(ValueError, match="confidence must be at least 1e-06 and below 1, got 1e-300"):
        monitor(written(tmp_path, observations(0.05)), confidence=1e-300)


def test_an_estimator_that_is_asked_for_is_taken_of_a_staged_roll_out_too(tmp_path):
    rows = observations(0.05, waves=True)
    later = rows["machine"].isin(rows.loc[rows["period"].eq(4) & rows["treated"].eq(1), "machine"])
    kept = written(tmp_path, rows[~later | rows["period"].ge(4) | rows["machine"].mod(4).eq(0)])
    assert monitor(kept)["estimator"] == RECOMMENDED
    assert monitor(kept, estimator="cuped")["estimator"] == "cuped"


def test_after_an_error_among_the_findings_there_is_no_verdict(tmp_path):
    table = observations(0.05)
    table.loc[::3, "value"] *= -1
    ended = CliRunner().invoke(app, ["monitor", *map(str, written(tmp_path, table))])
    assert ended.exit_code == 1
    assert "no verdict: fix unusable_values first; the tables as they are give +" in ended.output
    assert not any(word in ended.output for word in ("faster", "ruled out"))
    assert monitor(written(tmp_path, table))["trusted"] is False
