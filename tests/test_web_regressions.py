import pandas as pd

from scenarios import profile_ask
from scenarios.web import site
from scenarios.web.application import application
from tests.web_pages import ask, harmless


def test_alarms_are_those_of_the_command_and_kept(small_profile, monkeypatch):
    """One function of six costs four times as much in a new revision; the second answer asks the profile nothing."""
    rows = pd.DataFrame({"function": list("fghijk") * 30, "application": "a", "machine": sorted([*range(30)] * 6)})
    before = rows.assign(samples=100, value=[20, 200, 200, 200, 200, 200] * 30)
    after = rows.assign(revision="new", samples=100, value=[80, 200, 200, 200, 200, 200] * 30)
    asked = []

    def cells(_, since_s=None, until_s=None, event="cycles"):
        asked.append((since_s, until_s))
        return before if since_s is None else after

    monkeypatch.setattr(profile_ask, "cells", cells)
    monkeypatch.setattr(site, "cells", cells)
    (alarm,) = profile_ask.regress(small_profile, small_profile, 2 * 86400.0)["alarms"]
    pages = application(small_profile)
    asked.clear()
    page = harmless(ask(pages, "/regress?at=2d"))
    for told in ("f", "revision", "new", f"{alarm['factor']:.4g}", f"{alarm['cost']:.2%}"):
        assert told in page.said
    alike = {told.text.replace(f'value="{at}"', "") for at in ("2d", "2.0d", "48h", "172800", "172800s")
             if (told := ask(pages, f"/regress?at={at}"))}  # fmt: skip
    assert len(alike) == 1
    assert asked == [(None, 172800.0), (172800.0, None)]


def test_a_day_that_parts_nothing_is_refused(pages):
    for day, told in (
        ("0", "no samples of cycles before it"),
        ("99d", "after it"),
        ("2", "samples before"),
        ("x", "a time such as"),
        ("1w", "36h"),
    ):
        answer = ask(pages, f"/regress?at={day}")
        assert answer.status == 400
        assert told in answer.text
    assert "/regress?at=2d" in harmless(ask(pages, "/regress")).all("a", "href")
    assert "/regress" in harmless(ask(pages, "/")).all("a", "href")
