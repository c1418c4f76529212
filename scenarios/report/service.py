"""A service on several platforms in a report: what methods predicted, beside what happened on each platform."""

from collections.abc import Iterator, Sequence

import pandas as pd

from models.platforms import Platform, same_instructions
from scenarios.crossplatform.measure import measure
from scenarios.crossplatform.trial import JudgedWorld
from scenarios.crossplatform.worlds import BEST
from scenarios.files.schema import ServiceScenario
from scenarios.report.figures import saved
from scenarios.report.subject import Subject, composed, sentences
from scenarios.views.numbers import share
from scenarios.views.section import Section, Table, Verdict, table
from scenarios.views.terminal import Progress

_PICTURED = {"errors": "Median error of service time by method, platform by platform"}


def predicted(subject: Subject, progress: Progress) -> Iterator[Section]:
    """Yield what happened on every platform, and how far each method's predictions were off; nothing of other runs."""
    scenario, run = subject.scenario, subject.run
    if not isinstance(scenario, ServiceScenario):
        return
    measured = measure(scenario, run, run.path.parent, progress)
    world, sheets = measured.world, scenario.sheets
    question = asking(str(run.path), sheets[measured.origin], [sheets[name] for name in scenario.targets])
    if world["platforms"]:
        yield composed("What happened", ("What every platform really did with the same requests.",), (_busy(world),))
    yield composed(
        "Predictions for platforms where the service never ran",
        sentences(measured.section()),
        (*measured.section().of(Table), *_intervals(world)),
        saved([str(file) for file in measured.figures], _PICTURED),
        (f"wsc run {run.path}", question),
        (_verdict(world),),
        measured,
    )


def asking(run: str, origin: Platform, targets: Sequence[Platform]) -> str:
    """Return the command that predicts from a run's log; in a simulated world platforms need the same instructions."""
    alike = all(same_instructions(origin, target) for target in targets)
    names = ",".join(target.name for target in targets)
    return f"wsc predict {run} --from {origin.name} --to {names}" + ("" if alike else " --instruction-ratio 1,1")


def _busy(world: JudgedWorld) -> Table:
    """Return how busy every platform was and how long its requests took."""
    rows = [
        (
            row["platform"],
            f"{row['utilisation']:.1%}",
            f"{row['peak_utilisation']:.1%}",
            f"{1e3 * row['service_time_s']:.3g}",
            f"{1e3 * row['response_time_s']:,.3g}",
        )
        for row in world["platforms"]
    ]
    return table(("platform", "busy", "at most", "service time, ms", "response time, ms"), rows)


def _intervals(world: JudgedWorld) -> Iterator[Table]:
    """Yield how wide the intervals of the method that is put forward are, and how often they hold, by platform."""
    rows = [
        (row["target"], *(share(row[name], 1) for name in ("service_error", "coverage", "half_width")))
        for row in world["methods"]
        if row["method"] == BEST
    ]
    if rows:
        yield table(("platform", "error of service time", "90% intervals that hold", "±"), rows, title=f"method {BEST}")


def _verdict(world: JudgedWorld) -> Verdict:
    rows = pd.DataFrame(world["methods"], columns=["method", "service_error", "coverage"])
    of = rows[rows["method"] == BEST]
    if not len(of) or not of["service_error"].notna().any():
        return Verdict("Prediction", "errors of predictions are unknown without the truth")
    others = rows[rows["method"] != BEST].groupby("method", sort=False)["service_error"].median().dropna()
    says = (
        f"{BEST}: service time off by {of['service_error'].median():.1%} (median of {len(of)} platforms), its 90% "
        f"intervals hold in {of['coverage'].mean():.1%}"
    )
    if len(others):
        says += f"; the best other method, {others.idxmin()}, off by {others.min():.1%}"
    return Verdict("Prediction", says)
