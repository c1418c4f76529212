"""`wsc rates`: tables and runs in, machines' worth out, everything that is wrong at once."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import wsc
from scenarios.commands.app import app
from scenarios.effects import rates
from scenarios.files.faults import FaultsError
from tests.helpers.outside_rates import CONDITIONS, fleet


def command(*words):
    return CliRunner().invoke(app, ["rates", *map(str, words)])


@pytest.fixture(scope="module")
def table():
    """A fleet of three platforms, the newest of which has twice the hardware threads."""
    rows, _, _ = fleet(CONDITIONS["three_platforms"], np.random.default_rng(5))
    frame = pd.DataFrame(rows)
    return frame.assign(vcpus=frame["platform"].map({"p0": 20, "p1": 20, "p2": 40}))


def test_a_machine_is_worth_the_rate_times_the_threads(table):
    answer = wsc.rates(table)
    frame = answer.frame().set_index("platform")
    assert answer.reference == "p0"
    assert frame["worth"].tolist() == pytest.approx([frame["rate"]["p1"], 2 * frame["rate"]["p2"]])
    for name in ("rate", "worth"):
        low, high = ("low", "high") if name == "rate" else ("worth_low", "worth_high")
        assert (frame[low] < frame[name]).all()
        assert (frame[name] < frame[high]).all()
    assert set(answer.jobs()["source"]) <= {"measured", "pooled", "not seen"}


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_a_load_that_is_the_platforms_own_is_not_adjusted_for(noise):
    """Eight instances on every machine, of 24 or 48 threads: load cannot be told from the platform."""
    rng = np.random.default_rng(4)
    machine, job = np.divmod(np.arange(60 * 8), 8)
    new = machine >= 30
    rows = {"period": 1, "machine": machine, "job": job, "platform": np.where(new, "new", "old")}
    rows |= {"weight": 2.0 * np.exp(noise * rng.standard_normal(480)), "vcpus": np.where(new, 48, 24)}
    value = (1.0 + job) * np.where(new, 1.3, 1.0) * rng.lognormal(0.0, 0.05, 480)
    answer = wsc.rates(pd.DataFrame({**rows, "value": value}), against="old")
    (row,) = answer.frame().to_dict("records")
    assert row["worth_low"] < 2.6 < row["worth_high"] < row["worth_low"] + 0.3
    assert any("load differs between platforms" in note for note in answer.notes)


@pytest.mark.parametrize(
    ("machines", "told"), [((1, 1), True), ((3, 3), True), ((1, 4), True), ((1, 8), False), ((4, 4), False)]
)
def test_machines_that_are_too_few_to_be_told_from_their_platforms_are_named(machines, told):
    rng, platforms = np.random.default_rng(8), np.repeat(["new", "old"], machines)
    machine, job, day = (part.ravel() for part in np.indices((sum(machines), 6, 3)))
    rows = {"period": day, "machine": machine, "job": job, "platform": platforms[machine], "weight": 1.0}
    value = (1.0 + job) * np.where(platforms[machine] == "new", 1.3, 1.0) * rng.lognormal(0.0, 0.05, len(day))
    notes = wsc.rates(pd.DataFrame({**rows, "value": value}), against="old").notes
    assert any(note.startswith("platforms with few machines, new (") for note in notes) == told


def test_another_reference_turns_rates_over(table):
    """Rates of jobs are inverse but for what they are drawn to; those of the fleet but for the order of means."""
    forward, back = (wsc.rates(table, against=name).rates.fleet.set_index("platform") for name in ("p0", "p1"))
    assert forward["rate"]["p1"] * back["rate"]["p0"] == pytest.approx(1.0, abs=0.02)


def test_the_command_prints_what_python_answers(table, tmp_path):
    file = tmp_path / "fleet.csv"
    table.to_csv(file, index=False)
    done = command(file, "--against", "p1", "--json")
    assert done.exit_code == 0, done.output
    payload = json.loads(done.output)
    answer = wsc.rates(table, against="p1")
    assert payload["kind"], payload["reference"] == ("rates", "p1")
    assert [row["worth"] for row in payload["platforms"]] == pytest.approx(answer.frame()["worth"].tolist())
    assert len(payload["jobs"]) == len(answer.jobs())
    shown = command(file, "--against", "p1")
    assert "one machine of p2 is worth" in shown.output


def test_everything_that_is_wrong_is_told_at_once(table, tmp_path):
    file = tmp_path / "fleet.csv"
    table.assign(vcpus=np.arange(len(table)) % 2 + 1).to_csv(file, index=False)
    done = command(file, "--against", "p7", "--cluster", "row")
    assert done.exit_code == 2
    assert (
        f"{file}: vcpus: machines of one platform should have as many, got not so of platform p0 and 2 more"
        in done.output
    )
    assert "--against: no machine is of platform p7 (known: p0, p1, p2)" in done.output
    assert f"{file}: cluster: no column row" in done.output


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda rows: rows.drop(columns="platform"), 'platform: column is missing: columns={"platform": "EXPRESSION"}'),
        (lambda rows: rows[rows["platform"] == "p0"], "platform: two platforms are needed, got p0"),
        (
            lambda rows: rows.assign(platform=["p0", "p1"] * (len(rows) // 2) + ["p0"] * (len(rows) % 2)),
            "platform: a machine should have one platform in a period, got not so of machine",
        ),
    ],
)
def test_tables_that_cannot_be_compared_are_refused(table, change, problem):
    with pytest.raises(FaultsError, match=problem):
        wsc.rates(change(table))


def test_threads_that_are_no_number_above_zero_are_located(table, tmp_path):
    cells = table["vcpus"].astype(str)
    cells.iloc[:3] = ["-32", "0", "x"]
    table.assign(vcpus=cells).to_csv(tmp_path / "fleet.csv", index=False)
    ended = command(tmp_path / "fleet.csv")
    assert ended.exit_code == 2
    assert [line.split(": ", 1)[1] for line in ended.output.splitlines()] == [
        'vcpus: should be above 0, got "-32"', 'vcpus: should be above 0, got "0"', 'vcpus: should be a number, got "x"'
    ]  # fmt: skip


def test_rows_with_a_feature_are_left_out(table):
    treated = table.assign(treated=(table.index % 10 == 0).astype(int))
    answer = wsc.rates(treated)
    assert any("rows with a feature are left out" in note for note in answer.notes)


PRICES = {"platform": ["p0", "p1", "p2"], "price": [1000.0, 1500.0, 4000.0], "years": 5.0, "power_w": 300.0}


def test_work_costs_less_on_machines_that_are_worth_more(table):
    prices = pd.DataFrame(PRICES).assign(power_price=0.1)
    answer = wsc.rates(table, prices=prices)
    costs = answer.costs.set_index("platform")
    worth = answer.frame().set_index("platform")["worth"]
    assert costs.loc["p1", "cost"] == pytest.approx((1500 / (5 * 8766) + 0.03) / worth["p1"])
    assert costs["cost_low"].between(0, costs["cost"]).all()
    with pytest.raises(FaultsError, match=r"platform: should have a row for p2, got p0, p1"):
        wsc.rates(table, prices=prices.head(2))


def test_prices_may_be_a_query_that_makes_numbers_of_decimal_commas(table, tmp_path):
    table.to_csv(tmp_path / "fleet.csv", index=False)
    prices = pd.DataFrame(PRICES).assign(power_price="0,1")
    prices.to_csv(tmp_path / "prices.csv", sep=";", index=False)
    refused = command(tmp_path / "fleet.csv", "--prices", tmp_path / "prices.csv")
    assert "replace(column, ',', '.')::double" in refused.output
    number = "* REPLACE (replace(power_price, ',', '.')::double AS power_price)"
    done = command(tmp_path / "fleet.csv", "--json", "--prices", f"SELECT {number} FROM '{tmp_path}/prices.csv'")
    assert done.exit_code == 0, done.output
    costs = wsc.rates(table, prices=prices.assign(power_price=0.1)).costs
    assert [row["cost"] for row in json.loads(done.output)["costs"]] == pytest.approx(costs["cost"].tolist())


def test_without_hardware_threads_no_machine_is_worth_anything_or_costs(table):
    answer = wsc.rates(table.drop(columns="vcpus"))
    assert answer.brief().startswith("one hardware thread of p1 is worth")
    assert "one machine" not in str(answer)
    with pytest.raises(FaultsError, match="prices: are of whole machines: they need the column vcpus"):
        wsc.rates(table.drop(columns="vcpus"), prices=pd.DataFrame(PRICES).assign(power_price=0.1))


def test_a_change_costs_less_if_its_price_is_less_than_it_gains():
    """20% faster for 10% more: work costs 1.1 / 1.2, and nothing is saved that pays back where power is free."""
    rows = pd.DataFrame(
        {"period": [0, 1] * 40, "job": "a", "machine": [f"m{i // 2}" for i in range(80)], "weight": 2.0}
    )
    rows = rows.assign(treated=(rows["period"] == 1) & (rows.index < 40))
    rows["value"] = 1.0 + 0.2 * rows["treated"] + 0.001 * (rows.index % 7)
    prices = pd.DataFrame({"platform": ["without", "with"], "price": [1000.0, 1100.0], "years": 4.0, "power_w": 0.0})
    answer = wsc.effect(rows, prices=prices.assign(power_price=0.1))
    costs = answer.costs.set_index("platform")
    assert costs.loc["with", "cost"] / costs.loc["without", "cost"] == pytest.approx(1.1 / (1 + answer.change))
    assert costs.loc["with", "cost_low"] < costs.loc["with", "cost"] < costs.loc["with", "cost_high"]
    assert np.isinf(costs.loc["with", "payback_years"])
    with pytest.raises(FaultsError, match="prices: are of a relative change, not the absolute change of a mean"):
        wsc.effect(rows, prices=prices.assign(power_price=0.1), metric_kind="mean")


def test_predictions_from_one_platform_are_told_as_those_of_jobs_that_ran_on_both():
    """The model says 0.1 more of what it sees on the second platform, where alone the third job ran."""
    log, weight = np.array([[0.2, 0.3], [0.4, 0.5], [9.0, 0.4]]), np.array([[1.0, 1.0], [1.0, 1.0], [0.0, 1.0]])
    assert rates._from_all_origins(log, weight).tolist() == pytest.approx([0.25, 0.45, 0.35])
    alone = rates._from_all_origins(log, np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]))
    assert alone.tolist() == pytest.approx([0.2, 0.5, 0.35])


@pytest.mark.parametrize(("jobs", "spread", "notes"), [(5, 0.0, 2), (5, 0.1, 1), (30, 0.0, 1), (1, 0.0, 1)])
def test_few_jobs_without_a_spread_are_said_to_be_few(jobs, spread, notes):
    row = {"platform": "new", "seen": 0.4, "jobs": jobs, "spread": spread}
    told = list(rates._unseen(SimpleNamespace(fleet=pd.DataFrame([row])), predicted=False))
    assert len(told) == notes
    assert ("may be by chance" in told[-1]) == (notes == 2)


def test_values_that_cannot_be_used_are_the_fault_and_not_the_platforms():
    rows = {"period": 0, "job": "a", "machine": [1, 2], "platform": ["old", "new"], "weight": 1.0, "value": 0.0}
    with pytest.raises(FaultsError, match=r"no row has a value and a weight above 0$"):
        wsc.rates(pd.DataFrame(rows), against="old")
