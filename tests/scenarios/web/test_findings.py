from dataclasses import replace

import pandas as pd
import pytest

from analysis.profiling.formats.foreign import Frame, Measure
from analysis.profiling.formats.pprof_writing import write_pprof
from analysis.profiling.questions.catalogue import QUESTIONS
from models.arrays import DAY_S
from scenarios.profiling import files as profile_files
from scenarios.web import findings
from scenarios.web.application import application
from tests.helpers.foreign_profiles import profile_of
from tests.helpers.web_pages import ask, harmless


def test_an_answer_without_rows_says_what_it_lacks(pages, monkeypatch):
    nothing = pd.DataFrame({"function": []})
    empty = replace(QUESTIONS["locks"], answer=lambda database, event, top: nothing, nothing="a < b")
    monkeypatch.setattr(findings, "QUESTIONS", {"locks": empty})
    page = ask(pages, "/questions/locks")
    assert "Nothing found: a &lt; b" in page.text
    assert not harmless(page).count("table")


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_has_a_page(pages, name):
    """A question that this small profile cannot answer says so on its page, form included."""
    answer = ask(pages, f"/questions/{name}")
    assert answer.status == 200
    page = harmless(answer)
    assert page.count("table") + page.count("li") >= 1 or "Nothing found: " in answer.text
    assert set(page.all("input", "name")) == set(QUESTIONS[name].parameters)
    assert f"/questions/{name}" in page.all("form", "action")
    assert any(href == f"/questions/{name}" for href in harmless(ask(pages, "/questions")).all("a", "href"))


def test_a_question_is_answered_and_told_its_parameters(pages):
    answer = ask(pages, "/questions/deprecated?function=memcpy&event=cpu_time&top=5")
    assert answer.status == 200
    assert "deflate" in harmless(answer).said
    assert ask(pages, "/questions/deprecated?function=memcpyy").status == 400
    assert ask(pages, "/questions/versions?top=0").status == 400
    assert ask(pages, "/questions/versions?function=f").status == 400
    assert ask(pages, "/questions/version").status == 404
    none = "by: is no parameter of this page; this page has none"
    assert none in "".join(harmless(ask(pages, "/questions?by=job")).said)
    assert ask(pages, "/questions/<script>alert(1)").status == 404
    assert harmless(ask(pages, "/questions/<script>alert(1)")).count("li")
    assert ask(pages, "/questions/..%2f..%2fetc").status == 404


def test_a_profile_that_was_not_drawn_has_no_intervals_and_says_why(tmp_path):
    file = tmp_path / "stacks.folded"
    file.write_text("main;read 12\nmain 4\n")
    profile_files.import_files([file], tmp_path / "made")
    page = harmless(ask(application(tmp_path / "made"), "/query"))
    assert not {"low", "high"} & set(page.said)
    assert "no collector drew these machines at random" in "".join(page.said)


def test_days_of_an_import_are_told_by_their_dates(tmp_path):
    """Changes over time, roll-outs and stability counted days from the first file; addresses still do."""
    start_s, lines = 1777593600.0, ["file,start,version"]
    for day in range(3):
        stacks = [((Frame("f", "a"), Frame("main", "a")), (50 + 200 * day,)), ((Frame("g", "a"),), (100,))]
        (tmp_path / f"{day}.pb.gz").write_bytes(write_pprof(profile_of([Measure("samples")], stacks)))
        lines.append(f"{day}.pb.gz,{start_s + DAY_S * day},v{day // 2}")
    (tmp_path / "files.csv").write_text("\n".join(lines))
    profile_files.import_files([], tmp_path / "made", manifest=tmp_path / "files.csv")
    pages = application(tmp_path / "made")
    changes = harmless(ask(pages, "/changes"))
    assert "2026-05-03 beside 2026-05-01: " in "".join(changes.said)
    assert {"share 2026-05-01", "share 2026-05-03"} <= set(changes.said)
    for address in ("/rollouts", "/stability?by=function"):
        text = harmless(ask(pages, address))
        assert {"2026-05-01", "2026-05-02", "2026-05-03"} <= set(text.said)
        assert "day 0" not in "".join(text.said)
    assert '<td class="short"><span>2026-05-01</span>' in ask(pages, "/stability").text, "dates are broken into lines"
    said = "".join(harmless(ask(pages, "/rollouts")).said)
    assert "No sample here says its compiler, kernel, platform, revision." in said
    assert "label.version" in said
