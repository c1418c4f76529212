"""The estimators by name: the recommended one, its variants, and what they are compared with."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from analysis.effects import classic
from analysis.effects.cells import Cells
from analysis.effects.classic import Published, Ratio
from analysis.effects.estimators import adjusted
from analysis.effects.estimators.adjusted import Adjusted
from analysis.effects.method import Answers, Method
from models.arrays import Bools
from models.errors import InputError

RECOMMENDED = "adjusted"

METHODS: tuple[Method, ...] = (
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
)
"""published: WSMeter as printed, against yesterday. concurrent: the same against the machines without the feature.
ratio, cuped: what libraries for online experiments do, machines as units. The others take job-level differences:
unadjusted, with the instance's own past alone, and with all covariates, pooled in three ways."""


def method(name: str) -> Method:
    """Return the estimator of a name.

    Raises
    ------
    ValueError
        If there is none; the message lists those that there are.

    Examples
    --------
    >>> method("adjusted").name
    'adjusted'
    """
    for one in METHODS:
        if one.name == name:
            return one
    raise InputError(f"estimator must be one of {', '.join(one.name for one in METHODS)}, got {name}")


def together(methods: Sequence[Method], cells: Cells, treated: Bools) -> list[Answers]:
    """Return what each of several methods says of R draws, as its `many` would; what they share is done once.

    Parameters
    ----------
    methods : any
    cells : as for `Method.many`
    treated : (R, M)

    Examples
    --------
    >>> from analysis.effects.study import example
    >>> study = example()
    >>> [made.change.round(1).tolist() for made in together(METHODS[3:5], study.cells, study.treated[None, :])]
    [[0.1], [0.1]]
    """
    families: dict[Hashable, list[int]] = {}
    for number, one in enumerate(methods):
        families.setdefault(_family(one) or number, []).append(number)
    made: dict[int, Answers] = {}
    for family, numbers in families.items():
        ones: list[Any] = [methods[number] for number in numbers]
        many = (
            _SHARING[family[0]](ones, cells, treated) if isinstance(family, tuple) else [ones[0].many(cells, treated)]
        )
        made.update(zip(numbers, many, strict=True))
    return [made[number] for number in range(len(methods))]


_SHARING: dict[type, Callable[[Sequence[Any], Cells, Bools], list[Answers]]] = {
    Adjusted: adjusted.together,
    Published: classic.covered,
    Ratio: classic.ratios,
}


def _family(one: Method) -> tuple[Hashable, ...] | None:
    """Return what those that share their work have in common; nothing of a method that works alone."""
    if isinstance(one, Adjusted):
        return Adjusted, one.cluster, one.correction
    if isinstance(one, Published):
        return Published, one.baseline, one.min_instances
    return (Ratio,) if isinstance(one, Ratio) else None
