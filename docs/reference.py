"""Write `tables.md` and `parameters.md` beside this file, from what the code says of its tables and scenarios.

    python docs/reference.py

Where defaults come from stands in `defaults.csv`.
"""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from docs import inputs
from models.tables import TABLES, Column
from scenarios.files.json_schema import json_schema

DOCS = Path(__file__).parent
MADE = "<!-- Made by docs/reference.py: edit models/ or docs/defaults.csv and run it again. -->\n"
FLEET, QUEUE, SERVICE, PROFILE = "kind: fleet", "kind: queue", "kind: cross_platform", "kind: profile"
Part = tuple[list[str], str, Mapping[str, Any]]
"""Where a part of a scenario may stand, what it is, and its keys."""

KINDS = {FLEET: "Scenario", QUEUE: "QueueScenario", SERVICE: "ServiceScenario", PROFILE: "ProfileScenario"}
"""Heading of what a file of each kind says first, and the part of the schema that it is."""

TABLES_HEAD = """# The tables of a run

A run is a folder, `runs/<scenario>-<digest>/`, with one Parquet file per table. Columns of the same name mean the same
in all tables: `residence` joins `counters` with `instances`, `job` joins `instances` with `jobs`, and `machine` joins
`instances` with `machines`. Names contain the units; shares are 0 to 1. No column holds nulls; NaN stands where a
number does not exist.

`counters`, `machine_windows` and `epochs` describe the recorded fleet, in which a part of the machines has the feature.
The same three tables of the counterfactual fleets begin with `truth_nowhere_` and `truth_everywhere_`. No real fleet
could have a table whose name begins with `truth_`, and no analysis of a fleet reads one. `instance_epochs` and
`machine_epochs` exist only if the scenario's `recording` asks for them, `truth_incidents` and `truth_shifts` only with
`incidents`. `rounds` holds conclusions, not events, and is
made anew when an estimator changes; it is in the folder `concluded`, as `rounds-<digest of the code>.parquet`.

If a fleet has several cells, each table is a folder, `<table>/cell=<name>/part.parquet`. Its files are those that each
cell would have written alone: numbers count within the cell, and readers of Parquet that know such folders add the
column `cell`. A job of one name is the same job in all cells. See [scale.md](scale.md).

All tables so far belong to a fleet. A run of a request queue has `requests` (what a client saw), `cpu` (what the
server's accounting counted), and `replays` if the scenario asks for other numbers of servers. Where requests may leave
unserved, `requests` holds those that were served and `unserved` the attempts that were not. `servers` says how many
servers were on, where that changes. `truth_requests` and `truth_cpu` hold the truth; of a queue on a machine
`truth_machine` and `truth_one_way`, too. If requests pass several stations, `requests` holds each as a whole,
`station_requests` and `station_cpu` each station's own log and counter, and `truth_station_requests` what really
happened there.

A run of a service on several platforms has `service_counts`: the number of requests of each type. The measured
platforms also have `service_log` (counters and response times) and `service_cpu` (utilisation). `benchmarks` holds
public scores. `truth_service` and the other tables of that kind hold the truth on every platform.

A profiled fleet whose services are served has `stay_requests`, the stamps of every request. With hardware on trial it
has tables `truth_trial_nowhere_` and `truth_trial_everywhere_`: the same day with that hardware on no machine, and on
all machines that may get it.

`manifest.json` describes the run: `resolved` (every value of the scenario), `seed`, `counts`, versions, and for each
table its `rows` and `digest`. It is written last: a folder without it is no run.
"""
PARAMETERS_HEAD = """# Every key of a scenario

`wsc check --schema` prints the same for editors, with bounds. The last column names the source of the default.
*Fitted to* means that the default was chosen so that a simulated fleet shows the published number;
`wsc reproduce world/calibration` prints published beside measured numbers and says which agree. A dash marks a choice
of ours: nothing published fixes the value, so vary it if it matters to you. A WSC is a warehouse-scale computer, here
one simulated fleet.
"""


def tables() -> str:
    """Return the text of `tables.md`."""
    named: dict[tuple[Column, ...], list[str]] = {}
    for name, columns in TABLES.items():
        named.setdefault(columns, []).append(name)
    return MADE + TABLES_HEAD + "".join(_table(names, columns) for columns, names in named.items()) + inputs.tables()


def parameters() -> str:
    """Return the text of `parameters.md`."""
    rows = csv.DictReader((DOCS / "defaults.csv").read_text(encoding="utf-8").splitlines())
    sources = {row["key"]: row["from"] for row in rows}
    return MADE + PARAMETERS_HEAD + "".join(_part(part, sources) for part in parts())


def parts() -> list[Part]:
    """Return the parts of scenarios, kind by kind in the order of their files, each with all its places."""
    parts = json_schema()["$defs"]
    found: dict[str, Part] = {}
    waiting = [(kind, name) for kind, name in reversed(KINDS.items())]
    while waiting:
        path, name = waiting.pop()
        if name in found:
            found[name][0].extend({path}.difference(found[name][0]))
            continue
        keys = parts[name]["properties"]
        found[name] = ([path], parts[name]["description"], keys)
        above = "" if path in KINDS else f"{path}."
        waiting += [(f"{above}{key}", part) for key, value in reversed(keys.items()) if (part := _part_of(value))]
    return list(found.values())


def _part_of(value: Mapping[str, Any]) -> str:
    """Return the name of the part that a key holds; empty if it holds a value."""
    choices = [value, *value.get("anyOf", [])]
    choices += [one[key] for one in choices for key in ("items", "additionalProperties") if key in one]
    return next((one["$ref"].rpartition("/")[2] for one in choices if "$ref" in one), "")


def _table(names: list[str], columns: tuple[Column, ...]) -> str:
    rows = [(f"`{column.name}`", str(column.type), column.meaning) for column in columns]
    heading = " and ".join(f"`{name}`" for name in names)
    return f"\n## {heading}\n\n" + _markdown(("column", "type", "meaning"), rows)


def _part(part: Part, sources: Mapping[str, str]) -> str:
    paths, meaning, keys = part
    heading = " and ".join(f"`{path}`" for path in paths)
    above = "" if paths[0] == FLEET else f"{paths[0]}."
    rows = [
        (f"`{key}`", _default(value), value.get("description", ""), sources.get(f"{above}{key}", "–"))
        for key, value in keys.items()
        if not _part_of(value) or "default" in value
    ]
    text = f"\n## {heading}\n\n{meaning}\n\n" + _markdown(("key", "default", "meaning", "from"), rows)
    return text if rows else ""


def _default(value: Mapping[str, Any]) -> str:
    return f"`{json.dumps(value['default'])}`" if "default" in value else ""


def _markdown(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    return "".join(f"{line}\n" for line in _lines(head, rows))


def _lines(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', '∣') for cell in row)} |"


if __name__ == "__main__":
    (DOCS / "tables.md").write_text(tables(), encoding="utf-8")
    (DOCS / "parameters.md").write_text(parameters(), encoding="utf-8")
