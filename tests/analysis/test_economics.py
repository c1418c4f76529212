"""What work costs: by hand where everything is certain, by theory where it is not."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from analysis.economics import Believed, costs_of_work, read_prices
from analysis.tables.faults import FileError


def prices(**columns):
    table = {"platform": ["old", "new"], "price": [0.0, 0.0], "years": 4.0, "power_w": 500.0, "power_price": 0.2}
    return pd.DataFrame(table | columns)


def test_costs_are_depreciation_and_power_over_what_a_machine_is_worth():
    certain = Believed(
        ("old", "new"), np.array([1.0, 2.0]), np.array([1.0, 1.6]), np.array([1.0, 2.5]), np.zeros((2, 2))
    )
    table = prices(price=[0.0, 4 * 8766 * 0.3], carbon_kg=[0.0, 8766.0], carbon_kg_per_kwh=0.4)
    told = costs_of_work(table, certain, "old").set_index("platform")
    assert told.loc["new", ["cost", "cost_low", "cost_high"]].tolist() == pytest.approx([0.2, 0.16, 0.25])
    assert told["carbon"].to_dict() == pytest.approx({"old": 0.2, "new": (0.25 + 0.2) / 2})
    assert told["regret"].to_dict() == pytest.approx({"old": 0.0, "new": 1.0})
    # a new machine saves two old ones of 0.1 an hour, and costs 0.1 to run
    assert told.loc["new", ["payback_years", "payback_low"]].tolist() == pytest.approx([12.0, 4 * 0.3 / 0.15])
    assert np.isnan(told.loc["old", "payback_years"])
    never = Believed(certain.names, *[np.array([1.0, 0.9])] * 3, certain.covariance)
    assert np.isinf(costs_of_work(table, never, "old").set_index("platform").loc["new", "payback_years"])


def test_regret_of_two_is_that_of_a_lognormal():
    """E max(X, 1) − 1 with log X normal (Black and Scholes 1973), within four standard errors of 4,000 draws."""
    sd = 0.2
    alike = Believed(("old", "new"), np.ones(2), np.full(2, 0.7), np.full(2, 1.4), np.diag([0.0, sd**2]))
    told = costs_of_work(prices(), alike, "old").set_index("platform")
    expected = np.exp(sd**2 / 2) * norm.cdf(sd) - 0.5  # of old, where new is worth more
    assert told.loc["old", "regret"] == pytest.approx(expected, abs=4 * sd / 4000**0.5)
    assert told["cheapest"].tolist() == pytest.approx([0.5, 0.5], abs=0.04)


def test_everything_that_is_wrong_with_a_table_of_prices_is_told(tmp_path):
    file = tmp_path / "prices.csv"
    file.write_text("platform,price,years,power_w,power_price\na,-1,4,300,0.1\na,5,0,x,0.1\n")
    with pytest.raises(FileError) as caught:
        read_prices(file)
    assert {(fault.line, fault.field) for fault in caught.value.faults} == {
        (2, "price"), (3, "years"), (3, "power_w"), (3, "platform"),
    }  # fmt: skip
    file.write_text("platform,price,years,power_w,power_price\na,1,4,0,0.1\nb,5,4,0.35,0.1\n")
    with pytest.raises(FileError, match=r"^3:4: power_w: should be watts: no machine draws less than 1, got 0\.35$"):
        read_prices(file)
