"""What the experimenters say of their experiment, beside the table: how machines were chosen, what is to be claimed."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from models.errors import WscError

Selection = Literal["random", "probabilities", "covering", "densest", "chosen"]
Baseline = Literal["concurrent", "before"]
Clusters = Literal["instance", "machine", "rack"]
Weights = Literal["full", "covered"]
Interval = Literal["fixed", "always-valid"]
_WORDS: Mapping[str, tuple[str, ...]] = {
    "selection": get_args(Selection),
    "baseline": get_args(Baseline),
    "clusters": get_args(Clusters),
    "weights": get_args(Weights),
    "interval": get_args(Interval),
}


class AboutError(WscError):
    """What is said of an experiment cannot be used; `problems` holds (field, problem, what was found), all at once."""

    def __init__(self, problems: list[tuple[str, str, object]]) -> None:
        self.problems = problems
        super().__init__("\n".join(f"{name}: {what}, got {got!r}" for name, what, got in problems))


@dataclass(frozen=True, slots=True)
class About:
    """What is known of an experiment beyond its table; None: it is not said.

    Examples
    --------
    >>> About.of({"metric": "ipc", "looks": 14}).looks
    14
    """

    selection: Selection | None = None
    """How machines got the feature: at random, with known probabilities, to cover jobs, the densest, by choice."""
    planned_share: float | Mapping[str, float] | None = None
    """Share of the machines that were to get the feature, perhaps by platform."""
    metric: str | None = None
    baseline: Baseline | None = None
    looks: int | None = None
    """How often the result was looked at with a view to stopping."""
    interval: Interval | None = None
    clusters: Clusters | None = None
    """What the standard error counts as independent."""
    weights: Weights | None = None
    """Whether jobs weigh by the quota of the whole fleet, or of the jobs that were covered."""
    finite_population_correction: bool | None = None

    @classmethod
    def of(cls, statements: Mapping[str, object]) -> "About":
        """Return what a YAML or JSON mapping says.

        Raises
        ------
        AboutError
            With everything that is wrong.

        Examples
        --------
        >>> About.of({"clusters": "job"})
        Traceback (most recent call last):
        analysis.audit.about.AboutError: clusters: should be one of instance, machine, rack, got 'job'
        """
        known = [field.name for field in fields(cls)]
        problems: list[tuple[str, str, object]] = [
            (str(name), f"is not known; known are {', '.join(known)}", value)
            for name, value in statements.items()
            if name not in known
        ]
        for name in known:
            if statements.get(name) is not None:
                problems += [(name, problem, statements[name]) for problem in _problems(name, statements[name])]
        if problems:
            raise AboutError(problems)
        stated: dict[str, Any] = {**statements}
        return cls(**stated)


def _problems(name: str, value: object) -> Iterator[str]:
    """Yield what is wrong with a field's value."""
    if name in _WORDS:
        if value not in _WORDS[name]:
            yield f"should be one of {', '.join(_WORDS[name])}"
    elif name == "metric":
        if not isinstance(value, str):
            yield "should be text"
    elif name == "looks":
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            yield "should be a whole number of at least 1"
    elif name == "finite_population_correction":
        if not isinstance(value, bool):
            yield "should be true or false"
    elif not all(map(_is_share, value.values() if isinstance(value, Mapping) else [value])):
        yield "should be a share between 0 and 1, or one for each platform"


def _is_share(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(float(str(value))) and 0 < float(str(value)) < 1
