"""`wsc reproduce`: rows are found, measured on runs, judged, drawn and written."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import rcParams
from rich.console import Console
from typer.testing import CliRunner

from analysis.figures import style
from analysis.figures.criteria import BOUNDS, COLUMNS, RELATIONS
from analysis.figures.wsmeter import cost, studies
from analysis.figures.wsmeter.draws import cluster_draws
from analysis.statistics import NotEnoughDataError
from scenarios.commands.app import app
from scenarios.papers import catalogue, reproduce
from scenarios.papers.judged import beside
from scenarios.papers.rows import published
from scenarios.papers.sources import Sources
from scenarios.report import reproduced
from scenarios.runs.rundir import RunError
from scenarios.views import opening
from scenarios.views.terminal import dumps, show
from tests.helpers.reproduce_worlds import fleet

FIGURES = [f"fig{n}" for n in (*range(1, 10), 11, 12, 13, 16, 17, 18, 19)]
OTHERS = ["table1", "table2", "table2-local", "table3", "baseline", "efficiency", "ipc-vs-throughput"]
WSMETER = [f"wsmeter/{name}" for name in FIGURES + OTHERS]
each_row = pytest.mark.parametrize("row", WSMETER)


class FakeRun:
    """A run's tables, made from a fleet without a simulator."""

    def __init__(self, seed=1, names=None, feature=True, **world):
        made = fleet(**{"machines": 900, "slots": 8, "jobs": 60, "effect": 0.05, "seed": seed, **world})
        table = pd.concat([made.current.assign(feature=False), made.new.assign(feature=feature)], ignore_index=True)
        n = len(table)
        counted = {"cycles": 1e9, "cpu_s": 1.0, "wall_s": 86400.0, "instructions": 1e9 * table["value"]}
        stay = {"residence": range(n), "instance": range(n), "quota_vcpu": table["weight"]}
        self.tables = {
            "jobs": made.jobs.assign(quota_vcpu=made.jobs["quota"], name=names or made.jobs["name"]),
            "instances": table[["job", "machine", "rack", "feature"]].assign(**stay),
            "counters": pd.DataFrame({"residence": range(n), "window": "all", "requests": table["value"], **counted}),
        }

    def table(self, name, columns=None):
        if name not in self.tables:
            raise RunError(f"no table {name}; there are {', '.join(self.tables)}")
        return self.tables[name] if columns is None else self.tables[name][list(columns)]

    def split(self):
        return [self]


def obtain(scenario, overrides, progress):
    progress(scenario, 1.0)
    overrides = {name: value for name, value in overrides.items() if "." not in name}
    if scenario in ("customer_services", "empty_cluster"):
        return FakeRun(jobs=2, popularity=0.0, names=["compute", "network"])
    return FakeRun(**overrides)


def nothing(_scenario, _overrides, _progress):
    raise AssertionError("this row needs no run")


def reproduced_rows(*asked):
    return reproduce.reproduce(*asked).rows


def quiet(_what, _share):
    """Say nothing."""


@pytest.fixture
def few_draws(monkeypatch):
    def few(*tables_and_sizes, draws):
        return cluster_draws(*tables_and_sizes, draws=min(draws, 15))

    for module in (cost, studies):
        monkeypatch.setattr(module, "cluster_draws", few)


def test_every_row_of_the_paper_is_there_by_its_id():
    assert [row.id for row in reproduce.listing().rows][: len(WSMETER)] == WSMETER


@each_row
def test_printed_numbers_and_criteria_say_where_they_come_from(row):
    table = published(row)
    assert tuple(table.columns) == COLUMNS
    assert set(table["figure"]) == {row}
    assert table[["value", "unit", "read_from"]].notna().all().all()
    assert set(table.loc[table["series"].str.startswith(BOUNDS), "x"]) <= set(RELATIONS)
    assert table["series"].str.startswith(BOUNDS).any()


def test_a_row_of_printed_numbers_needs_no_run(tmp_path):
    (row,) = reproduced_rows("wsmeter/table2", tmp_path, Sources(nothing, quiet))
    assert {"kind", "id", "holds", "published", "measured", "note"} <= set(row.payload())
    assert row.holds is True
    assert row.measured["cost"] == row.published["cost"] == 69
    assert [Path(file).name for file in row.files] == ["wsmeter-table2.csv"]


