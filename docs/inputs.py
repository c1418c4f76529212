"""The tables that commands read, as a part of `tables.md`: columns from the code, meanings from `inputs.csv`."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.economics import FIELDS as PRICES
from analysis.effects.observations import FIELDS as OBSERVATIONS
from analysis.profiling.affinity.table import FIELDS as AFFINITIES
from analysis.tables.columns import Field
from analysis.traces.totals import MACHINES
from analysis.wsmeter.measurements import JOBS, MEASUREMENTS, PLAN
from scenarios.crossplatform.calibration import SCORES
from scenarios.effects.slot_plan import FIELDS as EXPERIMENTS
from scenarios.effects.slots import FIELDS as SLOTS
from scenarios.files.traces import COLUMNS as TRACE

DOCS = Path(__file__).parent
HEAD = """
## Tables that commands read

CSV or Parquet, gzipped or not; identifiers are text, numbers finite, flags 0, 1, true or false. Columns may stand in
any order. Other columns are ignored, mostly with a note; in a table of affinities or a log of a service they are
faults. All faults are reported at once, with line and column.

Request logs have [formats of their own](requests.md#formats), a service's log
[its columns](crossplatform.md#export-the-log), public traces [theirs](traces.md), a file about an experiment
[its keys](audit.md#what-goes-in), platforms [their YAML](platforms.md#your-own), profiles the formats of the tools that
write them.
"""


@dataclass(frozen=True, slots=True)
class Read:
    """A table that commands read: its name in `inputs.csv`, what it is, and who reads it."""

    name: str
    what: str
    readers: str
    fields: Sequence[Field]


_COUNTED = tuple(Field(name, "real", required=False) for name in ("instructions", "l1_misses", "l2_misses"))
TABLES = (
    Read(
        "observations",
        "Observations of a fleet",
        "`wsc effect`, `audit`, `design`, `slots`, `monitor`, `rates`",
        OBSERVATIONS,
    ),
    Read("measurements", "Measurements of a fleet", "`wsc wsmeter estimate`", MEASUREMENTS),
    Read("jobs", "Jobs of a fleet", "`--jobs`, `wsc audit`", JOBS),
    Read("plan", "Jobs to be planned for", "`wsc wsmeter plan`", PLAN),
    Read("machines", "Machines of a trace", "`wsc convert --machines`", MACHINES),
    Read("slots", "Slots of a fleet", "`wsc slots --previous`", SLOTS),
    Read("experiments", "Experiments on slots", "`wsc slots --experiments`", EXPERIMENTS),
    Read("prices", "Prices of machines", "`--prices`", PRICES),
    Read("affinities", "Jobs on platforms", "`wsc affinity`", AFFINITIES),
    Read("scores", "Public scores", "`--benchmarks`", (*SCORES, *_COUNTED)),
    Read("trace", "A trace of requests", "`load.trace` of a scenario", TRACE),
)
_KINDS = {"text": "text", "real": "number", "count": "whole number", "flag": "flag"}


def tables() -> str:
    """Return the text about all tables that are read."""
    return HEAD + "".join(map(_table, TABLES))


def meanings() -> dict[tuple[str, str], str]:
    """Return the meaning of each column of each table."""
    rows = csv.DictReader((DOCS / "inputs.csv").read_text(encoding="utf-8").splitlines())
    return {(row["table"], row["column"]): row["meaning"] for row in rows}


def _table(read: Read) -> str:
    said = meanings()
    rows = [f"| `{each.name}` | {_kind(each)} | {said[read.name, each.name]} |\n" for each in read.fields]
    return f"\n### {read.what}: {read.readers}\n\n| column | holds | meaning |\n|---|---|---|\n" + "".join(rows)


def _kind(field: Field) -> str:
    """Return in words what a column holds."""
    bound = (" above 0" if field.above_zero else " of 0 or more") if field.kind in {"real", "count"} else ""
    empty = "" if not field.may_be_empty else ", cells may be empty"
    return f"{_KINDS[field.kind]}{bound}{empty}{'' if field.required else '; optional'}"
