"""Tables of prices of machines, read for the platforms that are asked about."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from analysis.economics import read_prices
from analysis.tables.cells import Source, name_of
from scenarios.files.faults import Fault, FaultsError, faults_in


def priced(source: Source, names: Sequence[str]) -> pd.DataFrame:
    """Return the prices of some platforms.

    Raises
    ------
    FaultsError
        With everything that is wrong with the table; or with the platforms that it lacks.
    """
    with faults_in(Path(name_of(source))):
        prices = read_prices(source)
    lacking = [name for name in names if name not in set(prices["platform"])]
    if lacking:
        problem = f"should have a row for {', '.join(lacking)}"
        raise FaultsError([Fault(name_of(source), 0, 0, "platform", problem, ", ".join(prices["platform"]))])
    return prices
