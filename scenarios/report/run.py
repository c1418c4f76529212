"""The report of a run: every lens that has something to say of it, in order, and why the others do not."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from scenarios.command import expected
from scenarios.execution import reopen
from scenarios.output import Progress
from scenarios.report import agreement, asked, damage, effect, fleet, papers, profile, queue, service
from scenarios.report.page import Page
from scenarios.report.section import Lens, Section, Subject, Verdict

LENSES: Mapping[str, Lens] = {
    "The fleet": fleet.happened,
    "The feature": effect.concluded,
    "WSMeter": fleet.wsmeter,
    "The Occupancy Law": queue.laws,
    "Requests": profile.served,
    "The profile": profile.cycles,
    "Stability": profile.stable,
    "Prediction": service.predicted,
    "Agreement": agreement.agree,
    "The papers": papers.printed,
}
"""Each way to look at a run, in the order of the report."""


_KINDS = {
    "fleet": "a fleet",
    "profile": "a profiled fleet",
    "queue": "a request server",
    "cross_platform": "a service on several platforms",
}


def report(path: Path, progress: Progress) -> Page:
    """Return the report of a run.

    Parameters
    ----------
    path : folder of a finished run; a copy without its ``truth_`` tables will do
    progress : told what is being done

    Raises
    ------
    RunError
        If the folder is no finished run, or of another version.
    FaultsError
        If tables that it lists are not there or cannot be read.

    Examples
    --------
    >>> report(Path("nowhere"), lambda what, share: None)
    Traceback (most recent call last):
    scenarios.rundir.RunError: nowhere: not a finished run, there is no manifest.json
    """
    scenario, run = reopen(path)
    subject = Subject(scenario, run)
    tables = damage.listed(run)
    sections = list[Section]()
    for i, (name, lens) in enumerate(LENSES.items()):
        progress("writing the report", i / len(LENSES))
        sections += _concluded(name, lens, subject, progress)
    last = (asked.settings(subject), tables)
    return Page(_KINDS[scenario.kind], scenario.name, scenario.description, asked.facts(subject), (*sections, *last))


def _concluded(name: str, lens: Lens, subject: Subject, progress: Progress) -> Iterator[Section]:
    """Yield what a lens says; why nothing can be concluded, where a run has too little for it."""
    try:
        yield from lens(subject, progress)
    except Exception as error:
        if not expected(error):
            raise
        why = tuple(str(error).splitlines())
        says = f"nothing could be concluded: {why[0] if why else type(error).__name__}"
        yield Section(f"{name}: not concluded", why, verdicts=(Verdict(name, says),))