def test_a_row_from_a_run_is_drawn_and_tabulated(tmp_path):
    (row,) = reproduced_rows("wsmeter/fig3", tmp_path, Sources(obtain, quiet))
    assert {file.name for file in tmp_path.iterdir()} == {
        f"wsmeter-fig3.{kind}" for kind in ("csv", "png", "pdf", "svg")
    }
    table = pd.read_csv(tmp_path / "wsmeter-fig3.csv")
    change = table.set_index("series").loc[["change", "change_ips"], "published"]
    assert change["change"] == 0.01
    assert np.isnan(change["change_ips"])
    assert "as printed, in instructions per cycle (IPC)" in row.note


def slower(*_):
    """Return a run in which the feature is worth 3% in instructions per second, and takes a tenth of the cycles off."""
    run = FakeRun(effect=0.03)
    feature = run.tables["instances"]["feature"].to_numpy()
    run.tables["counters"]["cycles"] *= np.where(feature, 0.9, 1.0)
    return run


@pytest.mark.parametrize("row", ["wsmeter/fig2", "wsmeter/fig3", "wsmeter/fig19"])
@pytest.mark.usefixtures("few_draws")
def test_what_the_paper_prints_per_cycle_is_measured_per_cycle_and_told_per_second_too(row, tmp_path, monkeypatch):
    monkeypatch.setattr(style, "KINDS", ("svg",))
    (judged,) = reproduced_rows(row, tmp_path, Sources(slower, quiet))
    changes = {
        name: value for name, value in judged.measured.items() if name.startswith("change") and np.isfinite(value)
    }
    assert changes
    assert all(value == pytest.approx(1.03 / 0.9 - 1, abs=0.05) for value in changes.values()), changes
    told = {line[""]: (line["IPC"], line["IPS"]) for line in judged.table}
    for name, (cycles, seconds) in told.items():
        if name.startswith("change") and not name.endswith(("error", "low", "high")) and np.isfinite(cycles):
            assert (cycles, seconds) == (pytest.approx(1.03 / 0.9 - 1, abs=0.05), pytest.approx(0.03, abs=0.05)), name
    console = Console(record=True, width=200)
    show(reproduce.Reproduced((judged,)).section(), console)
    assert "IPS" in console.export_text()
    read = reproduced._measured_in(tmp_path / f"{row.replace('/', '-')}.csv")
    (again,) = reproduce.rejudged({row: (read, ())}, None, quiet).rows
    assert again.measured == pytest.approx(judged.measured, nan_ok=True)


def test_the_picture_says_the_number_that_stands_beside_the_published_one(tmp_path, monkeypatch):
    monkeypatch.setattr(style, "KINDS", ("svg",))
    monkeypatch.setitem(rcParams, "svg.fonttype", "none")
    (row,) = reproduced_rows("wsmeter/fig3", tmp_path, Sources(slower, quiet))
    assert re.search(
        re.escape(f"IPC {row.measured['change']:+.1%}, ") + r"\S+ to \S+ \(published \+1.0%\)",
        (tmp_path / "wsmeter-fig3.svg").read_text(),
    )


def shown(monkeypatch, tmp_path, row, display=":0", opens=True):
    """Return what `wsc reproduce ROW --show` says on standard error, and what was opened."""
    addresses = []
    monkeypatch.setattr(opening.sys, "platform", "linux")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.setattr(opening.webbrowser, "open", lambda address: addresses.append(address) or opens)
    done = CliRunner().invoke(app, ["reproduce", row, "--show", "--out", str(tmp_path)])
    return done.stderr, addresses


def test_show_opens_the_picture_of_a_row(monkeypatch, tmp_path):
    said, addresses = shown(monkeypatch, tmp_path, "occupancy/fig2")
    assert "note" not in said
    assert addresses == [(tmp_path / "occupancy-fig2.png").as_uri()]


