"""The row about slots: what two clusters of another mix do to a comparison, on a fleet whose skew is known."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from analysis.figures.criteria import judge
from scenarios.papers import slots
from scenarios.papers.catalogue import ROWS
from scenarios.papers.rows import published
from scenarios.papers.sources import Sources


def past(machines=1200, faster=0.2):
    """Return two days of a fleet of one job, a fifth of whose machines are faster by so much, in 20 clusters."""
    rng = np.random.default_rng(1)
    machine = np.arange(machines)
    newest = rng.random(machines) < 0.2
    row = {"job": 0, "machine": machine, "weight": 1.0, "treated": 0, "rack": machine // 20}
    platform = np.where(newest, "skylake_6148", "haswell_2698v3")
    speed = (1 + faster * newest) * (1 + 0.03 * rng.standard_normal(machines))
    days = (speed * (1 + 0.005 * rng.standard_normal(machines)) for _ in range(2))
    parts = [pd.DataFrame({"period": number, "value": value, **row}) for number, value in enumerate(days)]
    return pd.concat(parts, ignore_index=True).assign(platform=np.tile(platform, 2))


@pytest.fixture
def measured(monkeypatch):
    monkeypatch.setattr(slots, "simulated", lambda _world, _days: SimpleNamespace(table=past()))
    monkeypatch.setattr(slots, "CUTS", 2)
    return ROWS["world/slots"].outcome(Sources(None, lambda _what, _share: None))


def test_every_criterion_is_measured_and_the_skew_is_that_of_the_shares(measured):
    """A fifth is faster by 20%: shares of all machines that differ by x set the arms x times 0.2 / 1.04 apart."""
    checks = {check.name: check for check in judge(measured.measured, published("world/slots"))}
    assert set(checks) == {"pairs", "points", "as_cut", "told_off", "warned", "false_warnings", "adjusted"}
    table = measured.table
    by_share = table["points"] / 10 * 0.2 / 1.04  # two clusters of twenty
    assert table["unadjusted_skew"].tolist() == pytest.approx(by_share.tolist(), rel=0.15)
    assert table["told"].tolist() == pytest.approx(by_share.tolist(), rel=0.1)
    assert checks["false_warnings"].measured == 0.0
    assert checks["warned"].measured == 1.0
    assert checks["points"].measured == pytest.approx(0.0025 / (0.1 * 0.2 / 1.04), rel=0.15)
    assert checks["adjusted"].measured < 0.2
