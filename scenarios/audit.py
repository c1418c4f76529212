"""What would make an experiment's answer false, from its tables: `wsc audit`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from analysis.audit.about import About, AboutError
from analysis.audit.guards import examine
from analysis.audit.table import NEEDED, ObservationsError
from analysis.cells import read_cells
from analysis.readers import Field, read_table
from scenarios.faults import Fault, FaultsError, shown
from scenarios.measured import faults_in

if TYPE_CHECKING:
    from rich.console import Console

_SAID = (".yaml", ".yml", ".json")
_JOBS = (Field("job", "text"), Field("quota", "real"))
_COLOURS = {"error": "red", "warning": "yellow", "note": "dim"}


def audit(paths: Sequence[Path]) -> dict[str, Any]:
    """Return what would make the answer of an experiment false.

    Parameters
    ----------
    paths : tables of observations (CSV or Parquet; period, job, machine, weight, value, treated and perhaps more), and
        perhaps a table of jobs (job, quota, and no machine) and what is said of the experiment (YAML or JSON)

    Returns
    -------
    dict
        findings (code, severity, what, evidence, remedy), the gravest first, and checked (codes of the guards that
        had what they need).

    Raises
    ------
    FaultsError
        With everything that is wrong with the files.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "seen.csv"
    ...     rows = [f"1,a,{machine},1,{2 + machine / 100},1" for machine in range(30)]
    ...     _ = file.write_text("\\n".join(["period,job,machine,weight,value,treated", *rows]))
    ...     audit([file])["findings"][0]["code"]
    'baseline_not_concurrent'
    """
    said = [path for path in paths if path.suffix.lower() in _SAID]
    tables = [path for path in paths if path not in said]
    if len(said) > 1:
        raise FaultsError([Fault(str(said[1]), 0, 0, "", "only one file may say what is known of the experiment")])
    faults, read = list[Fault](), dict[Path, pd.DataFrame]()
    for path in tables:
        try:
            read[path] = _observations(path)
        except FaultsError as error:
            faults += error.faults
    about = About()
    try:
        about = read_about(said[0]) if said else about
    except FaultsError as error:
        faults += error.faults
    if faults:
        raise FaultsError(faults)
    fleet = [path for path, table in read.items() if "machine" not in table]
    seen = [table.assign(file=path.name) for path, table in read.items() if path not in fleet]
    if len(fleet) > 1:
        raise FaultsError([Fault(str(fleet[1]), 0, 0, "", "only one table of jobs may be given")])
    if not seen:
        raise FaultsError([Fault("TABLES", 0, 0, "", "at least one table of observations is needed, with machines")])
    rows = seen[0] if len(seen) == 1 else pd.concat(seen, ignore_index=True)
    try:
        found = examine(rows, read[fleet[0]] if fleet else None, about)
    except ObservationsError as error:
        raise FaultsError([Fault(", ".join(str(path) for path in read), 0, 0, "", str(error))]) from None
    return found.payload()


def status(payload: Mapping[str, Any]) -> int:
    """Return the command's exit status: 0 if nothing is worse than a note, 1 otherwise.

    Examples
    --------
    >>> status({"findings": [{"severity": "note"}]}), status({"findings": [{"severity": "warning"}]})
    (0, 1)
    """
    return int(any(one["severity"] != "note" for one in payload["findings"]))


def show(payload: Mapping[str, Any], console: "Console") -> None:
    """Print what was found: a line each, its evidence and its remedy."""
    for one in payload["findings"]:
        colour = _COLOURS[one["severity"]]
        console.print(f"[{colour}]{one['severity']}[/{colour}] [bold]{one['code']}[/bold]: {one['what']}")
        if one["evidence"]:
            console.print("  " + ", ".join(f"{name} {_number(value)}" for name, value in one["evidence"].items()))
        console.print(f"  remedy: {one['remedy']}")
    if not payload["findings"]:
        console.print("nothing found")
    console.print(f"{len(payload['checked'])} guards had what they need: {', '.join(payload['checked'])}")


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4g}"


def _observations(path: Path) -> pd.DataFrame:
    """Return a table of observations, or of jobs, with identifiers as text and the numbers as they are, even bad ones.

    Values and weights that are no numbers are not refused here: it is for a guard to say what they do to the answer.
    """
    with faults_in(path):
        cells = read_cells(path)
        if "machine" not in cells.names and "quota" in cells.names:
            return read_table(path, _JOBS, lambda _: ("job",))
    faults = [Fault(str(path), *fault) for fault in cells.faults]
    faults += [
        Fault(str(path), 1, 1, name, "column is missing", f"columns {', '.join(cells.names)}")
        for name in NEEDED
        if cells.names and name not in cells.names
    ]
    if cells.names and not len(cells.lines):
        faults.append(Fault(str(path), 2, 1, "rows", "should hold at least one row", "none"))
    if faults:
        raise FaultsError(faults)
    columns = {name: _typed(name, column, cells.types.get(name)) for name, column in cells.columns.items()}
    table = pd.DataFrame(columns)
    for name in ("treated", "period"):
        number = pd.to_numeric(table[name], errors="coerce")
        wrong = ~number.isin([0, 1]) if name == "treated" else ~number.abs().lt(float("inf"))
        problem = "should be 0 or 1" if name == "treated" else "should be a number"
        place = cells.position(name)
        faults += [
            Fault(str(path), int(cells.lines[row]), place, name, problem, shown(str(table[name].iloc[row])))
            for row in wrong.to_numpy().nonzero()[0][:20]
        ]
        table[name] = number
    if faults:
        raise FaultsError(faults)
    return table


def _typed(name: str, column: "pd.Series[Any]", kind: pa.DataType | None) -> "pd.Series[Any]":
    """Return a column as numbers or text: identifiers are text, so that 7 in one file is 7 in another."""
    if name in {"job", "machine", "instance", "residence", "shard", "rack", "platform"}:
        return column.astype(str).str.strip()
    if name == "treated":
        words = column.astype(str).str.strip().str.lower()
        return words.replace({"true": "1", "false": "0", "1.0": "1", "0.0": "0"})
    return pd.to_numeric(column, errors="coerce") if kind is None or name in {"value", "weight"} else column


def read_about(path: Path) -> About:
    """Return what a file says of the experiment, YAML or JSON.

    Raises
    ------
    FaultsError
        With everything that is wrong with it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "about.yaml"
    ...     _ = file.write_text("looks: 14\\ninterval: fixed\\n")
    ...     read_about(file).looks
    14
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        text = path.read_text(encoding="utf-8")
        said = json.loads(text) if path.suffix.lower() == ".json" else YAML(typ="safe", pure=True).load(text)
    except OSError as error:
        raise FaultsError([Fault(str(path), 0, 0, "", "cannot be read", str(error.strerror))]) from None
    except UnicodeDecodeError as error:
        raise FaultsError([Fault(str(path), 0, 0, "", "should be UTF-8 text", str(error))]) from None
    except (YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else getattr(error, "lineno", 0)
        column = mark.column + 1 if mark is not None else getattr(error, "colno", 0)
        problem = getattr(error, "problem", None) or getattr(error, "msg", None) or "cannot be read"
        raise FaultsError([Fault(str(path), line, column, "", str(problem))]) from None
    if said is None:
        return About()
    if not isinstance(said, Mapping):
        raise FaultsError([Fault(str(path), 0, 0, "", "should be a mapping of fields to values", shown(said))])
    try:
        return About.of(said)
    except AboutError as error:
        raise FaultsError(
            [Fault(str(path), 0, 0, name, problem, shown(value)) for name, problem, value in error.problems]
        ) from None