def test_show_says_where_the_picture_is_if_it_cannot_be_opened_and_that_tables_have_none(monkeypatch, tmp_path):
    picture = tmp_path / "occupancy-fig2.png"
    said, addresses = shown(monkeypatch, tmp_path, "occupancy/fig2", display="")
    assert f"note: there is no display to show it on; the picture is {picture}" in said
    assert addresses == []
    said, _ = shown(monkeypatch, tmp_path, "occupancy/fig2", opens=False)
    assert f"note: nothing was found that shows pictures; the picture is {picture}" in said
    said, _ = shown(monkeypatch, tmp_path, "wsmeter/table2")
    assert "note: wsmeter/table2 is a table, there is no picture to show" in said
    said, _ = shown(monkeypatch, tmp_path, "occupancy")
    assert "--show: opens the picture of one row, got" in said


def test_the_same_run_gives_the_same_bytes(tmp_path):
    for folder in ("one", "two"):
        reproduce.reproduce("wsmeter/fig3", tmp_path / folder, Sources(obtain, quiet))
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes(), file.name


@pytest.mark.usefixtures("few_draws")
def test_all_rows_are_measured_and_every_criterion_has_its_number(tmp_path, monkeypatch):
    monkeypatch.setattr(style, "KINDS", ("png",))
    answer = reproduce.reproduce("wsmeter", tmp_path, Sources(obtain, quiet))
    missing = {
        (row.id, check.name) for row in answer.rows for check in row.criteria if not math.isfinite(check.measured)
    }
    # Every job gains 5% here, so that none can be shown that loses.
    assert missing == {
        ("wsmeter/fig2", "instances_losing"),
        ("wsmeter/fig2", "change_losing_high"),
        ("wsmeter/fig2", "shift_losing_high"),
    }
    assert all(file.stat().st_size > 0 for file in tmp_path.iterdir())
    json.loads(dumps(answer.payload()), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    show(answer.section(), Console(quiet=True))
    assert len(answer.frame()) == sum(len(row.measured) for row in answer.rows)


def test_each_run_is_obtained_once(tmp_path):
    asked = []

    def counting(scenario, overrides, progress):
        asked.append(scenario)
        return obtain(scenario, overrides, progress)

    sources = Sources(counting, quiet)
    for metric in ("ipc", "ips", "ipc"):
        sources.halves("dvfs_policy", metric)
    assert asked == ["dvfs_policy"]


def test_a_row_that_cannot_be_measured_does_not_hold_and_says_why(tmp_path):
    (row,) = reproduced_rows("wsmeter/fig3", tmp_path, Sources(lambda *_: FakeRun(feature=False), quiet))
    assert row.holds is False
    assert "not measured: no measured instances with the feature: at least 1 is needed" in row.note
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_the_table_is_an_error_that_names_it(tmp_path):
    def bare(*_):
        run = FakeRun()
        del run.tables["counters"]
        return run

    with pytest.raises(RunError, match="no table counters; there are jobs, instances"):
        reproduce.reproduce("wsmeter/fig3", tmp_path, Sources(bare, quiet))


def test_a_customer_without_the_services_is_an_error_that_names_them(tmp_path):
    with pytest.raises(ValueError, match="the run has no job named compute, network"):
        reproduce.reproduce("wsmeter/table3", tmp_path, Sources(lambda *_: FakeRun(), quiet))


def test_an_unknown_id_is_refused_with_what_there_is_and_what_is_nearest():
    there_are = "there are all, .*wsmeter, .*wsmeter/fig1,"
    with pytest.raises(ValueError, match=rf"'wsmeter/fig99'; {there_are}.*; did you mean wsmeter/fig9 or .*\?$"):
        catalogue.chosen("wsmeter/fig99")
    with pytest.raises(ValueError, match=rf"'zzz'; {there_are}.*; wsc reproduce --list lists them$"):
        catalogue.chosen("zzz")


def test_a_small_fleet_leaves_out_the_sizes_that_it_does_not_have():
    halves = Sources(lambda *_: FakeRun(machines=120), quiet).halves("dvfs_policy", "ips")
    assert halves.new["machine"].nunique() == 60
    with pytest.raises(NotEnoughDataError, match="100 machines with the feature are needed, 60 given"):
        catalogue.ROWS["wsmeter/fig19"].outcome(Sources(lambda *_: FakeRun(machines=120), quiet))


def test_verdicts_tell_numbers_apart_that_nobody_printed():
    made = beside(pd.DataFrame({"series": [], "x": [], "value": []}), published("wsmeter/fig17"), [])
    assert set(made[0]) == set(made[1])
    assert all(np.isnan(value) for value in made[0].values())
