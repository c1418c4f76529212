"""What would make an experiment's answer false, from its tables: `wsc audit`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from analysis.audit.about import About, AboutError
from analysis.audit.guards import examine
from analysis.audit.table import NEEDED, ObservationsError
from analysis.cells import read_cells
from analysis.readers import LEAST, MOST, PRINTED, Field, read_table
from scenarios.faults import Fault, FaultsError, shown
from scenarios.measured import faults_in
from scenarios.observed import jobs_of_run, observed

if TYPE_CHECKING:
    from rich.console import Console

_SAID = (".yaml", ".yml", ".json")
_JOBS = (Field("job", "text"), Field("quota", "real"))
_AMOUNTS = ("value", "weight", "present_s", "mean_frequency_hz", "clock_hz", "cycles", "cpu_s", "exposure")
_NAMES = ("job", "machine", "instance", "residence", "shard", "rack", "platform")
_COLOURS = {"error": "red", "warning": "yellow", "note": "dim"}


def audit(paths: Sequence[Path]) -> dict[str, Any]:
    """Return what would make the answer of an experiment false.

    Parameters
    ----------
    paths : tables of observations (CSV or Parquet; period, job, machine, weight, value, treated and perhaps more) or
        the folders of runs, and perhaps a table of jobs (job, quota, and no machine; one run alone has its own) and
        what is said of the experiment (YAML or JSON)

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
    said = [path for path in paths if path.suffix.lower() in _SAID and not path.is_dir()]
    tables = [path for path in paths if path not in said]
    faults, read = list(_asked_twice(paths, said)), dict[Path, pd.DataFrame]()
    for path in dict.fromkeys(tables):
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
    rows, jobs = _together(read)
    try:
        found = examine(rows, jobs, about)
    except ObservationsError as error:
        raise FaultsError([Fault(", ".join(str(path) for path in read), 0, 0, "", str(error))]) from None
    return found.payload()


def _asked_twice(paths: Sequence[Path], said: Sequence[Path]) -> Iterator[Fault]:
    """Yield what was given more than once."""
    for path in dict.fromkeys(paths):
        if paths.count(path) > 1:
            yield Fault(str(path), 0, 0, "", "should be given once", f"{paths.count(path)} times")
    if len(set(said)) > 1:
        yield Fault(str(said[1]), 0, 0, "", "only one file may say what is known of the experiment")


def _together(read: Mapping[Path, pd.DataFrame]) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Return the rows of all tables of observations with the column `file`, and the whole fleet's jobs, if known."""
    fleet = [path for path, table in read.items() if "machine" not in table]
    seen = {path: table for path, table in read.items() if path not in fleet}
    if len(fleet) > 1:
        raise FaultsError([Fault(str(fleet[1]), 0, 0, "", "only one table of jobs may be given")])
    if not seen:
        raise FaultsError([Fault("TABLES", 0, 0, "", "at least one table of observations is needed, with machines")])
    (first, rows), *others = seen.items()
    if not others:
        whole = jobs_of_run(first) if first.is_dir() and not fleet else None
        return rows.assign(file=first.name), read[fleet[0]] if fleet else whole
    named = [table.assign(file=path.name).astype(_text_of(table)) for path, table in seen.items()]
    return pd.concat(named, ignore_index=True), read[fleet[0]] if fleet else None


def _text_of(table: pd.DataFrame) -> dict[str, type[str]]:
    """Return the types that make identifiers text, so that 7 of a run is 7 in a file."""
    return {name: str for name in _NAMES if name in table}


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
    from rich.markup import escape

    for one in payload["findings"]:
        colour = _COLOURS[one["severity"]]
        what = escape(one["what"])
        console.print(f"[{colour}]{one['severity']}[/{colour}] [bold]{one['code']}[/bold]: {what}")
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
    Those beyond what squares of their ratios could be counted in are faults.
    """
    if path.is_dir():
        return observed([path])[0]
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
    for name, wrong, problem in _wrong(table):
        faults += [
            Fault(str(path), int(cells.lines[row]), cells.position(name), name, problem, shown(str(table[name][row])))
            for row in wrong.to_numpy().nonzero()[0][:PRINTED]
        ]
    if faults:
        raise FaultsError(faults)
    return table.assign(**{name: pd.to_numeric(table[name]) for name in ("treated", "period")})


def _wrong(table: pd.DataFrame) -> Iterator[tuple[str, "pd.Series[bool]", str]]:
    """Yield columns, which of their rows are wrong, and why."""
    yield "treated", ~pd.to_numeric(table["treated"], errors="coerce").isin([0, 1]), "should be 0 or 1"
    period = pd.to_numeric(table["period"], errors="coerce").abs()
    yield "period", ~(period < float("inf")), "should be a number"
    yield "period", (period > MOST) & (period < float("inf")), f"should be at most {MOST:g}"
    for name in (each for each in _AMOUNTS if each in table):
        size = pd.to_numeric(table[name], errors="coerce")
        yield name, (size > MOST) & (size < float("inf")), f"should be at most {MOST:g}"
        yield name, (size > 0) & (size < LEAST), f"should be at least {LEAST:g}"


def _typed(name: str, column: "pd.Series[Any]", kind: pa.DataType | None) -> "pd.Series[Any]":
    """Return a column as numbers or text: identifiers are text, so that 7 in one file is 7 in another."""
    if name in _NAMES:
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
        said = (getattr(error, name, None) for name in ("problem", "msg", "reason"))
        problem = next((each for each in said if each), "cannot be read")
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
