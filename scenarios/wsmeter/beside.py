"""Two runs side by side: how much each job that both measure changed in either, from the recorded halves."""

from typing import Any

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.table import Table

from analysis.figures.wsmeter.changes import NORMAL_95, job_changes
from scenarios.files.schema import WSMeter
from scenarios.runs.rundir import Run
from scenarios.wsmeter.measurements import run_measurements
from scenarios.wsmeter.truth import halves_of


def beside(found: Run, other: Run, settings: WSMeter) -> dict[str, Any]:
    """Return the change of each job in a run and in another, with 95% margins.

    Parameters
    ----------
    found, other : runs whose halves are without and with a feature
    settings : metric, window and jobs that are measured in both

    Returns
    -------
    dict
        scenario and run of the other, and jobs: name, change, margin, change_there, margin_there, and differs, whether
        the two changes are further apart than both margins together.

    Raises
    ------
    NotEnoughDataError
        If a run has nothing without, or nothing with the feature.

    """
    here, there = (_changes(run, settings) for run in (found, other))
    both = here.merge(there, on="name", suffixes=("", "_there"))
    apart = (both["change"] - both["change_there"]).abs() > both["margin"] + both["margin_there"]
    return {
        "scenario": other.manifest["scenario"],
        "run": str(other.path),
        "jobs": both.assign(differs=apart).to_dict("records"),
    }


def beside_table(here: str, there: dict[str, Any]) -> Table:
    """Return what `beside` found, to be printed.

    Parameters
    ----------
    here : name of the first scenario
    there : what `beside` returned of the other

    Examples
    --------
    >>> shop = {"name": "shop", "change": 0.10, "margin": 0.02, "change_there": 0.05, "margin_there": 0.02}
    >>> table = beside_table("upgrade", {"scenario": "build", "jobs": [shop | {"differs": True}]})
    >>> [next(iter(column.cells)) for column in table.columns]
    ['shop', '+10.00% ±2.00%', '+5.00% ±2.00%', 'yes']
    """
    table = Table("job", here, there["scenario"], "differ", title=f"change beside {there['scenario']}", box=SIMPLE_HEAD)
    for row in there["jobs"]:
        table.add_row(
            row["name"],
            f"{row['change']:+.2%} ±{row['margin']:.2%}",
            f"{row['change_there']:+.2%} ±{row['margin_there']:.2%}",
            "yes" if row["differs"] else "no",
        )
    return table


def _changes(run: Run, settings: WSMeter) -> pd.DataFrame:
    changes = job_changes(*halves_of(run_measurements(run, settings)), min_instances=settings.min_instances)
    named = changes.merge(run.table("jobs", ["job", "name"]), on="job")
    return pd.DataFrame({"name": named["name"], "change": named["change"], "margin": NORMAL_95 * named["error"]})
