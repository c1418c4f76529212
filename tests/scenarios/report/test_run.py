"""Reports of runs of every kind: the numbers are those of the commands, and nothing is taken from elsewhere."""

import csv
import functools
import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis.audit.case import Audit
from analysis.audit.findings import Finding
from analysis.effects.estimand import RATE
from analysis.effects.study import Effect
from models.fleet.world import Feature
from scenarios.commands.app import app
from scenarios.crosscheck import crosscheck
from scenarios.effects.effect import EffectAnswer
from scenarios.effects.effect import effect as effect_of
from scenarios.files.loader import load, settings
from scenarios.profiling.served import services
from scenarios.report import effect as report_of_effect
from scenarios.report import run
from scenarios.report.subject import Subject, composed
from scenarios.runs.execution import measure, obtain, reopen
from scenarios.views.section import Command, Says, Table, Verdict
from scenarios.wsmeter.measure import FleetRun
from tests.helpers.report_pages import KINDS, Page, made


def effect(*sources, **options):
    """What the command prints as JSON."""
    return effect_of(*sources, **options).payload()


runner = CliRunner()
HOSTILE = "</td></script><script>alert('x')</script><img src=x onerror=alert(1)> & \"q\""


@pytest.fixture(scope="module", autouse=True)
def _without_moves():
    """Moving jobs simulates the fleet again and has tests of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crosscheck, "PARTS", {name: part for name, part in crosscheck.PARTS.items() if name != "moves"})
        yield


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """Runs by name, each with its report as a page and as JSON."""
    out = tmp_path_factory.mktemp("runs")
    return {name: report(made(name, out).path) for name in KINDS}


def report(path, *options):
    done = runner.invoke(app, ["report", str(path), "--json", *options])
    assert done.exit_code == 0, done.output
    payload = json.loads(done.stdout)
    with open(payload["file"], encoding="utf-8") as file:
        return path, Page(file.read()), payload


@pytest.fixture
def copied(reported, tmp_path):
    def copy(name):
        return shutil.copytree(reported[name][0], tmp_path / "copy")

    return copy


@functools.cache
def said(path):
    """What `wsc run RUN --json` says."""
    return measure(*reopen(path), path.parent, lambda _what, _share: None).payload()


def verdict(payload, lens):
    (found,) = [one for one in payload["verdicts"] if one["lens"] == lens]
    return found


def percent(value, digits=2):
    return f"{100 * value:.{digits}f}%"


def signed(value):
    return ("+" if value >= 0 else "") + percent(value)


@pytest.mark.parametrize("name", KINDS)
def test_a_page_needs_nothing_but_itself(reported, name):
    path, page, payload = reported[name]
    assert payload["file"] == str(path / "report.html")
    assert not {"script", "iframe", "object", "base", "form"} & set(page.tags)
    assert page.tags.count("link") == 1, "the empty icon, whose address holds it"
    assert all(address.startswith(("data:", "#")) for address in page.addresses)
    assert page.open == []
    assert page.tags.count("h1") == 1
    assert name in page.said


def test_a_fleet_is_reported_in_the_metric_that_is_asked_for(copied):
    path = copied("small")
    _, page, payload = report(path, "--metric", "ipc", "--out", str(path / "cycles.html"))
    assert "ipc" in [
        section["payload"]["metric"] for section in payload["sections"] if "test clusters" in section["title"]
    ]
    assert f"wsc run {path} --metric ipc" in page.said


def test_jobs_that_a_scenario_names_are_reported_in_the_metric_of_all_others(reported):
    scenario, run_ = reopen(reported["small"][0])
    names = tuple(run_.table("jobs", ["name"])["name"][:9])
    for metric in ("ipc", "ips"):
        analyses = replace(scenario.analyses, wsmeter=replace(scenario.analyses.wsmeter, jobs=names, metric=metric))
        subject = Subject(replace(scenario, analyses=analyses), run_)
        (section,) = report_of_effect.concluded(subject, lambda _what, _share: None)
        assert section.answer.metric == metric
        assert f"--metric {metric}" in section.of(Command)[0].text
        assert any(f"over the jobs {', '.join(names)}" in said.text for said in section.of(Says))


def test_a_metric_is_of_fleets_alone(copied, tmp_path):
    for path, why in ((copied("queue_small"), "--metric is only for fleets"), (tmp_path, "--metric: is only for")):
        done = runner.invoke(app, ["report", str(path), "--metric", "ipc"])
        assert done.exit_code == 2
        assert why in done.stderr


@pytest.mark.parametrize("name", KINDS)
def test_verdicts_come_first_one_a_line(reported, name):
    _, page, payload = reported[name]
    assert payload["verdicts"]
    first = page.rows[: len(payload["verdicts"])]
    words = {True: "holds", False: "does not hold", None: ""}
    marks = [f"{words[one['holds']]} {one['undecided']}".rstrip() for one in payload["verdicts"]]
    assert first == [[one["lens"], one["says"], mark] for one, mark in zip(payload["verdicts"], marks, strict=True)]


def test_a_fleet_has_its_estimates(reported):
    path, page, payload = reported["small"]
    made_, true = said(path), said(path)["truth"]["change"]
    assert len(made_["estimates"]) == 6
    for row in made_["estimates"]:
        cell = f"{signed(row['change'])} ±{percent(row['margin'])}"
        assert page.has_row(str(row["machines"]), row["estimator"], cell)
    last = [row for row in made_["estimates"] if row["estimator"] == "wsmeter"][-1]
    told = verdict(payload, "WSMeter")
    assert signed(last["change"]) in told["says"]
    assert signed(true) in told["says"]
    assert told["holds"] == (last["low"] <= true <= last["high"])
    assert f"{percent(made_['fleet']['utilisation'], 0)} used" in page.said


def test_a_feature_has_the_recommended_estimate_and_what_guards_say(reported):
    path, page, payload = reported["small"]
    made_ = effect([path])
    assert percent(abs(made_["change"])) in verdict(payload, "The feature")["says"]
    assert made_["findings"]
    seen_to = {"instances_independent": "none is needed: adjusted takes machines as clusters"}
    for one in made_["findings"]:
        assert one["what"] in page.said
        assert seen_to.get(one["code"], one["remedy"]) in page.said


def test_a_fleet_has_its_hours(reported):
    path, page, _ = reported["small"]
    epochs, machines = (pd.read_parquet(path / f"{name}.parquet") for name in ("epochs", "machines"))
    hour = epochs[(epochs["start_s"] >= 5 * 3600) & (epochs["start_s"] < 6 * 3600)]
    used = hour["cpu_s"].sum() / (machines["vcpus"].sum() * 3600)
    assert page.has_row("5", percent(used, 1), f"{hour['energy_j'].sum() / 3600 / 1000:.1f}")


def test_a_profiled_day_has_every_lens(reported):
    path, page, payload = reported["one_day"]
    lenses = ["The profile", "The feature", "The fleet", "WSMeter", "Requests", "New processors", "Agreement"]
    assert [one["lens"] for one in payload["verdicts"]] == lenses
    made_ = said(path)
    for row in made_["functions"]:
        assert page.has_row(row["function"], row["image"], percent(row["share"]), percent(row["true"]))
    for row in made_["applications"]:
        assert page.has_row(row["application"], percent(row["share"]), f"{row['cpi']:.3f}", f"{row['cpi_true']:.3f}")
    for row in services(reopen(path)[1]):
        assert page.has_row(row.service, f"{row.requests:,}", percent(row.utilisation, 1))
    assert page.said.count("1 day") >= 2
    assert "1 days" not in page.said


def test_core_seconds_and_tiny_shares_are_told_in_words(reported):
    path, page, payload = reported["one_day"]
    seconds, says = said(path)["core_seconds"], verdict(payload, "The profile")["says"]
    scale = {"": 1.0, " million": 1e6, " billion": 1e9}
    found = re.findall(r"([\d.,]+\d)( [mb]illion)?", says)
    told = [float(number.replace(",", "")) * scale[word] for number, word in found]
    for name in ("core_s", "low", "high", "monitor_s"):
        assert any(one == pytest.approx(seconds[name], rel=1e-3) for one in told), name
    assert not re.search(r"\de[+-]\d", says)
    (overhead,) = re.findall(r"Profiling took (\S+) of", page.said)
    assert "e" not in overhead


def test_a_single_day_has_no_stability(reported):
    _, page, payload = reported["one_day"]
    assert "The profile's stability" not in [one["title"] for one in payload["sections"]]
    assert "to the day before" not in page.said


def test_who_gained_is_named(reported, monkeypatch):
    path = reported["one_day"][0]
    scenario, found = reopen(path)
    names = pd.read_parquet(path / "jobs.parquet").set_index("job")["name"]
    made_ = effect_of([path], by_job=True, metric="ips")
    verdicts = [("gained", "lost")[i % 2] for i in range(len(made_.per_job))]
    made_ = replace(made_, per_job=made_.per_job.assign(verdict=verdicts))
    monkeypatch.setattr(report_of_effect, "effect", lambda *_, **__: made_)
    (section,) = report_of_effect.concluded(Subject(scenario, found), lambda _what, _share: None)
    told = {row[0].text: row[2].text for table in section.of(Table) for row in table.rows}
    expected = {names[row["job"]]: percent(row["quota_share"], 1) for row in made_.per_job.to_dict("records")}
    assert told
    assert told.items() <= expected.items()
    assert str(section.answer.payload()["per_job"]) == str(made_.payload()["per_job"])


def test_a_verdict_that_is_withheld_is_neither_right_nor_wrong():
    estimate = Effect("adjusted", "concurrent", 4, 4, 0.05, 0.0, 0.1, 0.05, 0.02, 9.0, jobs=1, quota_coverage=1.0)
    wrong = Finding("unit_change", "error", "another unit", {}, "mend it")
    answer = EffectAnswer(estimate, 0.95, "machine", RATE, 1, None, "ips", 0.05, Audit((wrong,), ()), None, ())
    verdict_ = report_of_effect._verdict(Feature("upgrade"), answer)
    assert "no verdict: fix unit_change first" in verdict_.says
    assert verdict_.holds is None
    sound = replace(answer, audit=Audit((), ()))
    assert report_of_effect._verdict(Feature("upgrade"), sound).holds is True


def test_requests_without_a_departure_and_the_median_are_told(reported):
    path, page, payload = reported["one_day"]
    requests, instances, jobs = (
        pd.read_parquet(path / f"{name}.parquet") for name in ("stay_requests", "instances", "jobs")
    )
    of = requests.merge(instances[["residence", "job"]], on="residence").merge(jobs[["job", "name"]], on="job")
    left = int(of["departure_s"].isna().sum())
    assert left
    assert f"{left:,} of {len(of):,} requests have no departure" in page.said
    for name, part in of.groupby("name"):
        median_s = (part["departure_s"] - part["arrival_s"]).median()
        unfinished = int(part["departure_s"].isna().sum())
        assert page.has_row(name, f"{len(part):,}", f"{unfinished:,}", f"{median_s:.2f} s")
        assert f"median {median_s:.2f} s" in verdict(payload, "Requests")["says"]


def test_a_profiled_day_has_every_check(reported):
    path, page, payload = reported["one_day"]
    checks = crosscheck.crosscheck(path).payload()
    assert len(checks) > 12
    for one in checks:
        numbers = (f"{one[side]:.6g}" for side in ("left", "right", "tolerance"))
        assert page.has_row(one["check"], *numbers, "yes" if one["holds"] else "no")
    assert verdict(payload, "Agreement")["holds"] == all(one["holds"] for one in checks)
    tried = [one for one in checks if one["check"] == "upgrade_wsmeter"]
    assert signed(tried[0]["left"]) in verdict(payload, "New processors")["says"]


def test_a_request_server_has_law_and_truth(reported):
    path, page, payload = reported["queue_small"]
    made_ = said(path)
    for name in ("service", "queueing"):
        law, true = (made_[of][f"{name}_time_s"] for of in ("occupancy", "truth"))
        assert page.has_row(f"{name} time", f"{law:,.1f} s", f"{true:,.1f} s")
    for row in made_["occupancy"]["capacity"]:
        assert page.has_row(str(row["servers"]), f"{row['replay_s']:,.1f} s")
    assert percent(made_["occupancy"]["utilisation"]) in verdict(payload, "The Occupancy Law")["says"]
    assert page.has_row("0.0", percent(made_["occupancy"]["intervals"][0]["utilisation"], 1))


def test_a_service_has_every_prediction(reported):
    path, page, payload = reported["cross_stockonline"]
    made_ = said(path)
    for target in {row["target"] for row in made_["methods"]}:
        errors = [row["service_error"] for row in made_["methods"] if row["target"] == target]
        assert page.has_row(target, *(percent(error, 1) for error in errors if math.isfinite(error)))
    for row in made_["platforms"]:
        assert page.has_row(row["platform"], percent(row["utilisation"], 1), percent(row["peak_utilisation"], 1))
    ours = pd.DataFrame(made_["methods"]).query("method == 'testbed'")["service_error"].median()
    assert percent(ours, 1) in verdict(payload, "Prediction")["says"]


def test_printed_numbers_are_those_of_the_committed_tables(reported):
    _, page, _ = reported["cross_stockonline"]
    folder = Path(__file__).parents[3] / "analysis" / "figures"
    with (folder / "crossplatform" / "fig3.csv").open() as file:
        slopes = [row for row in csv.DictReader(file) if row["series"].startswith("slope_")]
    assert len(slopes) == 3
    for row in slopes:
        assert page.has_row(row["series"].replace("_", " "), f"{float(row['value']):.4g}")


@pytest.mark.parametrize("name", KINDS)
def test_what_was_asked_is_told(reported, name):
    path, page, _ = reported[name]
    manifest = json.loads((path / "manifest.json").read_text())
    assert all(version in page.said for version in manifest["versions"].values())
    assert manifest["digest"] in page.said
    assert manifest["source"] in page.said
    for table, facts in manifest["tables"].items():
        assert page.has_row(table, f"{facts['rows']:,}", f"{facts['file_bytes']:,}")


@pytest.mark.parametrize("name", KINDS)
def test_figures_are_said_in_words_and_drawn_inside(reported, name):
    path, _page, _ = reported[name]
    text = (path / "report.html").read_text()
    assert text.count("<img ") == text.count("data:image/svg+xml;base64,") == text.count("<figcaption>") >= 1
    assert 'alt=""' not in text


def test_names_cannot_leave_their_place(copied, reported, monkeypatch):
    monkeypatch.setattr(run, "LENSES", {"The profile": run.LENSES["The profile"]})
    folder, original = copied("one_day"), reported["one_day"][0]
    locations = pd.read_parquet(folder / "locations.parquet")
    hot = said(original)["functions"][0]["function"]
    locations["function"] = locations["function"].replace(hot, HOSTILE)
    locations.to_parquet(folder / "locations.parquet")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["resolved"]["description"] = HOSTILE
    manifest["versions"]["python"] = HOSTILE
    (folder / "manifest.json").write_text(json.dumps(manifest))
    _, page, payload = report(folder)
    assert "script" not in page.tags
    assert page.tags.count("img") == 3
    assert page.has_row(HOSTILE)
    assert HOSTILE in page.said
    assert "changed since the run was made: locations.parquet" in verdict(payload, "The tables")["says"]


def test_without_the_truth_none_is_told(copied):
    folder = copied("small")
    for file in folder.glob("truth_*"):
        file.unlink()
    _, page, payload = report(folder)
    assert all(one["holds"] is None for one in payload["verdicts"] if one["lens"] in {"WSMeter", "The feature"})
    assert "the truth is not known" in verdict(payload, "WSMeter")["says"]
    assert "nan" not in page.said.lower().split()


def test_an_empty_run_says_why_nothing_can_be_concluded(copied):
    folder = copied("small")
    for file in folder.glob("*.parquet"):
        file.unlink()
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"tables": {}}))
    _, page, payload = report(folder)
    assert all(one["says"].startswith("nothing could be concluded: ") for one in payload["verdicts"])
    assert "no table epochs; there are none" in page.said
    assert "fleet.machines" in page.said


def test_damaged_tables_are_told_all_at_once(copied):
    folder = copied("small")
    before = (folder / "report.html").read_bytes()
    whole = (folder / "epochs.parquet").read_bytes()
    (folder / "epochs.parquet").write_bytes(whole[: len(whole) // 2])
    (folder / "jobs.parquet").unlink()
    done = runner.invoke(app, ["report", str(folder)])
    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 2
    assert "epochs.parquet: cannot be read" in done.stderr
    assert "jobs.parquet: is not there" in done.stderr
    assert (folder / "report.html").read_bytes() == before


def test_a_folder_without_a_manifest_is_refused(tmp_path):
    for place in (tmp_path, tmp_path / "nowhere"):
        done = runner.invoke(app, ["report", str(place), "--out", str(tmp_path / "page.html")])
        assert done.exit_code == 2
        assert "not a finished run, there is no manifest.json" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_planted_fault_is_a_verdict(copied, monkeypatch):
    monkeypatch.setattr(run, "LENSES", {"Agreement": run.LENSES["Agreement"]})
    folder = copied("one_day")
    requests = pd.read_parquet(folder / "stay_requests.parquet")
    requests[["arrival_s", "departure_s"]] += 60.0
    requests.to_parquet(folder / "stay_requests.parquet")
    _, page, payload = report(folder)
    told = verdict(payload, "Agreement")
    assert not told["holds"]
    assert "occupancy_stays" in told["says"]
    assert page.has_row("Agreement", "does not hold")


@pytest.fixture(scope="module")
def refreshed(tmp_path_factory):
    """What reports of a profiled fleet refreshed on its second day say of that, with and without the truth."""
    out = tmp_path_factory.mktemp("refreshed")
    small = settings(["profiling.programs.functions=6", "profiling.collector.samples_per_s=2.0", "population.jobs=50"])
    found = obtain(load("profiled_small", small), out, False, lambda _what, _share: None)
    without = shutil.copytree(found.path, out / "without")
    for file in without.glob("truth_*"):
        file.unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "LENSES", {name: run.LENSES[name] for name in ("The fleet", "The feature", "WSMeter")})
        return report(found.path), report(without)


def test_a_feature_is_named_with_what_is_estimated_and_beside_the_truth(refreshed):
    path, page, payload = refreshed[0]
    told, made_ = verdict(payload, "The feature"), effect([path])
    assert told["says"].startswith(
        "hardware refresh (haswell_2698v3 becomes skylake_6148), instructions per CPU second: "
    )
    assert percent(abs(made_["change"])) in told["says"]
    assert f"the truth, {signed(made_['truth']['change'])}" in told["says"]
    assert "machines with the feature beside machines without it in the same periods" in page.said


def test_days_before_a_roll_out_are_no_estimate_of_the_feature(refreshed):
    _, page, payload = refreshed[0]
    told = verdict(payload, "WSMeter")
    assert told["says"] == "no estimate: the roll-out is complete only after 1 of 2 days"
    assert told["holds"] is None
    assert not page.has_row("20", "wsmeter")


def test_without_the_truth_the_report_says_how_to_get_it(refreshed):
    _, page, payload = refreshed[1]
    assert verdict(payload, "The feature")["says"].endswith("; the truth is not known")
    assert "wsc run profiled_small --set recording.truth=true --force simulates both" in page.said


def test_two_estimates_that_disagree_say_so_and_which_one_counts():
    says = "+0.49% ± 1.48%"
    estimate = Effect(
        "adjusted", "concurrent", 4, 4, -0.03, -0.0416, -0.0206, 0.01, 0.0, 9.0, jobs=1, quota_coverage=1.0
    )
    slower = EffectAnswer(estimate, 0.95, "machine", RATE, 1, None, "ips", math.nan, Audit((), ()), None, ())
    effects = composed("The feature's effect", verdicts=(Verdict("The feature", "slower"),), answer=slower)
    row = {"estimator": "wsmeter", "change": 0.0049, "high": 0.0197}

    def told(low):
        rows = pd.DataFrame([row | {"low": low}])
        none = pd.DataFrame()
        day = FleetRun("fleet", Path("runs/day"), "day", 1, {}, "ips", "machine", math.nan, rows, {}, none)
        sections = [effects, composed("WSMeter", verdicts=(Verdict("WSMeter", says),), answer=day)]
        return run.beside_effect(sections)[1].of(Verdict)[0].says

    assert told(-0.03) == says
    assert told(-0.0099).startswith(f"{says}; disagrees with the feature's effect above, which counts")
