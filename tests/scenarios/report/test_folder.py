"""Reports of folders: a scorecard's pieces, worlds, reproduced rows, and the runs of a sweep."""

import json
import math

import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis.figures.spread import with_spread
from scenarios.commands.app import app
from scenarios.crossplatform.worlds import summary as of_worlds
from scenarios.effects.scorecard.card import summary as card
from scenarios.papers import record
from scenarios.papers import reproduce as papers
from scenarios.papers.rows import published
from scenarios.report import reproduced
from tests.helpers.report_pages import Page, made

runner = CliRunner()


def report(path, status=0):
    done = runner.invoke(app, ["report", str(path), "--json"])
    assert done.exit_code == status, done.output
    if status:
        return done.stderr
    payload = json.loads(done.stdout)
    with open(payload["file"], encoding="utf-8") as file:
        page = Page(file.read())
    assert page.open == []
    assert "script" not in page.tags
    assert all(address.startswith(("data:", "#")) for address in page.addresses)
    return page, payload


def piece(corner, seed):
    rows = [
        {"design": "day", "estimator": name, "machines": size, "draws": 40, "answered": 40, "covered": covered}
        | {"detected": detected, "bias": 0.001 * seed, "sd": 0.01, "error": 0.01, "margin": 0.4 / size}
        for name, covered in (("published", 21 - seed), ("cuped", 39 - seed), ("adjusted", 39 - seed))
        for size, detected in ((12, 20), (50, 40))
    ]
    return {"corner": corner, "seed": seed, "machines": 200, "truths": {"day": 0.0125}, "rows": rows}


@pytest.fixture
def scorecard(tmp_path):
    folder = tmp_path / "scorecard-0123"
    folder.mkdir()
    pieces = [piece(corner, seed) for seed in (1, 2) for corner in ("base", "tails")]
    for one in pieces:
        (folder / f"{one['corner']}-{one['seed']}.json").write_text(json.dumps(one))
    return folder, pieces


def test_a_scorecard_has_its_table_maps_and_curves(scorecard):
    folder, pieces = scorecard
    page, payload = report(folder)
    for row in card(pieces).records()["estimators"]:
        share, error = 100 * row["coverage"], 100 * row["coverage_error"]
        assert page.has_row("day", row["estimator"], f"{share:.1f}% ± {error:.1f}")
    assert page.has_row("base", "1", "+1.25%")
    assert page.tags.count("img") == 2
    (told,) = payload["verdicts"]
    assert told["lens"] == "adjusted, day"
    rows = [row for one in pieces for row in one["rows"] if row["estimator"] == "adjusted"]
    covered, draws = (sum(row[name] for row in rows) for name in ("covered", "draws"))
    (row,) = [row for row in card(pieces).records()["estimators"] if row["estimator"] == "adjusted"]
    held = f"{100 * covered / draws:.1f}% of {draws} draws from 4 fleets, ± {100 * row['coverage_error']:.1f}"
    assert f"intervals hold the truth in {held}" in told["says"]
    assert "; at worst 93.8% of 160 draws (base)" in told["says"]
    assert payload["payload"]["fleets"] == 4


def test_few_draws_are_counted_and_no_share_is_claimed(tmp_path):
    folder = tmp_path / "scorecard-0123"
    folder.mkdir()
    one = piece("base", 1)
    for row in one["rows"]:
        row |= {"draws": 4, "answered": 4, "covered": 3, "detected": 0}
    (folder / "base-1.json").write_text(json.dumps(one))
    page, payload = report(folder)
    (told,) = payload["verdicts"]
    assert told["says"].startswith("intervals hold the truth in 6 of 8 draws from 1 fleet;")
    assert "%" not in told["says"].partition("; ")[0]
    assert "How many times as many machines" not in page.said
    assert "machines that cuped needs, divided by" not in page.said
    assert "wsc scorecard --fleets 1 --draws 4 --machines 200 --sizes 12,50 --corners base" in page.said


def test_what_the_command_printed_is_the_same_report(scorecard, tmp_path):
    folder, _ = scorecard
    first, payload = report(folder)
    file = tmp_path / "card.json"
    file.write_text(json.dumps(payload["payload"]))
    second, again = report(file)
    assert again["verdicts"] == payload["verdicts"]
    assert second.rows == first.rows


