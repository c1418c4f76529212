"""What requests cost on platforms that `wsc select` ranks."""

from pathlib import Path

import pandas as pd
import pytest

import wsc
from scenarios.files.faults import FaultsError

LOG = Path(__file__).parents[3] / "docs" / "examples" / "service.csv.gz"


def test_requests_cost_a_machines_hour_over_what_it_serves():
    prices = pd.DataFrame(
        {"platform": ["piii", "pres"], "price": [0.0, 2000.0], "years": 5.0, "power_w": [141.0, 272.0]}
    )
    prices["power_price"] = 0.2
    answer = wsc.service(LOG, "piii").select(0.15, ["piii", "pres"], prices=prices)
    rows, costs = answer.frame().set_index("platform"), answer.costs.set_index("platform")
    assert answer.reference == "piii"
    more = rows.loc["pres", "throughput_per_s"] / rows.loc["piii", "throughput_per_s"]
    assert costs.loc["pres", "cost"] == pytest.approx((2000 / (5 * 8766) + 0.272 * 0.2) / more)
    assert costs.loc["piii", "cost"] == pytest.approx(0.141 * 0.2)
    assert costs["cheapest"].sum() == pytest.approx(1.0)
    with pytest.raises(FaultsError, match="platform: should have a row for pres, got piii"):
        wsc.service(LOG, "piii").select(0.15, ["piii", "pres"], prices=prices.head(1))
