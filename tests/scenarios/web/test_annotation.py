from urllib.parse import parse_qs, urlencode, urlsplit

import pandas as pd
import pytest

from analysis.profiling.query import Query
from scenarios.web.annotation import RevisionLine, omitting, paired, source
from scenarios.web.application import application
from scenarios.web.parameters import PageQuery
from scenarios.web.site import ProfileSite
from tests.helpers.small_profile import FILES, write
from tests.helpers.web_pages import Reader, ask, expected, harmless


def test_source_is_annotated_line_by_line(pages, small_profile):
    """Line 2 of the file shows the samples that pandas counts there; the file's name is never a path."""
    page = harmless(ask(pages, "/source?event=cycles&file=../../../../etc/passwd&hash=h3"))
    rows = expected(small_profile, "cycles", lambda rows: rows["file"] == FILES[3])
    by_line = rows.groupby("line")["count"].sum()
    said = "".join(page.said)
    assert all(str(count) in said for count in by_line)
    titles = "".join(page.all("td", "title")).replace(",", "")
    assert all(f"{value} events" in titles for value in rows.groupby("line")["value"].sum())
    assert "root:" not in said
    assert "\tif (a < 2 && b) /* <i>&amp; */" in page.said


def test_contents_under_one_file_name_are_not_added(tmp_path):
    """A second content of a file, with other functions, takes samples of its own at the same line numbers."""
    folder = write(tmp_path / "run")
    stored = pd.read_parquet(folder / "locations.parquet")
    stored.loc[stored["file"] == FILES[1], "file"] = FILES[0]
    stored.to_parquet(folder / "locations.parquet", index=False)
    opened = ProfileSite(folder)
    try:
        asked = PageQuery(Query("cycles")).only("file", FILES[0])
        for content in (0, 1):
            page = source(opened, [("event", "cycles"), ("file", FILES[0]), ("hash", "h0")][: 2 + (content == 0)])
            shown = {line.number: line.samples for line in page.view.lines if line.samples}
            rows = expected(folder, "cycles", lambda rows, to=page.view.hash: rows["file_hash"] == to)
            assert shown == rows.groupby("line")["count"].sum().to_dict()
            assert sum(shown.values()) < opened.database.total(asked.query)[0]
    finally:
        opened.close()


def two_contents(folder):
    """A profile one of whose files has two contents, which differ in their second line and in one that is new."""
    write(folder)
    for name in ("locations", "sources"):
        table = pd.read_parquet(folder / f"{name}.parquet")
        second = table["file"] == FILES[1]
        if name == "sources":
            table.loc[second & (table["line"] == 2), "text"] = "while (true)"
            more = table[second].tail(1).assign(line=6, text="new()")
            table = pd.concat([table, more], ignore_index=True)
        table.loc[table["file"] == FILES[1], "file"] = FILES[0]
        table.to_parquet(folder / f"{name}.parquet", index=False)
    return folder


def test_two_contents_stand_side_by_side_with_the_shares_of_pandas(tmp_path):
    folder = two_contents(tmp_path / "run")
    opened = ProfileSite(folder)
    asked = [("event", "cycles"), ("file", FILES[0]), ("hash", "h0")]
    try:
        links = [row[-1].href for row in source(opened, asked).view.versions.rows]
        shown = source(opened, [*asked, ("beside", "h1")])
        view, page = shown.view, Reader(opened.render(shown))
        whole = opened.intervals(
            PageQuery(Query("cycles", ("line",))).only("file", FILES[0]).only("file_hash", "h0").query
        )
    finally:
        opened.close()
    assert [parse_qs(urlsplit(link).query).get("beside") for link in links if link] == [["h1"]]
    rows = expected(folder, "cycles", lambda rows: rows["file"] == FILES[0])
    for side, content in (("old", "h0"), ("new", "h1")):
        values = rows[rows["file_hash"] == content].groupby("line")["value"].sum()
        lines = {line.number: line.share for pair in view.pairs if (line := getattr(pair, side)) and line.share}
        assert lines == pytest.approx((values / values.sum()).to_dict())
    ends = {line: (low, high) for line, low, high in whole[["line", "low", "high"]].itertuples(index=False)}
    assert {
        pair.old.number: (pair.old.low, pair.old.high) for pair in view.pairs if pair.old and pair.old.share
    } == ends
    changed = [(pair.old and pair.old.text[:3], pair.new.text) for pair in view.pairs if pair.changed]
    assert changed == [("\tif", "while (true)"), (None, "new()")]
    assert "while (true)" in page.said
    assert any("hash=h1" in href and "beside=h0" in href for href in page.all("a", "href"))


def test_what_differs_beyond_its_intervals_is_marked_and_quiet_equal_lines_are_left_out():
    quiet = [RevisionLine(number, f"line {number}", 0.0, 0.0) for number in range(20)]
    old = [*quiet[:10], RevisionLine(10, "hot", 0.5, 1.0, 0.4, 0.6), *quiet[11:]]
    new = [*quiet[:10], RevisionLine(10, "hot", 0.8, 1.0, 0.61, 0.9), *quiet[11:]]
    pairs = list(omitting(paired(old, new)))
    assert [pair.omitted for pair in pairs] == [7, 0, 0, 0, 0, 0, 0, 0, 6]
    assert [pair.mark for pair in pairs if pair.mark] == ["grown"]
    assert [pair.mark for pair in paired(new, old) if pair.mark] == ["shrunk"]


def test_where_no_sources_are_stored_every_file_shows_the_lines_that_were_sampled(tmp_path):
    """As of most imports; each file of the list led to a page that was not found."""
    folder = write(tmp_path / "run")
    (folder / "sources.parquet").unlink()
    pages = application(folder)
    files = [at for at in harmless(ask(pages, "/source?event=cycles")).all("a", "href") if "file=" in at]
    assert len(files) >= 3
    for address in files:
        said = "".join(harmless(ask(pages, address)).said)
        assert "does not hold the text of this file" in said
    assert ask(pages, "/source?event=cycles&file=nosuch.cc&hash=h0").status in {400, 404}


@pytest.mark.parametrize("file", ["/etc/passwd", "../small_profile.py", "visits.parquet", "..", ""])
def test_no_file_but_stored_sources_is_shown(pages, file):
    answer = ask(pages, f"/source?{urlencode({'file': file, 'hash': 'h3'})}")
    assert answer.status in {400, 404}
    assert "root:" not in answer.text


def test_a_content_without_a_file_is_refused_and_not_ignored(pages):
    answer = ask(pages, "/source?hash=h3")
    assert answer.status == 400
    assert "hash: needs file=NAME" in answer.text
    assert "beside: needs file=NAME" in ask(pages, "/source?beside=h3").text
    assert ask(pages, "/source?file=app/main.cc&hash=h0&beside=nosuch").status in {400, 404}
