"""Every way to predict, in the order of the tables: what is done in practice, as published, ours, learners."""

from analysis.crossplatform.evidence import PredictionMethod
from analysis.crossplatform.learners import modern, network
from analysis.crossplatform.published import calibrated, published
from analysis.crossplatform.rivals import benchmark, cycle_mix, cycle_scalar
from analysis.crossplatform.shrunken import shrunken
from analysis.crossplatform.tailored import tailored

METHODS: tuple[PredictionMethod, ...] = (
    PredictionMethod("cycle_scalar", "mean service time scaled by clock cycles", cycle_scalar),
    PredictionMethod("cycle_mix", "request-mix service time scaled by clock cycles", cycle_mix),
    PredictionMethod(
        "benchmark", "request-mix service time scaled by public scores", benchmark, counts_instructions=False
    ),
    PredictionMethod("published", "request mix, power law of misses, spec sheets, as published", published),
    PredictionMethod("calibrated", "published, times measured over predicted service time", calibrated),
    PredictionMethod("shrunken", "published, times as much of that ratio as is the service's own", shrunken),
    PredictionMethod(
        "testbed", "measured service time scaled by a fitted model of both machines, with intervals", tailored
    ),
    PredictionMethod(
        "network", "a neural network of mix and spec sheets for response times, as published", network, True
    ),
    PredictionMethod("modern", "a Gaussian process of mix and spec sheets, with intervals", modern, True),
)
