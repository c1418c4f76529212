"""What was measured before over all worlds stands beside a row that is measured on fewer of the same."""

import json
import math

import pandas as pd
import pytest

from analysis.figures.bounds import draw_criteria
from analysis.figures.criteria import Criterion
from docs import verdicts
from scenarios.papers import judged, record, reproduce
from scenarios.papers.catalogue import ROWS
from scenarios.papers.judged import JudgedRow
from scenarios.papers.record import RECORD, recorded
from scenarios.papers.rows import Reproduction, published
from scenarios.report import reproduced
from scenarios.views.section import Figure, Says, Table
from scenarios.views.terminal import dumps
from tests.helpers.pictures import faults

KNOWN = {row["id"]: row for row in json.loads(RECORD.read_text("utf-8"))}


def measured(row, world=0):
    """Return the table of a world as it is on record."""
    values = {criterion["name"]: criterion["values"][world] for criterion in KNOWN[row]["criteria"]}
    return pd.DataFrame({"series": list(values), "x": math.nan, "value": list(values.values())}).astype(
        {"value": float}
    )


def on_worlds(row, count=1, factor=1.0) -> JudgedRow:
    first, *others = (measured(row, world) for world in range(count))
    outcome = Reproduction(first.assign(value=factor * first["value"]))
    (answer,) = reproduce.rejudged({row: (outcome, ())}, None, lambda *_: None).rows
    return judged.replace(judged.judgement(ROWS[row], outcome, others=others), recorded=answer.recorded)


def all_measured(row):
    """Whether every number of a row is measured, and none computed from what is printed beside it."""
    return all(criterion["name"] != "agreement" for criterion in KNOWN[row]["criteria"])


@pytest.mark.parametrize("row", [row for row in KNOWN if all_measured(row)])
def test_one_world_of_the_record_brings_back_the_verdict_and_the_causes_over_all(row):
    before = recorded(on_worlds(row))
    assert before is not None
    told = json.loads(dumps(before.over_worlds()))
    for name in ("verdict", "worlds"):
        assert told[name] == KNOWN[row][name]
    for now, then in zip(told["criteria"], KNOWN[row]["criteria"], strict=True):
        assert {name: now[name] for name in ("verdict", "holds_in", "pooled")} == {
            name: then[name] for name in ("verdict", "holds_in", "pooled")
        }
    for now, then in zip(told["explanations"], KNOWN[row]["explanations"], strict=True):
        assert now == then


def test_a_world_that_is_not_the_recorded_one_has_no_record():
    assert recorded(on_worlds("wsmeter/fig9", factor=1.01)) is None
    assert on_worlds("wsmeter/fig9", factor=1.01).recorded is None


def test_bounds_that_are_not_the_recorded_ones_have_no_record():
    row = on_worlds("wsmeter/fig9")
    other = judged.replace(row.criteria[0], bound=0.2)
    assert recorded(judged.replace(row, criteria=(other, *row.criteria[1:]))) is None


def test_all_worlds_have_no_use_for_a_record_but_for_its_causes():
    for row, causes in (("wsmeter/fig9", 1), ("wsmeter/fig7", 0)):
        tables = [measured(row, world) for world in range(10)]
        answer = judged.judgement(ROWS[row], Reproduction(tables[0]), others=tables[1:])
        again = reproduce.Reproduced(tuple(reproduce._explained([answer], None, lambda *_: None))).rows[0]
        assert again.complete
        assert (len(again.recorded.trials) if again.recorded else 0) == causes


def test_a_reader_of_one_world_is_told_why_a_finding_does_not_hold():
    text = "\n".join(reproduce._record(on_worlds("wsmeter/fig9")))
    assert "recorded over 10 worlds, of which this is the first: does not hold; findings: 3 of 4 hold" in text
    assert "true in 0 of 10 worlds" in text
    assert "with 160 heavyweights for 40" in text
    assert "so this explains it in these worlds" in text
    answer = reproduce.Reproduced((on_worlds("wsmeter/fig9"), on_worlds("wsmeter/fig18")))
    assert answer.recorded() == "9 of 11 findings hold, 2 do not hold"
    assert answer.counts()[-1] == f"recorded over all worlds: {answer.recorded()}"
    assert reproduce.Reproduced((on_worlds("wsmeter/fig9", factor=1.01),)).recorded() == ""


def test_our_better_method_stands_beside_the_papers():
    table = pd.DataFrame({"series": ["loss_max_testbed", "draws_adjusted"], "x": math.nan, "value": [0.014, 200.0]})
    row = judged.judgement(ROWS["crossplatform/table7"], Reproduction(table))
    assert reproduce._better(row) == ["our better method, in world 1: loss_max_testbed = 0.014"]
    assert row.payload()["better_method"] == {"loss_max_testbed": 0.014}


