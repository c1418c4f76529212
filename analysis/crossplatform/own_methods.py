"""Ways to predict that other people write: a class or function of the evidence, judged and used beside ours."""

from collections.abc import Callable, Sequence
from functools import partial

from analysis.crossplatform.evidence import Evidence, Prediction, PredictionMethod, Predictor
from analysis.crossplatform.methods import METHODS
from analysis.crossplatform.plain import answered, own_copy, with_responses
from models.arrays import Floats
from models.code.parts import Part, PartError, blamed, check_method, check_parameters, is_part, name_problems, part
from models.errors import InputError
from models.platforms import Platform

_MARKS = {"learns": False, "counts_instructions": True}
"""Attributes that say something of a method, and what holds without them."""


def named_methods(names: Sequence[str]) -> list[PredictionMethod]:
    """Return ways to predict: ours by their names, in the order of the tables, then those of somebody's own.

    Parameters
    ----------
    names : such as ``testbed`` or ``mine.py:Mine``; none: all of ours

    Raises
    ------
    PartError
        If there is no such class or function.

    Examples
    --------
    >>> [method.name for method in named_methods(["testbed", "cycle_mix"])]
    ['cycle_mix', 'testbed']
    """
    ours = [method for method in METHODS if method.name in names or not names]
    return [*ours, *(own_method(name) for name in names if is_part(name))]


def own_method(text: str) -> PredictionMethod:
    """Return the way to predict that a file holds.

    It is called with an `Evidence` and returns a `PlatformModel`, or a function with the parameters of its `predict`.
    With an attribute ``learns = True`` it sees the logs of all platforms that were measured, otherwise that of one;
    with ``counts_instructions = False`` it may be asked about other instruction sets.

    Parameters
    ----------
    text : ``file.py:Name`` or ``package.module:Name``

    Raises
    ------
    PartError
        If it is not there, cannot be called, or has the name of one of ours.
    """
    somebodys = part(text)
    calibrate = somebodys.load()
    if not callable(calibrate):
        problem = "should be a class or a function that takes the evidence"
        raise PartError(f"{somebodys.file}: {somebodys.name} {problem}, is of type {type(calibrate).__name__}")
    check_parameters(calibrate, "evidence")
    if isinstance(calibrate, type) and callable(getattr(calibrate, "predict", None)):
        check_method(calibrate, "predict", "platform", "counts", "interval_s")
    name = str(getattr(calibrate, "name", None) or somebodys.name)
    for _, problem in name_problems([(text, name)], {method.name for method in METHODS}):
        raise PartError(f"{somebodys.file}: {problem}; say another as attribute `name`")
    what = (calibrate.__doc__ or "").strip().partition("\n")[0]
    learns, counts = (bool(getattr(calibrate, mark, by_itself)) for mark, by_itself in _MARKS.items())
    return PredictionMethod(name, what or name, partial(_calibrated, somebodys, calibrate), learns, counts)


def _calibrated(somebodys: Part, calibrate: Callable[[Evidence], object], evidence: Evidence) -> Predictor:
    """Return the predictor of somebody's method; what it says wrongly is its author's to mend."""
    label = f"{somebodys.file}: {somebodys.name}"
    with blamed(somebodys):
        model = calibrate(own_copy(evidence))
    ask = getattr(model, "predict", model)
    if not callable(ask):
        problem = "should return an object with predict(platform, counts, interval_s)"
        raise PartError(f"{label} {problem}, got {type(model).__name__}")

    def times(platform: Platform, counts: Floats, interval_s: float) -> Prediction:
        with blamed(somebodys):
            answer = ask(platform, counts.copy(), interval_s)
        try:
            return answered(label, answer, counts)
        except InputError as error:
            raise PartError(str(error)) from None

    return with_responses(evidence, times)
