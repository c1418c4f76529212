from urllib.parse import parse_qsl, urlsplit

import pandas as pd
import pytest

from scenarios.profiling.intervals import ChangedShares
from tests.helpers.web_pages import ask, expected, harmless


def test_the_query_view_has_the_numbers_that_pandas_has(pages, small_profile):
    answer = ask(pages, "/query.json?event=llc_misses&by=function&where=platform=old&top=3").json()
    rows = expected(small_profile, "llc_misses", lambda rows: rows["platform"] == "old")
    by = rows.groupby("function")[["count", "value"]].sum()
    assert answer["total"] == {"samples": int(rows["count"].sum()), "value": int(rows["value"].sum())}
    assert len(answer["rows"]) == 3
    for row in answer["rows"]:
        assert (row["samples"], row["value"]) == tuple(by.loc[row["function"]])
        assert row["share"] == pytest.approx(row["value"] / answer["total"]["value"], rel=1e-12)
    page = harmless(ask(pages, "/query?event=llc_misses&by=function&where=platform=old&top=3"))
    assert answer["rows"][0]["function"] in " ".join(page.said)
    assert "low" in page.said
    assert "high" in page.said


def test_refining_restricts_and_groups_anew(pages):
    page = harmless(ask(pages, "/query?by=application"))
    link = next(link for link in page.all("a", "href") if "where=application" in link)
    asked = parse_qsl(urlsplit(link).query)
    assert ("by", "function") in asked
    only = next(value for name, value in asked if name == "where" and value.startswith("application="))
    refined = ask(pages, link)
    assert refined.status == 200
    assert f"{only.replace('=', ' = ')}" in harmless(refined).said


@pytest.mark.parametrize(
    ("url", "a", "b"),
    [
        ("/diff", "day=0", "day=3"),
        ("/flamediff", "day=0", "day=3"),
        ("/diff?since=1d&until=3d", "day=1", "day=2"),
        ("/diff?a=platform=old", "platform=old", "everything"),
        ("/diff?where=day=2", "everything", "everything"),
    ],
)
def test_a_difference_begins_with_the_last_day_against_the_first(pages, url, a, b):
    said = " ".join("".join(harmless(ask(pages, url)).said).split())
    assert f"A: {a}. B: {b}." in said
    assert ("Say in a field" in said) == (a == b)


def test_a_difference_that_nobody_asked_for_is_that_of_its_days(pages):
    page, asked = (harmless(ask(pages, url)) for url in ("/diff", "/diff?a=day=0&b=day=3"))
    assert page.said == asked.said


def test_changes_beyond_chance_come_first(pages, monkeypatch):
    """A change that chance can make is no reason to be above a smaller one that chance cannot."""
    by = [f"f{number}" for number in range(4)]
    changes = pd.DataFrame({"application": by, "change": [0.4, -0.3, 0.2, 0.1], "low": 0.0, "high": 0.0})
    changes = changes.assign(significant=[False, True, False, True], share_a=0.0, share_b=0.0, value_a=0, value_b=0)
    monkeypatch.setattr("scenarios.web.site.difference", lambda *_: ChangedShares(changes, 4, 2, ""))
    page = ask(pages, "/diff?by=application&a=platform=old&b=platform=new").text
    assert [page.index(f">{name}<") for name in ("f1", "f3", "f0", "f2")] == sorted(
        page.index(f">{name}<") for name in by
    )
    assert page.index('"number shrunk"') < page.index('"number grown"') < page.index(">f0<")
    assert "changes beyond chance first" in page
