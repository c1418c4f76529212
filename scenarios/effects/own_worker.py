"""Somebody's estimator at work in a Python of its own: tables come in on a pipe, answers go out on another.

    python -I own_worker.py FILE NAME

This file runs in environments that know nothing of the project. It needs NumPy and pandas of any version there. A
message is its length in eight bytes, then arrays as `numpy.savez` writes them: `own_environment` is the other side.
"""

import io
import os
import struct
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from types import ModuleType
from typing import IO, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]
"""Arrays by name, such as ``observations/value``."""
MISSING = "missing "
"""Before the name of a column of texts: which of them are missing, since an array of texts holds texts alone."""
Estimate = Callable[["SentExperiment"], Any]
"""Returns the relative change and the ends of its interval."""


class NotEnoughData(Exception):  # noqa: N818 - the name that estimators know it by
    """Too little data: what `wsc.NotEnoughData` is to an estimator in another environment."""

    def __init__(self, needed: int, have: int, what: str) -> None:
        super().__init__(f"needs {needed} {what}, has {have}")
        self.arrays = {"needed": np.array(needed), "have": np.array(have), "what": np.array(what)}


class SentExperiment:
    """The attributes of `analysis.effects.estimator.ExperimentTables`."""

    target = "job_mean"
    metric_kind = "rate"

    def __init__(self, observations: pd.DataFrame, jobs: pd.DataFrame, confidence: float) -> None:
        self.observations, self.jobs, self.confidence = observations, jobs, confidence

    @cached_property
    def first_period(self) -> object:
        """The first period in which a machine had the feature."""
        return self.observations.loc[self.observations["treated"], "period"].min()

    @cached_property
    def before(self) -> pd.DataFrame:
        """Rows of the periods before any machine had the feature; perhaps none."""
        return self.observations.loc[self.observations["period"] < self.first_period]

    @cached_property
    def study(self) -> pd.DataFrame:
        """Rows of the periods from then on."""
        return self.observations.loc[self.observations["period"] >= self.first_period]


def experiments(arrays: Arrays) -> Iterator[SentExperiment]:
    """Yield the one experiment that was sent, or what would be seen of each draw of one whose courses are known."""
    jobs, confidence = table(arrays, "jobs"), float(arrays["confidence"])
    if "treated" not in arrays:
        yield SentExperiment(table(arrays, "observations"), jobs, confidence)
        return
    before, off, on = (table(arrays, name) for name in ("before", "off", "on"))
    before["treated"] = False
    place = pd.Index(arrays["machines"]).get_indexer(pd.Index(off["machine"]))
    for treated in arrays["treated"]:
        having = treated[place]
        rows = off.assign(treated=having)
        for name in on:
            rows[name] = np.where(having, on[name].to_numpy(), off[name].to_numpy())
        yield SentExperiment(pd.concat([before, rows], ignore_index=True), jobs, confidence)


def table(arrays: Arrays, name: str) -> pd.DataFrame:
    """Return one table of a message."""
    prefix = f"{name}/"
    columns = {key[len(prefix) :]: arrays[key] for key in arrays if key.startswith(prefix)}
    for column, values in columns.items():
        if (mask := arrays.get(f"{MISSING}{prefix}{column}")) is not None:
            texts = values.astype(object)
            texts[mask] = None
            columns[column] = texts
    return pd.DataFrame(columns)


def received(pipe: IO[bytes]) -> Arrays | None:
    """Return the next message; None if there will be no more."""
    head = pipe.read(8)
    if len(head) < 8:
        return None
    with np.load(io.BytesIO(pipe.read(*struct.unpack("<q", head))), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def send(pipe: IO[bytes], arrays: Arrays) -> None:
    """Write a message."""
    content = io.BytesIO()
    np.savez(content, **arrays)  # pyrefly: ignore[bad-argument-type] # none is called allow_pickle
    pipe.write(struct.pack("<q", content.tell()))
    pipe.write(content.getbuffer())
    pipe.flush()


def loaded(file: str, name: str) -> Estimate:
    """Return what an estimator's file offers: the method `estimate` of an object of its class, or a function."""
    ours = ModuleType("wsc")
    vars(ours)["NotEnoughData"] = NotEnoughData
    sys.modules["wsc"] = ours
    module = ModuleType("own_estimator")
    module.__file__ = file
    sys.modules["own_estimator"] = module
    with open(file, "rb") as source:
        exec(compile(source.read(), file, "exec"), vars(module))
    given = getattr(module, name)
    estimator = given() if isinstance(given, type) else given
    estimate: Estimate = getattr(estimator, "estimate", estimator)
    return estimate


def answers(estimate: Estimate, arrays: Arrays) -> Arrays:
    """Return the answers to a message, (R, 3), NaN where there was too little data; of one experiment, why."""
    out, parent = [], os.getppid()
    for experiment in experiments(arrays):
        if os.getppid() != parent:
            raise SystemExit("whoever asked is gone")
        try:
            change, low, high = (float(number) for number in estimate(experiment))
            if not np.isfinite([change, low, high]).all():
                raise ValueError(f"should answer with finite numbers, got change {change}, low {low}, high {high}")
        except NotEnoughData as error:
            if "treated" not in arrays:
                return error.arrays
            change = low = high = np.nan
        out.append((change, low, high))
    return {"answers": np.array(out)}


def faulty(file: str, error: BaseException) -> Arrays:
    """Return where in the estimator's file an error went through, and what it says."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    place = f"{file}:{lines[-1]}" if lines else file
    return {"error": np.array(f"{place}: {type(error).__name__}: {error}")}


def main() -> None:
    """Answer messages until there are no more; what the estimator prints goes to the standard error."""
    file, name = sys.argv[1:]
    questions, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    estimate = None
    while (arrays := received(questions)) is not None:
        try:
            estimate = estimate or loaded(file, name)
            reply = answers(estimate, arrays)
        except (Exception, SystemExit) as error:
            reply = faulty(file, error)
        send(replies, reply)


if __name__ == "__main__":
    main()
