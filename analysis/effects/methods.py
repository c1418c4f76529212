"""The estimators by name: the recommended one, its variants, and what they are compared with."""

from analysis.effects.adjusted import Adjusted
from analysis.effects.classic import Published, Ratio
from analysis.effects.effect import Method

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
    raise ValueError(f"estimator must be one of {', '.join(one.name for one in METHODS)}, got {name}")
