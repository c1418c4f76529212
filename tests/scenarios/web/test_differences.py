"""Differences on pages: what is coloured is beyond chance, and where nothing can be told that is said."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from typer.testing import CliRunner

from analysis.profiling.intervals import ShareMoments, share_intervals
from models.randomness import stream
from scenarios.commands.app import app
from scenarios.profiling.intervals import significant, with_change
from scenarios.views.tables import value_text
from scenarios.web import differences
from scenarios.web.application import application
from scenarios.web.differences import Side, frames
from scenarios.web.tree import PathFrames, Tree
from tests.helpers import drawn_profiles
from tests.helpers.web_pages import ask, frame_paths, harmless

SIDES = "a=day=0&b=day=1"


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    return drawn_profiles.write(tmp_path_factory.mktemp("grown"), stream(1, "grown"), 2.5)


@pytest.fixture(scope="module")
def vanished(tmp_path_factory):
    return drawn_profiles.write(tmp_path_factory.mktemp("vanished"), stream(4, "vanished"), 0.0)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return drawn_profiles.write(tmp_path_factory.mktemp("alone"), stream(2, "alone"), 2.5, machines=None)


def marked(page):
    """Return the changes that are marked, with their functions: text of the row's first cell."""
    rows, inside = [], []
    for tag, attributes in page.tags:
        if tag == "tr":
            rows.append(inside := [])
        inside.append((tag, attributes))
    return [attributes["class"].split()[1] for row in rows for tag, attributes in row if tag == "td"
            and len(attributes.get("class", "").split()) == 2]  # fmt: skip


def said(page):
    return " ".join("".join(page.said).split())


def test_a_difference_has_the_intervals_of_the_command_and_marks_what_really_changed(grown):
    """Of forty functions and their callers one function grew 2.5 times, from 3 to 6%."""
    ran = CliRunner().invoke(
        app, ["profile", "diff", *[str(grown)] * 2, "--where-a", "day=0", "--where-b", "day=1", "--json"]
    )
    payload = json.loads(ran.stdout)
    page = harmless(ask(application(grown), f"/diff?{SIDES}"))
    for row in payload["rows"]:
        for number in (row["low"], row["high"]):
            assert value_text("change", number) in page.said
    assert [row["function"] for row in payload["rows"] if row["significant"]] == ["f12"]
    assert payload["significant_rows"] == 1
    assert marked(page) == ["grown"]
    assert "1 of 40 rows is beyond chance and coloured" in said(page)
    assert "the chance that any colour of the table is false is at most 5%" in said(page)


def test_only_frames_that_are_large_on_both_sides_together_are_tested():
    """Each further frame that is tested makes the others' changes harder to see."""
    paths = [("main", f"f{at}") for at in range(6)]
    after, before = np.array([10_000, 3, 2, 0, 1, 0]), np.array([10_000, 3, 2, 9, 1, 0])

    def moments(items, value, names):
        share = np.bincount(items[1], np.repeat(value, np.diff(items[0])), len(names)) / value.sum()
        return ShareMoments(pd.DataFrame({"item": list(names)}), share, share * 1e-6, share * 1e-12, share, 50)

    tree = Tree(PathFrames.of(paths), after, before)
    (tested,) = frames([tree], Side(before.astype(float), moments), Side(after.astype(float), moments))
    assert {tree.name(number) for number in tested} == {"main", "f0", "f1", "f3"}


def test_functions_are_those_of_all_frames_however_many_are_looked_up_at_a_time(grown, monkeypatch):
    whole = said(harmless(ask(application(grown), f"/flamediff?{SIDES}")))
    monkeypatch.setattr(differences, "_AT_ONCE", 7)
    assert said(harmless(ask(application(grown), f"/flamediff?{SIDES}"))) == whole


def test_frames_are_coloured_where_the_change_is_beyond_chance(grown):
    """What grew, and its caller that holds a quarter of all; of main nothing can change."""
    pages = application(grown)
    root = ask(pages, f"/flamediff.json?{SIDES}").json()
    known = zip(frame_paths(root), root["trees"][0]["significant"], strict=True)
    frames = {path[2:]: significant for path, significant in known if len(path) > 1}
    beyond = {path for path, significant in frames.items() if significant}
    assert ("main", "mid0", "f12") in beyond
    assert beyond <= {("main", "mid0", "f12"), ("main", "mid0")}
    assert root["tested"] == len(frames)
    assert root["significant_frames"] == len(beyond)
    page = harmless(ask(pages, f"/flamediff?{SIDES}"))
    assert set(marked(page)) == {"grown"}
    assert f"{len(marked(page))} of 45 functions" in said(page)


