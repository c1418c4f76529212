"""What would make an experiment's answer false, from its tables: `wsc audit`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from analysis.audit.about import About, AboutError
from analysis.audit.guards import examine
from analysis.audit.table import ObservationsError
from analysis.tables.cells import column_names
from models.metrics import METRICS, MetricName
from scenarios.effects.observed import experiment, run_metric, together
from scenarios.files.faults import Fault, FaultsError, shown

if TYPE_CHECKING:
    from rich.console import Console

_SAID = (".yaml", ".yml", ".json")
_FEWEST_RACKS = 2
_COLOURS = {"error": "red", "warning": "yellow", "note": "dim"}


def audit(paths: Sequence[Path], metric: MetricName | None = None) -> dict[str, Any]:
    """Return what would make the answer of an experiment false.

    Parameters
    ----------
    paths : tables of observations (CSV or Parquet; period, job, machine, weight, value, treated and perhaps more) or
        the folders of runs, and perhaps a table of jobs (job, quota, and no machine; one run alone has its own) and
        what is said of the experiment (YAML or JSON)
    metric : of runs; that of their scenario if not said

    Returns
    -------
    dict
        findings (code, severity, what, evidence, remedy), the gravest first, checked (codes of the guards that had
        what they need), and metric (of runs; None of files).

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
    tables = dict.fromkeys(path for path in paths if path not in said)
    fleet = [path for path in tables if not path.is_dir() and _is_of_jobs(path)]
    seen = [path for path in tables if path not in fleet]
    faults = list(_asked_wrongly(paths, said, fleet, seen))
    about, rows, jobs = About(), pd.DataFrame(), None
    try:
        rows, jobs, _ = experiment(seen, fleet[0] if fleet else None, metric) if seen else (rows, None, [])
        metric = run_metric(seen, metric)
    except FaultsError as error:
        faults += error.faults
    try:
        about = read_about(said[0]) if said else about
    except FaultsError as error:
        faults += error.faults
    faults += racks_wrong(about, rows, said[0]) if said and len(rows) else []
    if faults:
        raise FaultsError(faults)
    try:
        found = examine(rows, jobs, with_metric(about, metric))
    except ObservationsError as error:
        raise FaultsError([Fault(str(together(seen)), 0, 0, "", str(error))]) from None
    return {**found.payload(), "metric": metric}


def with_metric(about: About, metric: MetricName | None) -> About:
    """Return what is said of an experiment, and of a run the metric too, which need not be said."""
    return about if about.metric is not None or metric is None else replace(about, metric=metric)


def racks_wrong(about: About, rows: pd.DataFrame, said: Path) -> list[Fault]:
    """Return why racks cannot be the clusters that an experiment is said to have; nothing if they can or need not be.

    Parameters
    ----------
    about : what is said of the experiment
    rows : observations
    said : the file that says it

    Examples
    --------
    >>> rows = pd.DataFrame({"machine": [1, 2], "treated": [0, 1], "rack": [7, 7]})
    >>> print(*racks_wrong(About(clusters="rack"), rows, Path("about.yaml")))
    about.yaml: clusters: rack needs 2 racks with and without the feature, got 1 with it and 1 without it
    """
    if about.clusters != "rack":
        return []
    if "rack" not in rows:
        return [Fault(str(said), 0, 0, "clusters", "rack needs the column rack in the observations")]
    machines = rows.groupby("machine").agg(having=("treated", "max"), rack=("rack", "first"))
    racks = [set(machines.loc[machines["having"] == arm, "rack"]) for arm in (1, 0)]
    counts = [len(racks[0])] if (machines["having"] == 1).all() else [len(each) for each in racks]
    if min(counts) >= _FEWEST_RACKS:
        return []
    got = " and ".join(f"{count} {arm} it" for count, arm in zip(counts, ("with", "without"), strict=False))
    return [Fault(str(said), 0, 0, "clusters", f"rack needs {_FEWEST_RACKS} racks with and without the feature", got)]


def _is_of_jobs(path: Path) -> bool:
    """Return whether a file is the table of the fleet's jobs: it names no machines."""
    names = column_names(path)
    return "machine" not in names and "quota" in names


def _asked_wrongly(
    paths: Sequence[Path], said: Sequence[Path], fleet: Sequence[Path], seen: Sequence[Path]
) -> Iterator[Fault]:
    """Yield what was given more than once, or is missing."""
    for path in dict.fromkeys(paths):
        if paths.count(path) > 1:
            yield Fault(str(path), 0, 0, "", "should be given once", f"{paths.count(path)} times")
    if len(set(said)) > 1:
        yield Fault(str(said[1]), 0, 0, "", "only one file may say what is known of the experiment")
    if len(fleet) > 1:
        yield Fault(str(fleet[1]), 0, 0, "", "only one table of jobs may be given")
    if not seen:
        yield Fault("TABLES", 0, 0, "", "at least one table of observations is needed, with machines")


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
    if payload["metric"] is not None:
        console.print(f"measured: {METRICS[payload['metric']].words} ({payload['metric']})", highlight=False)
    if not payload["findings"]:
        console.print("nothing found")
    console.print(f"{len(payload['checked'])} guards had what they need: {', '.join(payload['checked'])}")


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4g}"


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
    except RecursionError:
        raise FaultsError([Fault(str(path), 0, 0, "", "is nested too deeply")]) from None
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
