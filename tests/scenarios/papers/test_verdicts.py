"""What the documents say of the papers' rows is what was measured: tables, counts in prose, kinds, explanations."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from analysis.figures.criteria import BOUNDS, KINDS
from docs import verdicts
from scenarios.papers.causes import causes_of
from scenarios.papers.rows import published

ROOT = Path(__file__).parents[3]
RECORD = json.loads(verdicts.RECORD.read_text("utf-8"))
ROWS = [row for row in RECORD if not row["id"].startswith("world/")]
CRITERIA = [(row["id"], criterion) for row in ROWS for criterion in row["criteria"]]
TRIALS = [(row, trial) for row in ROWS for trial in row["explanations"]]
SETTLED = {
    ("wsmeter/fig7", "bias_z"): "random samples have no bias, whatever the machines",
    ("occupancy/tightness", "guarantee_share_max"): "an inequality that section 4.3 proves",
    ("gwp/sqrt-law", "exponent"): "random parts of any samples follow the law",
    ("gwp/sqrt-law", "constant_error"): "as above",
    ("gwp/affinity", "jobs"): "how large the question is",
    ("gwp/overhead", "share"): "a third of the limit at most, at the highest rates that a scenario may ask for",
    ("gwp/overhead", "visited_share"): "a fifth of the limit at most, as above",
}
"""Checks whose numbers differ between worlds, and why no world could decide them."""


def text(name):
    """Return a document with its lines joined, so that sentences can be found across them."""
    return " ".join((ROOT / name).read_text("utf-8").split())


def test_the_tables_of_the_document_are_those_of_the_record():
    document = verdicts.DOCUMENT.read_text("utf-8")
    assert verdicts.filled(document, RECORD) == document


def test_kinds_bounds_and_verdicts_of_the_record_are_those_of_today():
    for row in RECORD:
        table = published(row["id"])
        bounds = table[table["series"].str.startswith(BOUNDS)]
        today = [(line["series"], line["x"], line["value"]) for line in bounds.to_dict("records")]
        kept = [(f"{one['kind']}:{one['name']}", one["relation"], one["bound"]) for one in row["criteria"]]
        assert [line[:2] for line in today] == [line[:2] for line in kept], row["id"]
        assert [line[2] for line in today] == pytest.approx([line[2] for line in kept], rel=1e-3), row["id"]
        told = [one["verdict"] for one in row["criteria"] if one["kind"] == "finding"]
        assert row["finding"] == bool(told)
        told = told or [one["verdict"] for one in row["criteria"]]
        worst = next(word for word in ("does not hold", "depends on the world", "holds") if word in told)
        assert row["verdict"] == worst, row["id"]


def test_a_criterion_that_comes_out_otherwise_in_another_world_is_a_finding():
    varying = set()
    for row, one in CRITERIA:
        numbers = [value for value in one["values"] if value is not None]
        if one["kind"] == "check" and max(numbers) - min(numbers) > 1e-9:
            varying.add((row, one["name"]))
        if one["kind"] != "finding":
            assert one["holds_in"] == len(one["values"]), (row, one["name"])
    assert varying == set(SETTLED)


def test_deviations_are_slips_that_are_counted_once():
    assert [(row, one["name"]) for row, one in CRITERIA if one["kind"] == "deviation"] == [
        ("wsmeter/table2", "cost"),
        ("occupancy/table2", "excess_14"),
        ("crossplatform/fig7", "printed_right_published"),
    ]


def test_every_explanation_of_the_record_is_one_by_the_rule():
    """Judged from the numbers in every world; of a rate also by that of all draws."""
    for row, trial in TRIALS:
        (one,) = [c for c in row["criteria"] if c["name"] == trial["criterion"] and c["verdict"] != "holds"]

        def true(value, one=one):
            return value is not None and (
                value >= one["bound"] if one["relation"] == "at least" else value <= one["bound"]
            )

        here, without, sham = trial["holds_in"], trial["cause_holds_in"], trial["sham_holds_in"]
        expected = trial["sham_size"] >= 0.5 and 10 * without >= 8 * trial["worlds"] > 10 * max(here, sham)
        expected &= 10 * trial["turned"] >= 8 * trial["failing"]
        if trial.get("pooled") is not None:
            expected &= true(trial["cause_pooled"]) and not true(trial["sham_pooled"])
        assert trial["explains"] == expected, (row["id"], trial["criterion"])
        (cause,) = [c for c in causes_of(row["id"]) if trial["criterion"] in c.criteria]
        assert (trial["cause"], trial["sham"], trial["sham_size"]) == (cause.cause, cause.sham, cause.sham_size)
        assert trial["failing"] == trial["worlds"] - here
        if None not in trial["without_cause"] and None not in one["values"]:
            pairs = zip(map(true, one["values"]), map(true, trial["without_cause"]), strict=True)
            assert trial["turned"] == sum(now and not before for before, now in pairs), (row["id"], trial["criterion"])


def count(paper=""):
    """Return how many findings of a paper, or of all, hold, depend on the world, and do not hold."""
    return Counter(one["verdict"] for row, one in CRITERIA if one["kind"] == "finding" and row.startswith(paper))


def test_prose_says_how_many_findings_hold_and_how_many_are_explained():
    total = count()
    explained = sum(trial["explains"] for _, trial in TRIALS)
    failing = total.total() - total["holds"]
    left = failing - explained
    papers, changes = text("docs/papers.md"), text("CHANGELOG.md")
    says = f"Of the {failing} findings that do not hold, or depend on the world, {explained} are explained so"
    assert f"{says} and {left} are not" in papers
    assert f"Of {total.total()} findings {total['holds']} hold" in changes
    assert f"now {explained} of the {failing} that do not hold or depend on the world are" in changes
    of = [count(paper) for paper in ("wsmeter/", "occupancy/", "crossplatform/", "gwp/")]
    assert [one.total() - one["holds"] for one in of][1] == 1
    readme = re.sub(r"\]\([^)]*\)|\[", "", text("README.md"))
    assert f"WSMeter's {of[0].total()} findings {of[0]['holds']} hold" in readme
    assert f"operational laws' {of[1].total()} all but one" in readme
    assert f"cross-platform prediction's {of[2].total()} only {of[2]['holds']}" in readme
    assert of[3].total() - of[3]["holds"] == 7
    assert f"of profiling's {of[3].total()} all but seven" in readme


def test_prose_names_what_is_not_explained():
    known = {(row["id"], trial["criterion"]) for row, trial in TRIALS if trial["explains"]}
    lacking = [
        one["name"]
        for row, one in CRITERIA
        if one["kind"] == "finding" and one["verdict"] != "holds" and (row, one["name"]) not in known
    ]
    said = text("docs/papers.md").partition("are explained so and")[2].partition("The causes of WSMeter")[0]
    assert sorted(re.findall(r"`(\w+)`", said)) == sorted(lacking)
    assert set(KINDS) == {one["kind"] for _, one in CRITERIA}
