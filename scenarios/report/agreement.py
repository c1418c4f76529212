"""Whether a run's lenses agree, in a report; and the new processors on trial, predicted, tried and true."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from scenarios.crosscheck.crosscheck import crosscheck, show
from scenarios.files.schema import ProfileScenario, Scenario
from scenarios.report.printed import printed
from scenarios.report.subject import Subject, composed
from scenarios.views.numbers import plural
from scenarios.views.output import Progress
from scenarios.views.section import Cell, Heading, Section, Table, Verdict

_COMPARED = {
    "upgrade_wsmeter": ("tried", "true"),
    "upgrade_predicted": ("predicted", "true"),
    "upgrade_tried": ("predicted", "tried"),
}


def agree(subject: Subject, progress: Progress) -> Iterator[Section]:
    """Yield what is known of processors on trial, and every check of `wsc crosscheck`; nothing of a run of no fleet.

    Examples
    --------
    >>> from scenarios.report.subject import example
    >>> list(agree(example(), lambda what, share: None))
    []
    """
    if not isinstance(subject.scenario, Scenario | ProfileScenario):
        return
    payload = crosscheck(subject.run.path, progress)
    yield from _trial(payload)
    told, failed = printed(payload, show), [one["check"] for one in payload if not one["holds"]]
    decisive = sum(bool(one["decisive"]) for one in payload)
    says = f"{len(payload) - len(failed)} of {len(payload)} checks between lenses hold; {decisive} are decisive"
    yield composed(
        "Do the lenses agree?",
        told.says,
        told.tables,
        commands=(f"wsc crosscheck {subject.run.path}",),
        verdicts=(Verdict("Agreement", says + (f"; not {', '.join(failed)}" if failed else ""), not failed),),
        payload=payload,
    )


def _trial(payload: Sequence[Mapping[str, Any]]) -> Iterator[Section]:
    """Yield what new processors on trial would change, as far as any check says it."""
    rows = [one for one in payload if one["check"].partition(":")[0] in _COMPARED]
    if not rows:
        return
    cells = tuple(tuple(_cells(one)) for one in rows)
    numbers = (False, False, True, False, True, True, False, False)
    heads = ("of", "", "change", "", "change", "may differ by", "holds", "decisive")
    headings = tuple(Heading(text, number) for text, number in zip(heads, numbers, strict=True))
    yield composed(
        "New processors on trial: predicted, tried and true",
        ("Relative change of instructions per CPU second where the new processors replace the old.",),
        (Table(headings, numbers, cells),),
        verdicts=(_told(rows),),
        payload=rows,
    )


def _cells(one: Mapping[str, Any]) -> Iterator[Cell]:
    check, _, job = one["check"].partition(":")
    left, right = _COMPARED[check]
    texts = (job or "fleet", left, f"{one['left']:+.2%}", right, f"{one['right']:+.2%}", f"{one['tolerance']:.2%}")
    yield from map(Cell, texts)
    yield Cell("yes") if one["holds"] else Cell("no", "bad")
    yield Cell("yes" if one["decisive"] else "no")


def _told(rows: Sequence[Mapping[str, Any]]) -> Verdict:
    """Return in a line what is said of the fleet and of each service, every number once, and what decides nothing."""
    said = dict[str, dict[str, str]]()
    for one in rows:
        check, _, job = one["check"].partition(":")
        for name, value in zip(_COMPARED[check], (one["left"], one["right"]), strict=True):
            said.setdefault(job or "fleet", {})[name] = f"{value:+.2%}"
    says = [f"{of}: {', '.join(f'{name} {value}' for name, value in by.items())}" for of, by in said.items()]
    of_rows = [one["check"].partition(":")[2] or "fleet" for one in rows]
    idle = dict.fromkeys(of for of, one in zip(of_rows, rows, strict=True) if not one["decisive"])
    says += [f"intervals of {', '.join(idle)} are so wide that they would hold no change, too"] if idle else []
    failed = any(not one["holds"] for one in rows)
    decided = dict.fromkeys(of for of, one in zip(of_rows, rows, strict=True) if one["decisive"])
    holds = False if failed else bool(decided) or None
    return Verdict("New processors", "; ".join(says), holds, _undecided(decided, of_rows) if holds else "")


def _undecided(decided: Collection[str], of_rows: Collection[str]) -> str:
    """Return for what a verdict holds, and how many others no check decides; nothing if there are none."""
    left = {*of_rows} - {*decided}
    if not left:
        return ""
    services = plural(len(left - {"fleet"}), "service") if left - {"fleet"} else ""
    names = " and ".join(each for each in ("the fleet" if "fleet" in left else "", services) if each)
    return f"for {', '.join('the fleet' if of == 'fleet' else of for of in decided)}; {names} undecided"
