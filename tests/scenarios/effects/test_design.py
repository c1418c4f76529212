"""`wsc design`: tables or a scenario in, ranked designs out."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis.effects.methods import method
from analysis.effects.past import Past
from analysis.effects.rehearsals import Assumed, spans
from analysis.tables.recipe import Recipe
from scenarios.commands.app import app
from scenarios.effects.design import DesignQuestion
from scenarios.effects.design import design as design_of
from scenarios.effects.effect import effect as effect_of
from scenarios.effects.recorded_past import recorded_past
from scenarios.effects.scorecard import corners
from scenarios.files.faults import FaultsError


def effect(*sources, **options):
    """What the command prints as JSON."""
    return effect_of(*sources, **options).payload()


def design(*sources, **options):
    """What the command prints as JSON."""
    return design_of(*sources, **options).payload()


def fleet(periods=4, machines=60, sd=0.02, seed=1):
    """Return a fleet's observations: four jobs on every machine, white noise between periods."""
    rng = np.random.default_rng(seed)
    machine, job = np.divmod(np.arange(4 * machines), 4)
    own = 1.0 + 0.05 * rng.standard_normal(4 * machines)
    return pd.concat(
        [
            pd.DataFrame({"period": period, "job": job, "machine": machine, "weight": 1.0 + job}).assign(
                value=own * (1 + sd * rng.standard_normal(4 * machines))
            )
            for period in range(periods)
        ],
        ignore_index=True,
    )


