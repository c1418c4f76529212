"""The estimators by name, in one table: each says for which designs it is, and what it needs to know."""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from analysis.effects import classic
from analysis.effects.cells import JobMachineSums
from analysis.effects.classic import Published, Ratio
from analysis.effects.estimand import Estimand
from analysis.effects.estimators import adjusted
from analysis.effects.estimators.adjusted import Adjusted
from analysis.effects.estimators.balanced import Balanced
from analysis.effects.estimators.paired import Paired
from analysis.effects.estimators.staged import Staged
from analysis.effects.estimators.stratified import Stratified
from analysis.effects.observations import Design
from analysis.effects.study import Answers, EffectMethod, Need
from analysis.wsmeter.estimators import PAPER_ESTIMATORS
from models.arrays import Bools
from models.errors import ArgumentError

RECOMMENDED = "adjusted"

METHODS: tuple[EffectMethod, ...] = (
    Published(),
    Published("published-widened", widening=1.2),
    Published("concurrent", baseline="concurrent"),
    Ratio("ratio", cuped=False),
    Ratio("cuped"),
    Adjusted("unadjusted", covariates=0),
    Adjusted("own-past", covariates=1),
    Adjusted("adjusted"),
    Adjusted("shrunken", pooling="shrunken"),
    Adjusted("random-effects", pooling="random"),
    Stratified(),
    Staged(),
    Balanced(),
    Paired(),
)
"""published: WSMeter as printed, against yesterday. concurrent: the same against the machines without the feature.
ratio, cuped: what libraries for online experiments do, machines as units. Those up to random-effects take job-level
differences: unadjusted, with the instance's own past alone, and with all covariates, pooled in three ways. The last
ones are for machines that were drawn within platforms, in waves, balanced, and in pairs."""
SHIPPED = frozenset({*PAPER_ESTIMATORS, *(method.name for method in METHODS)})
"""Names of all our estimators, the paper's too: others cannot have them."""
_TOLD: frozenset[Need] = frozenset({"platform", "stages"})
"""What a table of observations tells of how machines were drawn."""


def names(told: Collection[Need] = ()) -> tuple[str, ...]:
    """Return the names of the estimators that need no more than is told of how machines were drawn.

    Examples
    --------
    >>> names()[-1], names(["platform"])[-1]
    ('random-effects', 'stratified')
    """
    return tuple(method.name for method in METHODS if set(method.needs) <= set(told))


def of_tables() -> tuple[str, ...]:
    """Return the names of the estimators for which a table of observations is enough."""
    return names(_TOLD)


def judged_on_tables() -> tuple[str, ...]:
    """Return the names of the estimators that `wsc validate` judges: the paper's, and those of tables."""
    return (*PAPER_ESTIMATORS, *of_tables())


def refusal(name: str, known: Sequence[str], *, own: bool = False) -> str:
    """Return why a name is none of the estimators that may be named somewhere; nothing if it is one.

    Parameters
    ----------
    known : those that may be named there
    own : whether estimators of other people may be named, too

    Examples
    --------
    >>> refusal("adjusted", names()), refusal("guess", ["ratio", "cuped"], own=True)
    ('', 'should be one of ratio, cuped, or yours as mine.py:Mine')
    >>> refusal("baseline", ["ratio"])
    'should be one of ratio (baseline is judged by wsc validate and used by wsc wsmeter estimate)'
    """
    if name in known:
        return ""
    problem = f"should be one of {', '.join(known)}{', or yours as mine.py:Mine' if own else ''}"
    if name in PAPER_ESTIMATORS:
        return f"{problem} ({name} is judged by wsc validate and used by wsc wsmeter estimate)"
    if name in SHIPPED:
        return f"{problem} ({name} has a design of its own, in which wsc scorecard judges it)"
    return problem


