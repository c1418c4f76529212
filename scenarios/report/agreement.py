"""Whether a run's lenses agree, in a report; and the new processors on trial, predicted, tried and true."""

from collections.abc import Collection, Iterator, Sequence

from analysis.crosscheck.check import Check
from scenarios.crosscheck.crosscheck import crosscheck
from scenarios.files.schema import ProfileScenario, Scenario
from scenarios.report.subject import Subject, composed, sentences
from scenarios.views.numbers import plural
from scenarios.views.section import Cell, Section, Table, Verdict, table
from scenarios.views.terminal import Progress

_COMPARED = {
    "upgrade_wsmeter": ("tried", "true"),
    "upgrade_predicted": ("predicted", "true"),
    "upgrade_tried": ("predicted", "tried"),
}


def agree(subject: Subject, progress: Progress) -> Iterator[Section]:
    """Yield what is known of processors on trial, and every check of `wsc crosscheck`; nothing of a run of no fleet."""
    if not isinstance(subject.scenario, Scenario | ProfileScenario):
        return
    agreement = crosscheck(subject.run.path, progress)
    checks = agreement.checks
    yield from _trial(checks)
    shown, failed = agreement.section(), [check.check for check in checks if not check.holds]
    decisive = sum(check.decisive for check in checks)
    says = f"{len(checks) - len(failed)} of {len(checks)} checks between lenses hold; {decisive} are decisive"
    yield composed(
        "Do the lenses agree?",
        sentences(shown),
        shown.of(Table),
        commands=(f"wsc crosscheck {subject.run.path}",),
        verdicts=(Verdict("Agreement", says + (f"; not {', '.join(failed)}" if failed else ""), agreement.agree),),
        answer=agreement,
    )


def _trial(checks: Sequence[Check]) -> Iterator[Section]:
    """Yield what new processors on trial would change, as far as any check says it."""
    rows = [check for check in checks if check.check.partition(":")[0] in _COMPARED]
    if not rows:
        return
    numbers = (False, False, True, False, True, True, False, False)
    heads = ("of", "", "change", "", "change", "may differ by", "holds", "decisive")
    yield composed(
        "New processors on trial: predicted, tried and true",
        ("Relative change of instructions per CPU second where the new processors replace the old.",),
        (table(heads, [_cells(check) for check in rows], numbers=numbers),),
        verdicts=(_concluded(rows),),
        answer=[check.payload() for check in rows],
    )


def _cells(check: Check) -> tuple[str | Cell, ...]:
    name, _, job = check.check.partition(":")
    left, right = _COMPARED[name]
    return (
        job or "fleet",
        left,
        f"{check.left:+.2%}",
        right,
        f"{check.right:+.2%}",
        f"{check.tolerance:.2%}",
        Cell("yes") if check.holds else Cell("no", "bad"),
        "yes" if check.decisive else "no",
    )


def _concluded(rows: Sequence[Check]) -> Verdict:
    """Return in a line what is said of the fleet and of each service, every number once, and what decides nothing."""
    changes = dict[str, dict[str, str]]()
    for check in rows:
        name, _, job = check.check.partition(":")
        for side, value in zip(_COMPARED[name], (check.left, check.right), strict=True):
            changes.setdefault(job or "fleet", {})[side] = f"{value:+.2%}"
    says = [f"{of}: {', '.join(f'{side} {value}' for side, value in by.items())}" for of, by in changes.items()]
    of_rows = [check.check.partition(":")[2] or "fleet" for check in rows]
    idle = dict.fromkeys(of for of, check in zip(of_rows, rows, strict=True) if not check.decisive)
    says += [f"intervals of {', '.join(idle)} are so wide that they would hold no change, too"] if idle else []
    failed = any(not check.holds for check in rows)
    decided = dict.fromkeys(of for of, check in zip(of_rows, rows, strict=True) if check.decisive)
    holds = False if failed else bool(decided) or None
    return Verdict("New processors", "; ".join(says), holds, _undecided(decided, of_rows) if holds else "")


def _undecided(decided: Collection[str], of_rows: Collection[str]) -> str:
    """Return for what a verdict holds, and how many others no check decides; nothing if there are none."""
    left = {*of_rows} - {*decided}
    if not left:
        return ""
    services = plural(len(left - {"fleet"}), "service") if left - {"fleet"} else ""
    names = " and ".join(part for part in ("the fleet" if "fleet" in left else "", services) if part)
    return f"for {', '.join('the fleet' if of == 'fleet' else of for of in decided)}; {names} undecided"
