"""What would make an experiment's answer false, from its tables: `wsc audit`."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from analysis.audit.about import About
from analysis.audit.case import Audit
from analysis.audit.guards import GUARDS
from analysis.effects.estimand import Estimand
from analysis.tables.cells import Source, header_of, name_of
from analysis.tables.expressions import parsed
from analysis.tables.recipe import AS_IT_IS, Recipe
from models.errors import InputError
from models.fleet.metrics import METRICS, MetricName
from scenarios.effects.observations import experiment, racks_wrong, read_about, repeated_sources
from scenarios.effects.own_guards import GuardFunction, own_guards
from scenarios.files.faults import Fault, FaultsError
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import plural
from scenarios.views.section import Section, finding_lines, note_lines, says, table

_SAID = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True, repr=False)
class GuardList(Conclusion):
    """What our guards look for: ``wsc audit --list``."""

    def section(self) -> Section:
        """Return a line for each guard."""
        rows = list(self.frame().itertuples(index=False, name=None))
        return Section("", (table(("guard", "what it does"), rows, words=2),))

    def payload(self) -> Payload:
        """Return the guards, each with its code and what it does."""
        return {"kind": "guards", "guards": self.frame().to_dict("records")}

    def frame(self) -> pd.DataFrame:
        """Return code and what, a row a guard.

        Examples
        --------
        >>> GuardList().frame().query("code == 'peeking'")["what"].item()
        'Find a result that was looked at several times with an interval that is made for one look.'
        """
        lines = [(code, (guard.__doc__ or "").strip().partition("\n")[0]) for code, guard in GUARDS.items()]
        return pd.DataFrame(lines, columns=["code", "what"])


@dataclass(frozen=True, slots=True, repr=False)
class AuditAnswer(Conclusion):
    """What would make the answer of an experiment false."""

    audit: Audit
    metric: MetricName | None
    """Of runs; None of files."""
    notes: tuple[str, ...] = ()
    """What was read otherwise than it stands, or left out, and which guards cannot look at such a metric."""

    def brief(self) -> str:
        """Return the findings by severity, or that there are none."""
        findings = self.audit.findings
        codes = {
            kind: [finding.code for finding in findings if finding.severity == kind]
            for kind in ("error", "warning", "note")
        }
        return "; ".join(f"{plural(len(of), kind)}: {', '.join(of)}" for kind, of in codes.items() if of) or (
            f"nothing found by {plural(len(self.audit.checked), 'guard')}"
        )

    @property
    def clean(self) -> bool:
        """Whether nothing is worse than a note."""
        return all(finding.severity == "note" for finding in self.audit.findings)

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        notes = [*self.notes, *self.audit.silent]
        looked = {**self.audit.payload(), "unchecked": dict(self.audit.unchecked)}
        return {"kind": "audit", **looked, "metric": self.metric, **({"notes": notes} if notes else {})}

    def frame(self) -> pd.DataFrame:
        """Return the findings, a row each."""
        return pd.DataFrame([asdict(finding) for finding in self.audit.findings])

    def section(self) -> Section:
        """Return the findings, each with its evidence and its remedy, which guards looked, and what the others need."""
        checked, unchecked = self.audit.checked, self.audit.unchecked
        lines = (
            "" if self.metric is None else f"measured: {METRICS[self.metric].words} ({self.metric})",
            "" if self.audit.findings else "nothing found",
            f"{plural(len(checked), 'guard')} found what they need: {', '.join(checked)}",
            f"{plural(len(unchecked), 'guard')} did not look:" if unchecked else "",
            *(f"  {code} needs {needs}" for code, needs in unchecked.items()),
        )
        told = (
            *finding_lines(self.audit.findings, evidence=True),
            *says(*lines),
            *note_lines((*self.notes, *self.audit.silent)),
        )
        return Section("", told)


def audit(
    paths: Sequence[Source],
    metric: MetricName | None = None,
    recipe: Recipe = AS_IT_IS,
    guards: Sequence[str | GuardFunction] = (),
    metric_kind: str = "rate",
) -> AuditAnswer:
    """Return what would make the answer of an experiment false.

    Parameters
    ----------
    paths : tables of observations (CSV or Parquet; period, job, machine, weight, value, treated and perhaps more) or
        the folders of runs, and perhaps a table of jobs (job, quota, and no machine; one run alone has its own) and
        what is said of the experiment (YAML or JSON)
    metric : of runs; that of their scenario if not said
    recipe : how columns of the tables of observations become ours
    guards : of somebody's own, beside ours: functions, or where they are, such as ``mine.py:racks_alike``
    metric_kind : rate, mean, proportion, ratio, or a quantile such as p99; guards that cannot look at it are silent

    Raises
    ------
    FaultsError
        With everything that is wrong with the files.
    """
    estimand = Estimand.of(metric_kind)
    own = own_guards(guards) if guards else ()
    about_files = [path for path in paths if isinstance(path, Path) and _states(path)]
    tables = list({id(path) if isinstance(path, pd.DataFrame) else path: path for path in paths}.values())
    tables = [path for path in tables if not (isinstance(path, Path) and _states(path))]
    fleet = [path for path in tables if _is_of_jobs(path, recipe)]
    observed_in = [path for path in tables if not _is_of_jobs(path, recipe)]
    faults = list(_asked_wrongly(paths, about_files, fleet, observed_in))
    about, read = About(), None
    try:
        read = experiment(observed_in, fleet[0] if fleet else None, metric, recipe, estimand) if observed_in else None
    except FaultsError as error:
        faults += error.faults
    try:
        about = read_about(about_files[0]) if about_files else about
    except FaultsError as error:
        faults += error.faults
    if read is not None and about_files:
        faults += racks_wrong(about, read.observations.table, about_files[0])
    if faults or read is None:
        raise FaultsError(faults)
    notes = (*read.notes, *read.not_looking())
    return AuditAnswer(read.audit(about, own=own), read.metric, notes)


def _states(path: Path) -> bool:
    """Return whether a file says what is known of the experiment."""
    return path.suffix.lower() in _SAID and not path.is_dir()


def _is_of_jobs(source: Source, recipe: Recipe) -> bool:
    """Return whether a table is that of the fleet's jobs: it has quotas and names no machines, by a recipe neither."""
    if isinstance(source, Path) and source.is_dir():
        return False
    names = header_of(source)
    if "machine" in names or "quota" not in names:
        return False
    try:
        return "machine" not in recipe.columns or bool(parsed(recipe.columns["machine"], names).unknown(names))
    except InputError:  # which reading the observations reports
        return True


def _asked_wrongly(
    paths: Sequence[Source], about_files: Sequence[Path], fleet: Sequence[Source], observed_in: Sequence[Source]
) -> Iterator[Fault]:
    """Yield what was given more than once, or is missing."""
    yield from repeated_sources(paths)
    if len(set(about_files)) > 1:
        yield Fault(str(about_files[1]), 0, 0, "", "only one file may hold facts about the experiment")
    if len(fleet) > 1:
        yield Fault(name_of(fleet[1]), 0, 0, "", "only one table of jobs may be given")
    if not observed_in:
        yield Fault("TABLES", 0, 0, "", "at least one table of observations is needed, with machines")
