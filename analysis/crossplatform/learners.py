"""Knowledge-free learners: a neural network as published, and a Gaussian process, on what a log and spec sheets say.

They learn the dependence on the platform from the logs of several platforms, so one log is not enough. Inputs: the mix,
the volume, and a platform's parameters; an input that is the same in all training data is left out, as nothing can be
learnt about it. For the service time they learn CPU time, which is divided by a platform's logical processors: that
needs no knowledge of computers, and two dual-processor machines could not teach it.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from analysis.crossplatform.evidence import NORMAL_90, Evidence, Prediction, Predictor, ServiceLog
from models.arrays import Bools, Floats
from models.errors import InputError
from models.platforms import Platform

Inputs: TypeAlias = Callable[[Platform, Floats, float], Floats]
"""From a platform, (m, J) counts and the length of their interval to (m, p) inputs; NaN where there is no request."""
Learnt: TypeAlias = Callable[[Floats], Floats]
"""From (m, p) inputs to (q, m) outputs."""

HIDDEN: Final = 16
RATE: Final = 1e-4
MOMENTUM: Final = 0.5
"""Of the network (Stewart et al. 2008, section 4.3.3)."""
BATCH: Final = 1000
"""Examples of a step. The published rate is that of one example, so a step goes as far as that many steps would."""
EPOCHS: Final = 300
HELD_OUT: Final = 0.2
"""Share of the training intervals, the last, on which networks are compared."""
FEWEST: Final = 10
"""Intervals of a log from which something is learnt."""
SUBSETS: Final = (slice(None), slice(1, None, 2), slice(0, None, 2))
"""Of the rest of the training intervals: all, and either half."""

KERNEL_ROWS: Final = 100
"""Intervals from which the Gaussian process learns its kernel; the time grows with their cube."""
PROCESS_ROWS: Final = 150
"""Intervals that it then predicts from."""

SERVICE: Final = "service_time_s"
RESPONSE: Final = "response_time_s"


def network(evidence: Evidence) -> Predictor:
    """Train the artificial neural network of section 4.3.3: one hidden layer of 16, back-propagation with momentum.

    Its hidden units are logistic, as in Ipek et al. (2006), where it is from. It learns the mean response time and
    nothing else, as in the paper, from arrival rates by type, volume and spec sheet, all standardised. Of networks
    trained on several subsets of the data the one with the least error on later intervals, held out, is taken;
    the paper takes that with the least error on the test itself, which nobody can.

    Raises
    ------
    ValueError
        If there are not logs of at least two platforms, or one has too few intervals.

    Examples
    --------
    >>> network(Evidence("piii", {}, {}))
    Traceback (most recent call last):
    models.errors.InputError: logs must be of at least 2 platforms, got 0: one tells nothing of how the platform matters
    """
    response = _best_network(*_training(evidence, _rates, RESPONSE))

    def predict(platform: Platform, counts: Floats, interval_s: float) -> Prediction:
        inputs = _rates(platform, counts, interval_s)
        nothing = np.full(len(inputs), np.nan)
        (responding,) = _told(response, inputs, 1)
        return Prediction(nothing, nothing, nothing, responding, nothing, nothing)

    return predict


def modern(evidence: Evidence) -> Predictor:
    """Train a Gaussian process on logarithms (Rasmussen and Williams 2006, chapters 2 and 5), with 90% intervals.

    Its kernel is linear plus squared-exponential plus noise, of the greatest likelihood: it goes on as powers of a
    platform's parameters, where trees would repeat the nearest platform seen, and grows unsure away from the data.
    Inputs are shares of the types, log volume and log spec sheet.
    """
    data = [_training(evidence, _shares, target) for target in (SERVICE, RESPONSE)]
    service, response = (_process(inputs, output) for inputs, output, _ in data)

    def predict(platform: Platform, counts: Floats, interval_s: float) -> Prediction:
        inputs = _shares(platform, counts, interval_s)
        return Prediction(*_told(service, inputs, 3) / platform.vcpus, *_told(response, inputs, 3))

    return predict


def spec_sheet(platform: Platform) -> Floats:
    """Return what learners are told of a platform, in logarithms: a (7,) array.

    Logical processors, clock, sizes of the first, the second and the last cache, memory's latency, instructions' CPI.
    """
    sizes = [cache.size_bytes for cache in platform.caches] or [platform.llc_bytes]
    return np.log(
        [
            platform.vcpus,
            platform.base_frequency_hz,
            sizes[0],
            sizes[min(1, len(sizes) - 1)],
            sizes[-1],
            platform.memory_latency_s,
            platform.instruction_cpi,
        ]
    )


def _rates(platform: Platform, counts: Floats, interval_s: float) -> Floats:
    rates = np.where(counts.sum(axis=1, keepdims=True) > 0, counts / interval_s, np.nan)
    return np.column_stack([rates, rates.sum(axis=1), np.tile(spec_sheet(platform), (len(rates), 1))])


def _shares(platform: Platform, counts: Floats, interval_s: float) -> Floats:
    requests = np.where(counts.sum(axis=1) > 0, counts.sum(axis=1), np.nan)
    shares = counts / requests[:, None]
    return np.column_stack([shares, np.log(requests / interval_s), np.tile(spec_sheet(platform), (len(counts), 1))])


def _told(learnt: Learnt, inputs: Floats, outputs: int) -> Floats:
    """Return the outputs, NaN where there is no request."""
    known = np.flatnonzero(np.isfinite(inputs).all(axis=1))
    answers = np.full((outputs, len(inputs)), np.nan)
    if known.size:
        answers[:, known] = learnt(inputs[known])
    return answers


def _measured(log: ServiceLog, platform: Platform, target: str) -> Floats:
    return log.service_time_s * platform.vcpus if target == SERVICE else log.response_time_s


def _training(evidence: Evidence, inputs: Inputs, target: str) -> tuple[Floats, Floats, Bools]:
    """Return inputs, measured output and whether an interval is held out, of all logs; nothing if one has no output."""
    logs = evidence.logs
    if len(logs) < 2:
        raise InputError(
            f"logs must be of at least 2 platforms, got {len(logs)}: one tells nothing of how the platform matters"
        )
    measured = {name: _measured(log, evidence.platforms[name], target) for name, log in logs.items()}
    known = {name: (output > 0) & (logs[name].requests > 0) for name, output in measured.items()}
    sizes = {name: int(part.sum()) for name, part in known.items()}
    for name, size in sizes.items():
        if 0 < size < FEWEST:
            raise InputError(f"the log of {name} has {size} intervals with {target}, a learner needs {FEWEST} at least")
    every = [inputs(evidence.platforms[name], log.counts[known[name]], log.interval_s) for name, log in logs.items()]
    output = [part[known[name]] for name, part in measured.items()]
    later = [np.arange(size) >= (1.0 - HELD_OUT) * size for size in sizes.values()]
    taken = slice(None) if all(sizes.values()) else slice(0, 0)
    return np.concatenate(every)[taken], np.concatenate(output)[taken], np.concatenate(later)[taken]


@dataclass(frozen=True, slots=True, eq=False)
class _Standard:
    """Inputs that vary, with mean 0 and deviation 1 in the training data."""

    varies: Bools
    mean: Floats
    sd: Floats

    def __call__(self, inputs: Floats) -> Floats:
        return np.asarray((inputs[:, self.varies] - self.mean) / self.sd)


def _standard(inputs: Floats) -> _Standard:
    varies = np.ptp(inputs, axis=0) > 0
    return _Standard(varies, inputs[:, varies].mean(axis=0), inputs[:, varies].std(axis=0))


def _silent(outputs: int) -> Learnt:
    return lambda inputs: np.full((outputs, len(inputs)), np.nan)


def _best_network(inputs: Floats, output: Floats, later: Bools) -> Learnt:
    """Return the network, among those of several subsets, with the least median relative error on later intervals."""
    if not output.size:
        return _silent(1)
    earlier = np.flatnonzero(~later)
    trained = [_train(inputs[earlier[subset]], output[earlier[subset]]) for subset in SUBSETS]
    errors = [np.median(np.abs(model(inputs[later])[0] / output[later] - 1.0)) for model in trained]
    return trained[int(np.argmin(errors))]


def _train(inputs: Floats, output: Floats) -> Learnt:
    from sklearn.neural_network import MLPRegressor

    scaled, mean, sd = _standard(inputs), output.mean(), output.std() or 1.0
    batch = min(BATCH, len(output))
    network = MLPRegressor(
        hidden_layer_sizes=(HIDDEN,),
        activation="logistic",
        solver="sgd",
        alpha=0.0,
        batch_size=batch,
        learning_rate_init=RATE * batch,
        momentum=MOMENTUM,
        nesterovs_momentum=False,
        max_iter=EPOCHS,
        shuffle=batch < len(output),
        random_state=0,
    )
    with warnings.catch_warnings():
        # Some are still improving a little when the time is up; the choice among subsets judges what they have become.
        warnings.simplefilter("ignore")
        network.fit(scaled(inputs), (output - mean) / sd)
    return lambda points: np.asarray(network.predict(scaled(points)) * sd + mean)[None, :]


def _process(inputs: Floats, output: Floats) -> Learnt:
    """Return the Gaussian process of the log output: median, low and high."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

    if not output.size:
        return _silent(3)
    scaled, logs = _standard(inputs), np.log(output)
    kernel = ConstantKernel(0.1) * DotProduct(1.0) + ConstantKernel(0.1) * RBF(5.0) + WhiteKernel(0.1)
    few, more = (_spread(len(logs), size) for size in (KERNEL_ROWS, PROCESS_ROWS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an end of a parameter's range is as good an answer as another
        learnt = GaussianProcessRegressor(kernel, normalize_y=True).fit(scaled(inputs[few]), logs[few]).kernel_
    process = GaussianProcessRegressor(learnt, optimizer=None, normalize_y=True).fit(scaled(inputs[more]), logs[more])

    def tell(inputs: Floats) -> Floats:
        middle, sd = process.predict(scaled(inputs), return_std=True)
        return np.asarray(np.exp(np.stack([middle, middle - NORMAL_90 * sd, middle + NORMAL_90 * sd])))

    return tell


def _spread(of: int, size: int) -> NDArray[np.intp]:
    """Return that many rows at most, spread evenly over all."""
    return np.unique(np.linspace(0, of - 1, min(of, size)).round().astype(np.intp))