def quiet(_what, _share):
    """Tell nobody."""


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "past.csv"
    fleet().to_csv(file, index=False)
    return file


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What `wsc design --json` says of the table."""
    file = tmp_path_factory.mktemp("past") / "past.csv"
    fleet().to_csv(file, index=False)
    result = invoke("design", file, "--detect", "2%", "--draws", "100", "--days", "1", "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def invoke(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments])


def test_json_keeps_its_contract_and_the_first_design_is_the_cheapest_trusted(said):
    payload = said
    keys = {"design", "estimator", "machines", "machine_hours", "margin", "power", "coverage", "why"}
    assert all(keys <= row.keys() for row in payload["designs"])
    found = [row for row in payload["designs"] if row["trusted"] and row["machines"]]
    assert payload["designs"][0] == found[0]
    assert found[0]["machine_hours"] == min(row["machine_hours"] for row in found)
    assert {row["estimator"] for row in payload["designs"]} == {"adjusted", "cuped", "published", "balanced", "paired"}
    assert payload["machines"] == 60


def test_a_fleet_of_two_machines_is_said_to_have_too_few():
    rows = fleet()
    answer = design_of(
        [rows[rows["machine"].isin(rows["machine"].unique()[:2])]], DesignQuestion(0.02, days=1.0), None, quiet
    )
    assert not answer.designs
    assert answer.brief() == "the fleet has too few machines for any design"
    assert "No design has intervals" not in "".join(str(block) for block in answer.section().blocks)


def test_a_fleet_that_is_too_small_says_so_and_what_it_sees(table):
    result = invoke("design", table, "--detect", "0.05%", "--draws", "100", "--days", "1")
    assert result.exit_code == 1, result.output
    assert "The fleet is too small for that." in result.output
    assert "30 too few" in result.output
    payload = design([table], DesignQuestion(detect=0.0005, days=1.0, draws=100), None, quiet)
    assert payload["designs"][0]["machines"] is None
    assert payload["smallest"] > 0.0005


def test_a_fleet_that_shows_no_change_at_all_says_none():
    answer = design_of([fleet()], DesignQuestion(detect=0.0005, days=1.0, draws=100), None, quiet)
    shows_none = replace(answer, smallest=math.inf)
    assert shows_none.brief() == "the fleet is too small for a change of 0.05%, it shows none"


def test_an_experiment_on_a_quantile_is_planned_on_what_each_row_moves_it_by():
    rows = fleet()
    question = DesignQuestion(0.02, days=1.0, draws=100, metric_kind="p50")
    payload = design_of([rows], question, None, quiet).payload()
    assert payload["metric_kind"] == "p50"
    assert any(note.startswith("how dense values are at the quantile") for note in payload["notes"])
    of_rate = {row["estimator"] for row in payload["designs"]}
    assert "adjusted" in of_rate
    assert not {"shrunken", "random-effects", "published"} & of_rate
    margins = [row["margin"] for row in payload["designs"]]
    twice = design_of([rows.assign(value=2 * rows["value"])], question, None, quiet).payload()
    assert [row["margin"] for row in twice["designs"]] == pytest.approx(margins)
    with pytest.raises(FaultsError, match=r"metric_kind: \d+ machines in each arm are needed for p99\.99"):
        design_of([rows], replace(question, metric_kind="p99.99"), None, quiet)


def test_a_quantile_between_the_levels_of_jobs_that_every_machine_has_is_not_planned():
    """Odd jobs, which hold 60% of the quota, are at twice the level of the others."""
    rows = fleet(machines=24)
    rows["value"] *= 1.0 + rows["job"] % 2
    with pytest.raises(FaultsError, match=r"metric_kind: .*p40 lies between the jobs' levels"):
        design_of([rows], DesignQuestion(0.02, days=1.0, draws=100, metric_kind="p40"), None, quiet)


def test_a_plan_for_proportions_says_whose_errors_it_has():
    rows = fleet().assign(value=lambda table: (table["value"] > 1.0).astype(float))
    notes = design_of([rows], DesignQuestion(0.2, days=1.0, draws=100, metric_kind="proportion"), None, quiet).notes
    assert any(note.startswith("errors are those of the past's share of yes") for note in notes)


def test_only_what_was_before_the_feature_is_used(tmp_path):
    rows = fleet()
    rows["treated"] = ((rows["period"] == 3) & (rows["machine"] < 20)).astype(int)
    rows.to_csv(tmp_path / "seen.csv", index=False)
    payload = design([tmp_path / "seen.csv"], DesignQuestion(0.02, days=1.0, draws=100), None, quiet)
    assert payload["periods"] == 3
    assert any("only the periods before 3 are used" in note for note in payload["notes"])


def test_a_crossover_needs_short_periods(table, tmp_path):
    with pytest.raises(FaultsError, match=r"^crossover: needs periods of two hours or less, got periods of 24 h"):
        design([table], DesignQuestion(0.02, crossover=True), None, quiet)
    fleet(periods=6).assign(period=lambda rows: 3600.0 * rows["period"]).to_csv(tmp_path / "hours.csv", index=False)
    payload = design([tmp_path / "hours.csv"], DesignQuestion(0.02, days=0.25, crossover=True, draws=100), None, quiet)
    assert "crossover of 6 periods" in {row["design"] for row in payload["designs"]}


@pytest.mark.parametrize(
    ("kind", "value", "detect"),
    [
        ("mean", lambda value: 50.0 * (value - 1.0), 1.0),
        ("ratio", lambda value: 3.0 * value, 0.02),
        ("proportion", lambda value: value / 2.0, 0.01),
    ],
)
def test_kinds_of_metrics_are_planned_as_the_same_values_of_a_rate_are(said, kind, value, detect):
    """A mean 50 times as large less 50, and a ratio whose denominators are all 3: the designs need as many machines."""
    rows = fleet().assign(exposure=3.0)
    answer = design_of(
        [rows.assign(value=value(rows["value"]))],
        DesignQuestion(detect, days=1.0, draws=100, metric_kind=kind),
        None,
        quiet,
    )
    payload = answer.payload()
    sizes = {(row["design"], row["estimator"]): row["machines"] for row in payload["designs"]}
    for row in said["designs"]:
        if row["estimator"] in {"adjusted", "cuped"}:
            assert sizes[row["design"], row["estimator"]] == pytest.approx(row["machines"], rel=0.2, abs=3)
    first, of_rate = payload["designs"][0], said["designs"][0]
    assert first["margin"] == pytest.approx(of_rate["margin"] * detect / 0.02, rel=0.25)
    assert "published" not in {row["estimator"] for row in payload["designs"]}
    assert f" --metric-kind {kind}" in answer._repr_html_()
    amount = {"mean": "a change of 1 ", "ratio": "a change of 2.00% ", "proportion": "a change of 1.00 points "}[kind]
    assert amount in answer._repr_html_()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("--detect", "2%"),
            "value: should be above 0; if it is right, give --metric-kind mean (or proportion, or ratio)",
        ),
        (
            ("--detect", "2", "--metric-kind", "p50", "--change", "absolute", "--crossover"),
            "--crossover: is not planned for a quantile",
        ),
        (("--detect", "2", "--metric-kind", "proportion"), "--detect: should be a share between 0 and 1, such as 3%"),
        (("--detect", "2%", "--metric-kind", "ratio"), "exposure: is missing: a ratio needs its denominators there"),
        (
            ("--detect", "2%", "--metric-kind", "ratio", "--crossover"),
            "--crossover: is not planned for a ratio of sums",
        ),
        (
            ("--detect", "2%", "--metric-kind", "mean", "--change", "relative"),
            "--change: relative needs a mean above 0",
        ),
    ],
)
def test_what_cannot_be_planned_is_refused(tmp_path, words, told):
    fleet().assign(value=lambda rows: rows["value"] - 2.0).to_csv(tmp_path / "past.csv", index=False)
    ended = invoke("design", tmp_path / "past.csv", *words)
    assert ended.exit_code == 2
    assert told in ended.output


def test_a_scenario_is_planned_for_a_rate():
    ended = invoke("design", "small", "--detect", "2%", "--metric-kind", "mean")
    assert (ended.exit_code, "--metric-kind: is of tables" in ended.output) == (2, True)


@pytest.mark.parametrize(("name", "read"), [("plan.csv", pd.read_csv), ("plan.parquet", pd.read_parquet)])
def test_machines_of_the_first_design_are_drawn_into_a_file_that_may_hold_a_former_plan(table, tmp_path, name, read):
    file = tmp_path / name
    words = ("design", table, "--detect", "2%", "--draws", "100", "--days", "1", "--assign", file, "--json")
    held = []
    for seed in (1, 2):
        result = invoke(*words, "--seed", seed)
        assert result.exit_code == 0, result.output
        payload = json.loads(result.stdout)
        assert payload["assigned"] == {"file": str(file), "design": payload["designs"][0]["design"]}
        made = read(file)
        assert made.columns.tolist() == ["machine", "start_s", "end_s", "treated"]
        assert made["treated"].sum() == payload["designs"][0]["machines"]
        held.append(file.read_bytes())
    assert held[0] != held[1]


def test_where_no_design_finds_the_change_nothing_is_drawn(table, tmp_path):
    file = tmp_path / "plan.csv"
    result = invoke("design", table, "--detect", "0.05%", "--draws", "100", "--days", "1", "--assign", file)
    assert result.exit_code == 1, result.output
    assert "No machines are drawn, and" in result.output
    assert "is not written." in " ".join(result.output.split())
    assert not file.exists()


@pytest.mark.parametrize("name", ["plan.xls", "none/plan.csv"])
def test_a_place_for_the_machines_that_cannot_be_is_told_before_anything_is_done(table, tmp_path, name):
    result = invoke("design", table, "--detect", "2%", "--assign", tmp_path / name)
    assert result.exit_code == 2
    assert "--assign: " in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--detect", "0"], "--detect: should be"),
        (["--detect", "1%", "--power", "1"], "--power: should be"),
        (["--detect", "1%", "--draws", "5"], "--draws: should be at least 100"),
        (["--detect", "1%", "--days", "0"], "--days: should be"),
        (["--detect", "1%", "--spread", "-1"], "--spread: should be"),
    ],
)
def test_options_that_make_no_sense_end_in_a_plain_line(table, arguments, said):
    result = invoke("design", table, *arguments)
    assert result.exit_code == 2
    assert said in result.output
    assert "Traceback" not in result.output


def test_one_period_and_unknown_sources_are_refused(tmp_path):
    fleet(periods=1).to_csv(tmp_path / "one.csv", index=False)
    for source, said in ((tmp_path / "one.csv", "at least two periods"), ("no_such", "no_such")):
        result = invoke("design", source, "--detect", "1%")
        assert result.exit_code == 2
        assert said in result.output
    result = invoke("design", "queue_small", "--detect", "1%")
    assert result.exit_code == 2
    assert "should be fleet" in result.output
    result = invoke("design", "fortnight", "--detect", "1%", "--where", "job = 3")
    assert result.exit_code == 2
    assert "fortnight: is a scenario, which is simulated as a whole" in result.output


def test_a_scenario_is_simulated_without_its_feature(tmp_path):
    file = tmp_path / "tiny.yaml"
    file.write_text(
        "extends: fortnight\nfleet: {machines: 40}\npopulation: {jobs: 60, common_jobs: 40}\n"
        "analyses: {wsmeter: {machines: [5]}}\n"
    )
    payload = design([file], DesignQuestion(0.05, days=1.0, crossover=True, draws=100), None, quiet)
    assert payload["machines"] == 40
    assert {row["design"] for row in payload["designs"]} >= {
        "1 day after 1 day",
        f"crossover of {round(86400 / corners.CROSSOVER_PERIOD_S)} periods",
    }


@pytest.mark.parametrize("which", ["table", "jobs", "link"])
def test_what_is_read_is_not_overwritten_by_who_gets_the_feature(table, tmp_path, which):
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("job,quota,instances\n0,60,60\n1,120,60\n2,180,60\n3,240,60\n")
    (tmp_path / "link.csv").symlink_to(table)
    before = {file: file.read_bytes() for file in (table, jobs)}
    file = {"table": table, "jobs": jobs, "link": tmp_path / "link.csv"}[which]
    result = invoke("design", table, "--jobs", jobs, "--detect", "2%", "--assign", file)
    assert (result.exit_code, result.output) == (2, f"--assign: would overwrite a file that is read, got {file}\n")
    assert {file: file.read_bytes() for file in before} == before


@pytest.mark.parametrize("name", ["scores.csv", "scores.parquet", "empty.csv", "torn.parquet"])
def test_a_file_that_is_no_former_plan_stays(table, tmp_path, name):
    file = tmp_path / name
    scores = pd.DataFrame({"machine": [1], "score": [2.0]})
    write = {
        "scores.csv": lambda: scores.to_csv(file, index=False),
        "scores.parquet": lambda: scores.to_parquet(file),
        "empty.csv": file.touch,
        "torn.parquet": lambda: file.write_bytes(b"PAR1 and no more"),
    }
    write[name]()
    before = file.read_bytes()
    result = invoke("design", table, "--detect", "2%", "--assign", file)
    assert result.exit_code == 2
    assert result.output.startswith(
        "--assign: is there and holds no former table of the kind (machine, start_s, end_s, treated)"
    )
    assert file.read_bytes() == before


def test_it_is_said_how_the_result_of_each_design_is_estimated(table, said):
    words = ("design", table, "--detect", "2%", "--draws", "100", "--days", "1")
    rows = said["designs"]
    assert {row["estimator"]: row["afterwards"] for row in rows} == {
        "adjusted": "adjusted",
        "cuped": "cuped",
        "published": "published",
        "balanced": "adjusted",
        "paired": "adjusted",
    }
    text = " ".join(invoke(*words).output.split())
    assert f"After the first design's experiment: wsc effect … --estimator {rows[0]['afterwards']}" in text
    for own in ("balanced", "paired"):
        assert f"{own}: afterwards use wsc effect --estimator adjusted" in text


def test_a_past_that_never_changes_is_told(tmp_path):
    file = tmp_path / "past.csv"
    for sd, told in ((0.0, True), (0.02, False)):
        fleet(sd=sd).to_csv(file, index=False)
        _, notes = recorded_past([file], None, None, Recipe())
        assert (
            any("100% of the pairs of job and machine have the same value in every period" in note for note in notes)
            == told
        )


def test_a_note_of_several_designs_stands_once(table):
    text = " ".join(
        invoke("design", table, "--detect", "2%", "--draws", "100", "--days", "1", "--days", "2").output.split()
    )
    assert text.count("but its interval does not use the balancing") == 1


def _own_and_afterwards(past, own, draws, machines):
    """Return the latest course of a design with an estimator of its own, its draws, and what both estimators say."""
    made = next(each for each in spans(past, 1.0, Assumed(0.05, 0.0, 0.0), []) if each.estimator == own)
    course = made.courses[-1]
    estimator, treated = course.arrange(machines, draws, np.random.default_rng(3))
    both = [one.many(course.cells, treated) for one in (estimator, method("adjusted"))]
    return course, treated, *both


def _experiment(past, folder, machines, treated):
    """Write the tables of an experiment on the latest two days of the past, with an effect of 5%."""
    rows = past.between(len(past.periods) - 2, len(past.periods))
    on = rows["machine"].isin(machines[treated]) & (rows["period"] == past.periods[-1])
    rows = rows.assign(treated=on.astype(int), value=rows["value"] * np.where(on, 1.05, 1.0))
    rows.to_csv(folder / "seen.csv", index=False)
    return folder / "seen.csv"


@pytest.mark.parametrize(("own", "afterwards"), [("balanced", "adjusted"), ("stratified", "stratified")])
def test_the_estimator_named_says_of_the_tables_what_the_rehearsal_says_of_the_same_draw(tmp_path, own, afterwards):
    rows = fleet(machines=90).assign(treated=0)
    rows["platform"] = np.where(rows["machine"] % 3 == 0, "new", "old")
    rows["value"] *= np.where(rows["platform"] == "new", 1.5, 1.0)
    past = Past(rows, 86400.0)
    course, treated, said, _ = _own_and_afterwards(past, own, 1, 30)
    found = effect([_experiment(past, tmp_path, course.cells.machines, treated[0])], estimator=afterwards)
    assert found["change"] == pytest.approx(said.change[0], abs=1e-9)
    if own == afterwards:
        assert found["error"] == pytest.approx(said.error[0], rel=1e-9)
        assert found["freedom"] == pytest.approx(said.freedom[0], rel=1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize("own", ["balanced", "paired"])
def test_adjusted_covers_the_truth_in_designs_with_an_estimator_of_their_own(own):
    """400 draws of each; that 95% intervals hold the truth in fewer than 92% of them has a chance of 0.3%."""
    past = Past(fleet(machines=90).assign(treated=0), 86400.0)
    course, _, _, said = _own_and_afterwards(past, own, 400, 30)
    assert (abs(said.change - course.truth) <= said.margin(0.95)).mean() > 0.92


def test_rows_that_are_there_twice_name_a_query_that_takes_them_once(table):
    rows = pd.read_csv(table)
    pd.concat([rows, rows.iloc[:3]]).to_csv(table, index=False)
    with pytest.raises(FaultsError, match=r"makes one row of several: SELECT DISTINCT \* FROM"):
        design([table], DesignQuestion(0.05, draws=100), None, quiet)


@pytest.mark.parametrize(
    ("saturations", "estimator", "shares"),
    [
        ("0,100%", "whole-domains", {0.0, 1.0}),
        ("0,50%,100%", "whole-domains", {0.0, 0.5, 1.0}),
        ("25%,75%", "exposure", {0.25, 0.75}),
    ],
)
def test_domains_are_drawn_where_machines_disturb_each_other_and_the_price_is_told(
    tmp_path, saturations, estimator, shares
):
    file, plan = tmp_path / "past.csv", tmp_path / "plan.csv"
    fleet(machines=96).assign(hall=lambda rows: rows["machine"] // 4).to_csv(file, index=False)
    words = ["--detect", "4%", "--draws", "100", "--days", "1", "--domain", "hall", "--saturations", saturations]
    result = invoke("design", file, *words, "--assign", plan, "--json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    (planned,) = said["designs"]
    assert (planned["estimator"], planned["afterwards"]) == (estimator, "adjusted")
    price = said["domains"]
    assert (price["domain"], price["machines_of_a_domain"]) == ("hall", 4)
    assert 0 <= price["correlation"] < 0.2
    assert price["price"] == pytest.approx((1 + 3 * price["correlation"]) ** 0.5)
    assert 1 < price["rehearsed_price"] < (1.5 if saturations == "0,100%" else 4)
    drawn = pd.read_csv(plan)
    assert set((drawn.groupby(drawn["machine"] // 4)["treated"].mean()).tolist()) == shares


def test_the_price_of_domains_follows_the_design_effect():
    """Halls with a course of their own: margins widen by the root of 1 + (m - 1) rho."""
    past = fleet(machines=240, sd=0.01)
    rng = np.random.default_rng(4)
    course = pd.Series(0.01 * rng.standard_normal(4 * 24))
    hall = past["machine"] // 10
    past["value"] *= 1.0 + course.reindex(past["period"] * 24 + hall).to_numpy()
    question = DesignQuestion(detect=0.02, days=1.0, draws=100, domain="hall")
    price = design([past.assign(hall=hall)], question, None, quiet)["domains"]
    assert price["correlation"] > 0.1
    assert price["rehearsed_price"] == pytest.approx(price["price"], rel=0.25)


def test_no_more_machines_are_planned_than_where_as_many_domains_have_each_saturation():
    past = fleet(machines=200, sd=0.02).assign(hall=lambda rows: rows["machine"] // 10)
    question = DesignQuestion(detect=0.01, days=1.0, draws=100, domain="hall", saturations=(0.0, 0.5))
    (planned,) = design([past], question, None, quiet)["designs"]
    assert (planned["machines"], planned["smallest"]) == (None, pytest.approx(0.0128, abs=0.002))


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ({"domain": "hall", "crossover": True}, "crossover: is left out beside --domain"),
        ({"domain": "hall", "saturations": (0.5,)}, "saturations: should be two shares or more"),
        ({"domain": "hall", "saturations": (0.5, 0.5)}, "saturations: should be two shares or more"),
        ({"domain": "job"}, "domain: a machine should have one value of job throughout"),
        ({"domain": "rack"}, "domain: no column rack, got domain"),
        ({"domain": "machine"}, "domain: every machine has one machine"),
        ({"domain": "hall", "saturations": (0.0, 0.01)}, "differ by a machine of a domain or more: .* has 5 machines"),
        ({"saturations": (0.0, 0.5)}, "saturations: are shares of a domain's machines"),
        ({"domain": "hall", "saturations": (0.0, 0.2, 0.5, 1.0)}, "domains are needed"),
    ],
)
def test_domains_that_cannot_be_drawn_are_refused(question, told):
    past = fleet(machines=30).assign(hall=lambda rows: rows["machine"] // 5, domain=lambda rows: rows["hall"] % 2)
    with pytest.raises(FaultsError, match=told):
        design([past], DesignQuestion(detect=0.02, days=1.0, draws=100, **question), None, quiet)