def test_a_file_that_is_no_scorecard_is_refused(tmp_path):
    for content in ("", "{}", "[1]", '{"kind": "effect"}'):
        (tmp_path / "other.json").write_text(content)
        assert "is neither a folder nor what wsc scorecard --json printed" in report(tmp_path / "other.json", 2)
    (tmp_path / "other.json").write_text('{"kind": "scorecard"}')
    assert "is not there: another version's" in report(tmp_path / "other.json", 2)


def test_damaged_pieces_are_told_all_at_once(scorecard):
    folder, _ = scorecard
    for name in ("base-1", "tails-2"):
        (folder / f"{name}.json").write_text("{")
    assert len(report(folder, 2).splitlines()) == 2


def world(seed):
    shared = {"measured": False, "response_error": 0.1, "response_coverage": 0.9, "response_half_width": 0.2}
    rows = [
        shared | {"method": name, "target": target, "service_error": error * seed, "coverage": 0.9, "half_width": 0.1}
        for name, error in (("testbed", 0.031), ("cycle_mix", 0.2))
        for target in ("pres", "pd4")
    ]
    choices = [{"method": name, "wrong": 0.1, "loss": 0.01} for name in ("testbed", "cycle_mix")]
    platforms = [{"platform": name, "utilisation": 0.25} for name in ("piii", "pres", "pd4")]
    return {
        **{"seed": seed, "outside_hull": 0.7, "methods": rows, "choices": choices},
        **{"platforms": platforms, "notes": []},
    }


def test_worlds_are_summed_up(tmp_path):
    folder = tmp_path / "shop-worlds-0123"
    folder.mkdir()
    worlds = [world(seed) for seed in (1, 2, 3)]
    for one in worlds:
        (folder / f"{one['seed']}.json").write_text(json.dumps(one))
    page, payload = report(folder)
    for row in of_worlds(worlds)["methods"]:
        assert page.has_row(row["method"], f"{100 * row['service_error']:.1f}%")
    assert "testbed: service time off by 6.2% (median); 90% intervals hold in 90.0%" in payload["verdicts"][0]["says"]
    assert payload["title"] == "shop"
    assert "predicted from piii" in page.said


def test_reproduced_rows_are_judged_again(tmp_path):
    folder = tmp_path / "figures"
    folder.mkdir()
    rows = {"wsmeter/table2": 1.0, "occupancy/table1": 1.0, "wsmeter/fig4": 50.0}
    for row, factor in (rows | {"crossplatform/fig2": 1.0, "crossplatform/table2": 50.0}).items():
        paper = published(row)
        series = paper["series"].str.replace("^(finding|check|deviation):", "", regex=True)
        named = {"metric": "judged", "quantity": "", "series": series}
        ours = pd.DataFrame({**named, "x": pd.to_numeric(paper["x"], errors="coerce")})
        ours.assign(measured=factor * paper["value"], published=math.nan, unit="").drop_duplicates(
            ["series", "x"]
        ).to_csv(folder / f"{row.replace('/', '-')}.csv", index=False)
    page, payload = report(folder)
    assert [one["lens"] for one in payload["verdicts"]] == ["wsmeter", "occupancy", "crossplatform"]
    assert "fig4" in payload["verdicts"][0]["says"]
    assert [(one["holds"], one["undecided"]) for one in payload["verdicts"]] == [
        (False, ""),
        (True, ""),
        (True, "in part"),
    ]
    assert "rows on fewer worlds than planned. Criteria are set before" in page.said
    for one in payload["payload"]:
        assert page.has_row(one["id"], ("" if one["finding"] else "check ") + one["verdict"])
        assert one["verdict"].endswith(" in world 1, one of ten") == (one["planned_worlds"] != one["worlds"])
    for row in ("wsmeter/table2", "occupancy/table1"):
        for one in published(row).to_dict("records"):
            name = one["series"].partition(":")[2].replace("_", " ")
            if one["series"].startswith("finding:"):
                bound = f"{one['x']} {one['value']:.4g}"
                assert page.has_row(name, bound, one["unit"], "holds", one["read_from"]), name
    for one in published("occupancy/table1").to_dict("records"):
        if not one["series"].startswith("finding:"):
            words = one["series"].replace("_", " ") + ("" if pd.isna(one["x"]) else f" at {one['x']}")
            assert page.has_row(words, f"{one['value']:.4g}", one["unit"], one["read_from"]), words
    (folder / "wsmeter-fig4.csv").write_text("a,b\n1,2\n")
    assert "wsmeter-fig4.csv: cannot be read: should have the columns" in report(folder, 2)