def test_what_disappeared_is_drawn_with_the_widths_of_a_and_counted_with_those_of_b(vanished):
    """One of forty functions, 3% of A, has nothing in B."""
    pages = application(vanished)
    for view in ("icicle", "callers"):
        sides = {side: ask(pages, f"/flamediff.json?{SIDES}&view={view}&width={side}").json() for side in "ab"}
        gone = {side: [at for at, path in enumerate(frame_paths(own)) if "f12" in path] for side, own in sides.items()}
        assert gone["b"] == []
        (tree,) = sides["a"]["trees"]
        outermost = [at for at in gone["a"] if tree["parent"][at] not in gone["a"]]
        lost = [tree["value"][at] for at in outermost]
        assert [tree["delta"][at] for at in outermost] == [-value for value in lost]
        assert sides["b"]["undrawn"] == sum(lost) / sides["a"]["value"] > 0.02
        assert sides["a"]["undrawn"] == 0.0
        for answer in sides.values():
            (own,) = answer["trees"]
            assert answer["significant_frames"] == sum(known is True for known in own["significant"])
        drawn, all_of = sides["b"], sides["a"]
        assert drawn["significant_undrawn"] > all_of["significant_undrawn"] == 0
        assert drawn["significant_frames"] + drawn["significant_undrawn"] == all_of["significant_frames"]
    page = harmless(ask(pages, f"/flamediff?{SIDES}&width=a"))
    assert "Widths are those of A" in " ".join(page.said)
    assert any("width=b" in link for link in page.all("a", "href"))
    assert ask(pages, f"/flamediff?{SIDES}&width=c").status == 400
    assert ask(pages, f"/found.json?{SIDES}&find=f12").json()["value"] == 0


def test_of_an_import_without_a_random_draw_nothing_is_coloured_and_the_page_says_why(alone):
    pages = application(alone)
    for path in ("/diff", "/flamediff"):
        page = harmless(ask(pages, f"{path}?{SIDES}"))
        assert "Nothing is coloured: no intervals: " in said(page)
        assert "so changes cannot be distinguished from chance" in said(page)
        assert marked(page) == []
    root = ask(pages, f"/flamediff.json?{SIDES}").json()
    assert root["lacking"].startswith("no intervals: ")
    assert set(root["trees"][0]["significant"]) == {None}
    ran = CliRunner().invoke(
        app, ["profile", "diff", *[str(alone)] * 2, "--where-a", "day=0", "--where-b", "day=1", "--json"]
    )
    assert json.loads(ran.stdout)["notes"] == [root["lacking"]]


def test_visits_on_both_sides_leave_nothing_to_be_told(grown):
    root = ask(application(grown), "/flamediff.json?a=day=1&b=day=1").json()
    assert root["lacking"] == "no intervals: some visits are on both sides"


@pytest.mark.statistical
def test_of_pages_on_which_nothing_changed_few_have_a_colour():
    """60 pages of 40 functions, 12 machines a side: at most 5% with any; more than 8 have a chance of 0.5%.

    Of single rows' intervals, 5% exclude zero, so 87% of such pages would have a colour without the correction.
    """
    rng, pages, naive = stream(3, "healthy"), 0, 0
    for _ in range(60):
        sides = []
        for _ in range(2):
            cost = drawn_profiles.WEIGHTS * rng.lognormal(0.0, 0.15, (12, 40))
            seen = np.array([rng.multinomial(500, each / each.sum()) for each in cost])
            machine, function = np.nonzero(seen)
            rows = {"function": function, "machine": machine, "samples": seen[machine, function]}
            sides.append(share_intervals(pd.DataFrame(rows).assign(value=rows["samples"])))
        both = sides[0].merge(sides[1], on="function", how="outer", suffixes=("_a", "_b")).fillna(0.0)
        table = both[["function"]].assign(change=both["share_b"] - both["share_a"])
        found = with_change(table, ["function"], *sides)
        pages += bool(found["significant"].any())
        naive += bool(((found["low"] > 0) | (found["high"] < 0)).any())
    assert pages <= 8
    assert naive > 30


def test_a_change_is_significant_where_its_distance_exceeds_the_quantile_of_all_rows():
    """With endless degrees of freedom: |change| / √(sum of variances) against the normal quantile of 0.05 / (2 K)."""
    size, endless = 200, np.full(200, 1e12)
    change = np.linspace(-0.1, 0.1, size)
    found = significant(change, [np.full(size, 9e-5), np.full(size, 16e-5)], [endless, endless])
    expected = np.abs(change) / np.sqrt(25e-5) > norm.isf(0.05 / 2 / size)
    assert found.tolist() == expected.tolist()
    assert 0 < found.sum() < size
