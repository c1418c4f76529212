"""A page is written whole or not at all, in the place of a former report and of nothing else."""

import os
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from scenarios.commands.app import app
from scenarios.files.faults import FaultsError
from scenarios.report import run as report_of_run
from scenarios.report.page import Page, refuse, rendered, write
from scenarios.report.subject import composed
from scenarios.runs.rundir import intact
from scenarios.views.section import Cell, Figure, Heading, Table, Verdict
from tests.helpers.report_pages import Page as Read
from tests.helpers.report_pages import made

TABLE = Table(
    (Heading("of"), Heading("cycles", number=True, span=2)),
    (False, True, True),
    ((Cell("<i>"), Cell("1.0"), Cell("0.9–1.1")), (Cell("b & c"), Cell("2.0"), Cell("no", "bad"))),
    "title <t>",
    "caption <c>",
)
PAGE = Page(
    "kind <k>",
    "name <n>",
    "about <a>",
    {"fact <f>": "value <v>"},
    [
        composed(
            "section <s>",
            ("says <y>",),
            (TABLE,),
            (Figure("data:,", 'fig "<g>"'),),
            ("wsc run 'a<b'",),
            (Verdict("lens <l>", "says <w>", holds=False), Verdict("other", "nothing to judge by")),
            code="x: <z>",
        )
    ],
)


def test_every_text_is_escaped():
    page = Read(rendered(PAGE))
    for letter in "knafvsytclwzig":
        assert letter not in page.tags or letter in {"a", "p"}
        assert f"<{letter}>" in page.said or letter in "gt"
    assert "wsc run 'a<b'" in page.said
    assert page.rows[:2] == [["lens <l>", "says <w>", "does not hold"], ["other", "nothing to judge by", ""]]
    assert page.rows[-2:] == [["<i>", "1.0", "0.9–1.1"], ["b & c", "2.0", "no"]]


def test_headings_and_cells_stand_below_each_other():
    text = rendered(PAGE)
    assert '<th scope="col" class="number" colspan="2">cycles</th>' in text
    assert '<td class="number fails">no</td>' in text


def test_sentences_take_room_and_names_stay_on_their_line():
    cells = (
        Cell("upgrade_predicted:search"),
        Cell("slope of log service time over log seconds per instruction"),
        Cell("1"),
    )
    made_ = Table((), (False, False, True), (cells,))
    text = rendered(Page("", "", "", {}, [composed("checks", tables=(made_,))]))
    assert '<td class="long">slope of' in text
    assert "<td>upgrade_predicted" in text
    assert "td:first-child:not(.long) { white-space: nowrap; }" in text


def test_what_a_verdict_leaves_undecided_stands_beside_it():
    verdicts = (Verdict("New processors", "says", holds=True, undecided="for the fleet; 4 services undecided"),)
    text = rendered(Page("", "", "", {}, [composed("trial", verdicts=verdicts)]))
    assert Read(text).rows[0][-1] == "holds for the fleet; 4 services undecided"
    assert '<span class="partly">holds for' in text
    assert '<span class="holds">' not in text


def test_a_verdict_in_part_has_a_colour_of_its_own_by_day_by_night_and_in_print():
    text = rendered(PAGE)
    colours = {name: re.findall(rf"--{name}: (#\w+)", text) for name in ("good", "partly")}
    assert len(colours["partly"]) == len(colours["good"]) == 3
    assert not set(colours["partly"]) & set(colours["good"])
    assert ".partly { color: var(--partly); }" in text


def test_titles_and_figures_fit_narrow_screens():
    table = Table((), (False,), ((Cell("a"),),), "a title that is longer than a phone is wide")
    section = composed("s", tables=(table,), figures=(Figure("data:,", "wide", 50.0),))
    text = rendered(Page("", "", "", {}, [section]))
    assert "<caption><span>a title" in text
    assert ".report caption span { max-width: calc(100vw" in text
    assert "width: 50.0rem; --least: 40.0rem" in text


def test_a_former_report_makes_way(tmp_path):
    file = tmp_path / "deep" / "page.html"
    write(PAGE, file)
    first = file.read_text()
    write(PAGE, file)
    assert file.read_text() == first
    assert [each.name for each in file.parent.iterdir()] == ["page.html"]


@pytest.mark.parametrize("content", ["", "<!doctype html><p>mine</p>", "a,b\n1,2\n"])
def test_nothing_else_makes_way(tmp_path, content):
    file = tmp_path / "mine.html"
    file.write_text(content)
    with pytest.raises(FaultsError, match="is there and is no report"):
        write(PAGE, file)
    with pytest.raises(FaultsError, match="is there and is no report"):
        refuse(tmp_path)
    assert file.read_text() == content


def test_what_is_interrupted_leaves_nothing_and_keeps_what_was_there(tmp_path, monkeypatch):
    file = tmp_path / "page.html"
    write(PAGE, file)
    first = file.read_text()

    def stop(_self, _target):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        write(Page("other", "other", "", {}, []), file)
    assert file.read_text() == first
    assert os.listdir(tmp_path) == ["page.html"]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run of which no lens has anything to say, for where pages go."""
    monkeypatch.setattr(report_of_run, "LENSES", {})
    return made("queue_small", tmp_path / "runs").path


def test_the_page_goes_into_the_run_and_is_the_same_again(run):
    file, pages = run / "report.html", []
    for _ in range(2):
        done = CliRunner().invoke(app, ["report", f"{run}/"])
        assert done.exit_code == 0
        assert done.stdout.splitlines()[-1] == f"report: {file}"
        pages.append(file.read_bytes())
    assert pages[0] == pages[1]
    assert intact(run)


def test_the_page_goes_where_told_but_onto_nothing_else(run, tmp_path):
    def report(out):
        done = CliRunner().invoke(app, ["report", str(run), "--out", str(out)])
        return done.exit_code, done.stderr

    before = (run / "requests.parquet").read_bytes()
    status, says = report(run / "requests.parquet")
    assert status == 2
    assert "is no report" in says
    assert (run / "requests.parquet").read_bytes() == before
    assert report(tmp_path / "there" / "page.html") == (0, "")
    status, says = report("/dev/null/x.html")
    assert status == 2
    assert "--out: cannot make a folder" in says
