"""What the documents say of other people's methods are the figures that are stored."""

import pandas as pd

from benchmarks.outside.evidence import HERE, METHODS, table

DOCS = HERE.parents[1] / "docs"


def test_the_table_shown_is_that_of_the_stored_figures():
    rows = pd.read_csv(DOCS / "outside.csv")
    assert table(rows) in (DOCS / "effects.md").read_text()
    assert set(METHODS) <= set(rows["estimator"])


def test_the_versions_shown_are_those_that_are_pinned():
    shown = (DOCS / "effects.md").read_text()
    for _, library in METHODS.values():
        if library:
            pins = dict(line.split("==") for line in (HERE / f"{library}.txt").read_text().split())
            assert f"{library} {pins[library]}" in shown
