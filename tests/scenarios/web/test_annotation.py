from urllib.parse import urlencode

import pandas as pd
import pytest

from analysis.profiling.query import Query
from scenarios.web.annotation import source
from scenarios.web.parameters import PageQuery
from scenarios.web.site import ProfileSite
from tests.helpers.small_profile import FILES, write
from tests.helpers.web_pages import ask, expected, harmless


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


@pytest.mark.parametrize("file", ["/etc/passwd", "../small_profile.py", "visits.parquet", "..", ""])
def test_no_file_but_stored_sources_is_shown(pages, file):
    answer = ask(pages, f"/source?{urlencode({'file': file, 'hash': 'h3'})}")
    assert answer.status in {400, 404}
    assert "root:" not in answer.text


def test_a_content_without_a_file_is_refused_and_not_ignored(pages):
    answer = ask(pages, "/source?hash=h3")
    assert answer.status == 400
    assert "hash: needs file=NAME" in answer.text