def method(name: str, among: Sequence[str] | None = None, *, own: bool = False) -> EffectMethod:
    """Return the estimator of a name.

    Parameters
    ----------
    among : names that may be said there; all of them if left out
    own : whether the message says that estimators of other people may be named, too

    Raises
    ------
    ArgumentError
        If it is none of them; the message lists those of which one may be said.

    Examples
    --------
    >>> method("adjusted").name
    'adjusted'
    """
    known = {member.name: member for member in METHODS if among is None or member.name in among}
    if name not in known:
        raise ArgumentError("estimator", refusal(name, among or of_tables(), own=own), name)
    return known[name]


def for_design(name: str, design: Design) -> EffectMethod:
    """Return the estimator of a name; in place of the recommended one that of the design, where it has its own.

    Examples
    --------
    >>> for_design("adjusted", "staged").name, for_design("adjusted", "crossover").name
    ('staged', 'adjusted')
    """
    chosen = method(name)
    if chosen.name != RECOMMENDED or design in chosen.designs:
        return chosen
    return next(known for known in METHODS if design in known.designs)


def unanswerable(chosen: EffectMethod, estimand: Estimand, design: Design) -> str:
    """Return why an estimator cannot say anything of a metric; nothing if it can.

    Examples
    --------
    >>> unanswerable(method("published"), Estimand.of("mean"), "concurrent")
    'published estimates the relative change of a rate, not the absolute change of a mean'
    >>> unanswerable(method("adjusted"), Estimand.of("p99"), "concurrent")
    ''
    """
    if estimand.plain:
        return ""
    wanted = f"the {estimand.change} change of a {estimand.metric_kind}"
    if isinstance(chosen, Published):
        return f"{chosen.name} estimates the relative change of a rate, not {wanted}"
    if estimand.metric_kind != "quantile":
        return ""
    if isinstance(chosen, Adjusted) and chosen.pooling != "none":
        return f"{chosen.name} takes jobs' effects for alike, which parts of a quantile's change are not"
    if design != "concurrent":
        return f"{wanted} is estimated where machines keep the feature from one time on, not in a {design} study"
    return ""


def by_rack(chosen: EffectMethod) -> EffectMethod | None:
    """Return an estimator with racks as clusters in place of machines; None if its error cannot be that of racks."""
    return replace(chosen, cluster="rack") if isinstance(chosen, Adjusted) else None


def clusters_machines(chosen: EffectMethod) -> bool:
    """Return whether an estimator's error counts machines, not their rows, as independent.

    Examples
    --------
    >>> clusters_machines(method("adjusted")), clusters_machines(method("published"))
    (True, False)
    """
    return not isinstance(chosen, Published)


def together(methods: Sequence[EffectMethod], cells: JobMachineSums, treated: Bools) -> list[Answers]:
    """Return what each of several methods says of R draws, as its `many` would; what they share is done once.

    Parameters
    ----------
    methods : any
    cells : as for `EffectMethod.many`
    treated : (R, M)
    """
    families: dict[Hashable, list[int]] = {}
    for number, member in enumerate(methods):
        families.setdefault(_family(member) or number, []).append(number)
    answers: dict[int, Answers] = {}
    for family, numbers in families.items():
        members: list[Any] = [methods[number] for number in numbers]
        share = _SHARING[family[0]] if isinstance(family, tuple) else _alone
        answers.update(zip(numbers, share(members, cells, treated), strict=True))
    return [answers[number] for number in range(len(methods))]


_SHARING: Mapping[type, Callable[[Sequence[Any], JobMachineSums, Bools], list[Answers]]] = {
    Adjusted: adjusted.together,
    Published: classic.covered,
    Ratio: classic.ratios,
}


def _alone(members: Sequence[EffectMethod], cells: JobMachineSums, treated: Bools) -> list[Answers]:
    return [member.many(cells, treated) for member in members]


def _family(member: EffectMethod) -> tuple[Hashable, ...] | None:
    """Return what those that share their work have in common; nothing of a method that works alone."""
    if isinstance(member, Adjusted):
        return Adjusted, member.cluster, member.correction
    if isinstance(member, Published):
        return Published, member.baseline, member.min_instances
    return (Ratio,) if isinstance(member, Ratio) else None