def test_the_page_of_all_rows_has_their_spread_over_kept_worlds_and_what_is_not_in_the_folder(tmp_path, monkeypatch):
    folder, runs = tmp_path / "figures", tmp_path / "runs"
    folder.mkdir()
    ours = measured_as_printed("wsmeter/fig4")
    ours.rename(columns={"value": "measured"}).to_csv(folder / "wsmeter-fig4.csv", index=False)
    drawable = ours.assign(value=ours["value"] * 0.9)

    def kept(pieces, _runs):
        return {piece: drawable for piece in pieces if piece.row == "wsmeter/fig4" and piece.seed < 4} | {
            piece: measured_as_printed(piece.row)
            for piece in pieces
            if piece.row == "occupancy/fig2" or (piece.row == "crossplatform/table4" and piece.seed in {1, 2, 4})
        }

    def spread(worlds):
        drawn.append(len(worlds))
        return with_spread(worlds)

    drawn = []
    monkeypatch.setattr(reproduced, "with_spread", spread)
    monkeypatch.setattr(
        reproduced, "known", lambda row: record.known(row) if row in {"world/slots", "gwp/fig7"} else ()
    )
    for module in (reproduced, papers):
        monkeypatch.setattr(module, "kept_tables", kept)
    done = runner.invoke(
        app, ["report", str(folder), "--runs", str(runs), "--out", str(folder / "index.html"), "--json"]
    )
    assert done.exit_code == 0, done.output
    page = Page((folder / "index.html").read_text(encoding="utf-8"))
    assert page.has_row("common share low", "0.15", "0.135 to 0.15", "1 of 3", "at least 0.15", "depends on the world")
    assert page.has_row(
        "Lee et al. 2018, Figure 4, section 3.2", "check depends on the world in worlds 1 to 3 of ten", "3 of 10"
    )
    assert page.tags.count("img") == 3, "two are drawn from what is kept, and world/slots from the record"
    assert drawn == [1, 2], "with the spread over all worlds up to one that is missing"
    assert page.has_row("gwp/fig7", "wsc reproduce gwp/fig7")
    assert {address[1:] for address in page.addresses if address.startswith("#")} <= page.anchors
    assert "--runs" in runner.invoke(app, ["report", str(tmp_path), "--runs", str(runs)]).stderr


def measured_as_printed(row):
    """Return a table that measures in every number and at every bound what is printed."""
    paper = published(row)
    names = paper["series"].str.split(":").str[-1]
    columns = {"series": names, "x": pd.to_numeric(paper["x"], errors="coerce"), "value": paper["value"]}
    return pd.DataFrame(columns).drop_duplicates(["series", "x"])


def test_runs_of_a_sweep_stand_in_a_row_each(tmp_path):
    folder = tmp_path / "runs"
    for servers in (2, 3, 5):
        made("queue_small", folder, f"station.servers={servers}")
    page, payload = report(folder)
    busy = {one["counts"]["requests"]: one for one in payload["payload"]}
    assert len(payload["payload"]) == 3
    assert len(busy) == 1
    for one in payload["payload"]:
        share = 100 * one["occupancy"]["utilisation"]
        ratio = one["occupancy"]["queueing_time_s"] / one["occupancy"]["service_time_s"]
        servers = str(one["occupancy"]["servers"])
        assert page.has_row("queue_small", servers, f"{share:.2f}%", f"{100 * ratio:.2f}%")
    assert page.tags.count("img") == 1
    assert "busy by the law" in payload["verdicts"][0]["says"]


def test_a_run_that_is_damaged_says_so_among_the_others(tmp_path):
    folder = tmp_path / "runs"
    _, other = (made("queue_small", folder, f"station.servers={servers}") for servers in (2, 3))
    (other.path / "requests.parquet").unlink()
    page, payload = report(folder)
    assert page.has_row(other.path.name)
    assert "no table requests" in page.said
    assert len([one for one in payload["payload"] if one]) == 1


def test_a_folder_of_nothing_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    assert "not a finished run, there is no manifest.json; it holds no run" in report(tmp_path, 2)
