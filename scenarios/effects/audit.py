"""What would make an experiment's answer false, from its tables: `wsc audit`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pandas as pd

from analysis.audit.about import About, AboutError
from analysis.audit.findings import Audit
from analysis.audit.guards import examine
from analysis.audit.table import ObservationsError
from analysis.tables.cells import column_names
from models.fleet.metrics import METRICS, MetricName
from scenarios.effects.observations import experiment, run_metric, together
from scenarios.files.faults import Fault, FaultsError, shown
from scenarios.views import findings
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.section import Section, says

_SAID = (".yaml", ".yml", ".json")
_FEWEST_RACKS = 2


@dataclass(frozen=True, slots=True)
class AuditAnswer(Conclusion):
    """What would make the answer of an experiment false."""

    audit: Audit
    metric: MetricName | None
    """Of runs; None of files."""

    @property
    def clean(self) -> bool:
        """Whether nothing is worse than a note."""
        return all(finding.severity == "note" for finding in self.audit.findings)

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        return {**self.audit.payload(), "metric": self.metric}

    def frame(self) -> pd.DataFrame:
        """Return the findings, a row each."""
        return pd.DataFrame([asdict(finding) for finding in self.audit.findings])

    def section(self) -> Section:
        """Return the findings, each with its evidence and its remedy, and which guards could look."""
        checked = self.audit.checked
        lines = (
            "" if self.metric is None else f"measured: {METRICS[self.metric].words} ({self.metric})",
            "" if self.audit.findings else "nothing found",
            f"{len(checked)} guards had what they need: {', '.join(checked)}",
        )
        return Section("", (*findings.blocks(self.audit.findings, evidence=True), *says(*lines)))


def audit(paths: Sequence[Path], metric: MetricName | None = None) -> AuditAnswer:
    """Return what would make the answer of an experiment false.

    Parameters
    ----------
    paths : tables of observations (CSV or Parquet; period, job, machine, weight, value, treated and perhaps more) or
        the folders of runs, and perhaps a table of jobs (job, quota, and no machine; one run alone has its own) and
        what is said of the experiment (YAML or JSON)
    metric : of runs; that of their scenario if not said

    Raises
    ------
    FaultsError
        With everything that is wrong with the files.
    """
    about_files = [path for path in paths if path.suffix.lower() in _SAID and not path.is_dir()]
    tables = dict.fromkeys(path for path in paths if path not in about_files)
    fleet = [path for path in tables if not path.is_dir() and _is_of_jobs(path)]
    observed_in = [path for path in tables if path not in fleet]
    faults = list(_asked_wrongly(paths, about_files, fleet, observed_in))
    about, rows, jobs = About(), pd.DataFrame(), None
    try:
        rows, jobs, _ = (
            experiment(observed_in, fleet[0] if fleet else None, metric) if observed_in else (rows, None, [])
        )
        metric = run_metric(observed_in, metric)
    except FaultsError as error:
        faults += error.faults
    try:
        about = read_about(about_files[0]) if about_files else about
    except FaultsError as error:
        faults += error.faults
    faults += racks_wrong(about, rows, about_files[0]) if about_files and len(rows) else []
    if faults:
        raise FaultsError(faults)
    try:
        audited = examine(rows, jobs, with_metric(about, metric))
    except ObservationsError as error:
        raise FaultsError([Fault(str(together(observed_in)), 0, 0, "", str(error))]) from None
    return AuditAnswer(audited, metric)


def with_metric(about: About, metric: MetricName | None) -> About:
    """Return what is said of an experiment, and of a run the metric too, which need not be said."""
    return about if about.metric is not None or metric is None else replace(about, metric=metric)


def racks_wrong(about: About, rows: pd.DataFrame, file: Path) -> list[Fault]:
    """Return why racks cannot be the clusters that an experiment is said to have; nothing if they can or need not be.

    Parameters
    ----------
    about : what is said of the experiment
    rows : observations
    file : the one that says it

    Examples
    --------
    >>> rows = pd.DataFrame({"machine": [1, 2], "treated": [0, 1], "rack": [7, 7]})
    >>> print(*racks_wrong(About(clusters="rack"), rows, Path("about.yaml")))
    about.yaml: clusters: rack needs 2 racks with and without the feature, got 1 with it and 1 without it
    """
    if about.clusters != "rack":
        return []
    if "rack" not in rows:
        return [Fault(str(file), 0, 0, "clusters", "rack needs the column rack in the observations")]
    machines = rows.groupby("machine").agg(having=("treated", "max"), rack=("rack", "first"))
    racks = [set(machines.loc[machines["having"] == arm, "rack"]) for arm in (1, 0)]
    counts = [len(racks[0])] if (machines["having"] == 1).all() else [len(racks_) for racks_ in racks]
    if min(counts) >= _FEWEST_RACKS:
        return []
    got = " and ".join(f"{count} {arm} it" for count, arm in zip(counts, ("with", "without"), strict=False))
    return [Fault(str(file), 0, 0, "clusters", f"rack needs {_FEWEST_RACKS} racks with and without the feature", got)]


def _is_of_jobs(path: Path) -> bool:
    """Return whether a file is the table of the fleet's jobs: it names no machines."""
    names = column_names(path)
    return "machine" not in names and "quota" in names


def _asked_wrongly(
    paths: Sequence[Path], about_files: Sequence[Path], fleet: Sequence[Path], observed_in: Sequence[Path]
) -> Iterator[Fault]:
    """Yield what was given more than once, or is missing."""
    for path in dict.fromkeys(paths):
        if paths.count(path) > 1:
            yield Fault(str(path), 0, 0, "", "should be given once", f"{paths.count(path)} times")
    if len(set(about_files)) > 1:
        yield Fault(str(about_files[1]), 0, 0, "", "only one file may say what is known of the experiment")
    if len(fleet) > 1:
        yield Fault(str(fleet[1]), 0, 0, "", "only one table of jobs may be given")
    if not observed_in:
        yield Fault("TABLES", 0, 0, "", "at least one table of observations is needed, with machines")


def read_about(path: Path) -> About:
    """Return what a file says of the experiment, YAML or JSON."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        text = path.read_text(encoding="utf-8")
        statements = json.loads(text) if path.suffix.lower() == ".json" else YAML(typ="safe", pure=True).load(text)
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
        messages = (getattr(error, name, None) for name in ("problem", "msg", "reason"))
        problem = next((message for message in messages if message), "cannot be read")
        raise FaultsError([Fault(str(path), line, column, "", str(problem))]) from None
    if statements is None:
        return About()
    if not isinstance(statements, Mapping):
        raise FaultsError([Fault(str(path), 0, 0, "", "should be a mapping of fields to values", shown(statements))])
    try:
        return About.of(statements)
    except AboutError as error:
        raise FaultsError(
            [Fault(str(path), 0, 0, name, problem, shown(value)) for name, problem, value in error.problems]
        ) from None
