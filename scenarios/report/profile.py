"""A profiled fleet in a report: where its cycles went, how stable that was, and what its served services met."""

from collections.abc import Iterator

from analysis.profiling.database import Database
from scenarios.files.schema import ProfileScenario
from scenarios.profiling.measure import measure
from scenarios.profiling.served import ServedService, service_table, services
from scenarios.profiling.stability import stability
from scenarios.report.figures import saved
from scenarios.report.flame import flames
from scenarios.report.subject import Subject, composed
from scenarios.views.section import Says, Section, Table, Verdict
from scenarios.views.terminal import Progress

_PICTURED = {
    "functions": "The hottest functions and their shares of cycles, with intervals, beside the truth",
    "rollouts": "Shares of compilers, kernels and platforms in the cycles, day by day",
}


def cycles(subject: Subject, progress: Progress) -> Iterator[Section]:
    """Yield where a profiled fleet's cycles went: hottest functions, applications' CPI, roll-outs; of no other run."""
    scenario, run = subject.scenario, subject.run
    if not isinstance(scenario, ProfileScenario):
        return
    measured = measure(scenario, run, run.path.parent, progress)
    figures = (str(file) for file in measured.figures if scenario.days > 1 or "rollouts" not in file.name)
    with Database([run.path]) as database:
        graph = flames(database, f"wsc serve {run.path}")
    yield composed(
        "The profile: where the cycles go",
        [f"{line[0].upper()}{line[1:]}" for line in (measured.verdict().says, measured.size, *measured.lines())],
        measured.tables(),
        (*graph, *saved(figures, _PICTURED)),
        (f"wsc run {run.path}", f"wsc profile query {run.path} --by function,job", f"wsc serve {run.path}"),
        (measured.verdict(),),
        measured,
    )


def stable(subject: Subject, progress: Progress) -> Iterator[Section]:
    """Yield how stable a profile of several days is; nothing of a single day, nor of other runs."""
    if not isinstance(subject.scenario, ProfileScenario) or subject.scenario.days < 2:
        return
    progress("comparing days", 0.0)
    stable_days = stability([subject.run.path])
    section = stable_days.section()
    yield composed(
        "The profile's stability",
        [block.text for block in section.of(Says)],
        section.of(Table),
        commands=(f"wsc profile stability {subject.run.path}",),
        answer=stable_days,
    )


def served(subject: Subject, progress: Progress) -> Iterator[Section]:
    """Yield what the Occupancy Law says of services whose requests were served; nothing of a run without such."""
    progress("applying the Occupancy Law", 0.0)
    rows = services(subject.run)
    if not rows:
        return
    says = "; ".join(row.responds() for row in rows)
    yield composed(
        "The requests: what the Occupancy Law says of each service",
        ("Utilisation and queueing from nothing but when requests came and went.", *_left(rows)),
        (service_table(rows),),
        verdicts=(Verdict("Requests", says),),
        answer=[row.payload() for row in rows],
    )


def _left(rows: list[ServedService]) -> Iterator[str]:
    """Yield how many requests had not departed, if any."""
    unfinished, requests = sum(row.unfinished for row in rows), sum(row.requests for row in rows)
    if unfinished:
        yield (
            f"{unfinished:,} of {requests:,} requests have no departure: their stay ended before they did. They count "
            "as present, and not in response times."
        )