def test_every_row_of_a_paper_says_which_section_it_comes_from():
    for row in KNOWN:
        if row.startswith("world/"):
            continue
        assert published(row)["read_from"].str.contains(r"[Ss]ections? (?:\d|“)").any(), row


def test_the_page_draws_rows_of_the_world_that_are_on_record_and_not_measured_here(monkeypatch):
    """As if the scorecard was not on record."""
    monkeypatch.setattr(reproduced, "known", lambda row: () if row == "world/scorecard" else record.known(row))
    table, *sections = reproduced._missing(set(ROWS) - {"wsmeter/fig9", "world/slots", "world/scorecard"})
    (section,) = sections
    (picture,) = section.of(Figure)
    assert section.title.startswith("world/slots: ")
    assert "on record, of 3 worlds" in section.of(Says)[0].text
    assert picture.source.startswith("data:image/svg+xml;base64,")
    links = [row[0].href for block in table.of(Table) for row in block.rows]
    assert sorted(links) == ["", "", f"#{section.anchor}"]


@pytest.mark.parametrize("row", ["world/slots", "world/calibration", "world/ablation"])
def test_criteria_on_record_are_drawn_each_with_its_numbers(row):
    figure = draw_criteria(record.known(row))
    (axes,) = figure.axes
    names = dict.fromkeys(criterion["name"] for criterion in KNOWN[row]["criteria"])
    ours = [text.get_text().lstrip("…") for text in axes.get_yticklabels()]
    assert all(name.replace("_", " ").endswith(end) for name, end in zip(names, ours, strict=True))
    assert len(axes.texts) == len(names)
    assert faults(figure) == []


def drawn_at(*values, **bounds):
    """Return where one number is drawn on its line, where its bounds are kept, and the words beside it."""
    criteria = [Criterion("x", relation.replace("_", " "), bound, "", values) for relation, bound in bounds.items()]
    (axes,) = draw_criteria(criteria).axes
    shaded = axes.patches[0]
    kept = shaded.get_x(), shaded.get_x() + shaded.get_width()
    return axes.lines[-1].get_xdata().tolist(), kept, axes.texts[0].get_text()


def test_a_number_is_drawn_against_its_bounds_on_a_scale_of_its_own():
    at, kept, words = drawn_at(0.15, 0.45, 9.0, at_most=0.3)
    assert (at, kept) == (pytest.approx([-0.5, 0.5, 0.97]), (-1.0, 0.0))
    assert words == "0.45 (0.15 to 9), at most 0.3: 1 of 3"
    assert drawn_at(2.0, at_least=1.0, at_most=3.0) == ([0.0], (-0.5, 0.5), "2, at least 1 and at most 3")
    assert drawn_at(-0.5, at_least=0.0) == ([-0.97], (0.0, 1.0), "-0.5, at least 0")
    assert drawn_at(-0.4, at_most=-0.5)[:2] == (pytest.approx([0.2]), (-1.0, 0.0))
    assert drawn_at(math.nan, at_least=1.0)[2] == "not measured, at least 1"


def test_the_page_has_the_record_of_what_was_not_measured_here(monkeypatch):
    def told():
        (section,) = reproduced._missing(set(ROWS) - {"wsmeter/fig9"})
        (table,) = [block for block in section.blocks if isinstance(block, Table)]
        return {heading.text: cell.text for heading, cell in zip(table.headings, table.rows[0], strict=True)}

    line = told()
    assert line["figure or table"] == "wsmeter/fig9"
    assert line["recorded"] == "does not hold, 3 of 4"
    assert "true in 0 of 10 worlds" in line["what does not hold, recorded"]
    assert line["command"] == "wsc reproduce wsmeter/fig9"
    (check,) = reproduced._missing(set(ROWS) - {"wsmeter/fig4"})
    assert check.blocks[0].rows[0][2].text == "check holds, 2 of 2"
    monkeypatch.setattr(record, "_rows", dict)
    assert told()["recorded"] == "not on record"
    assert list(reproduced._missing(set(ROWS))) == []


@pytest.mark.parametrize(("measured", "text"), [(0.93994, "0.9399"), (0.935, "0.935"), (0.94, "0.94")])
def test_a_number_that_fails_does_not_read_like_its_bound(measured, text):
    values = {"spread": dict.fromkeys(("least", "median", "most"), measured), "values": [measured], "pooled": None}
    failed = {"name": "held", "relation": "at least", "bound": 0.94, "holds_in": 0}
    assert verdicts.failing(values | failed) == f"`held` at least 0.94: {text}, 0 of 1"
