"""Estimators of other people in an environment of their own, whose libraries clash with those that are needed here.

An estimator with an attribute `environment`, the folder of a virtual environment, runs in a process of its Python. The
process is started with the first question, answers one after the other, and ends with this one.
"""

import io
import struct
import subprocess
import tempfile
import weakref
import zipfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.effects.estimator import CHANGED, ExperimentTables, PotentialTables
from analysis.statistics import NotEnoughDataError
from models.arrays import Floats
from models.code.parts import Part, PartError
from scenarios.effects import own_worker
from scenarios.effects.own_worker import Arrays

_LAST = 2000
"""Characters of what a process wrote before it ended that are shown."""


@dataclass(frozen=True, slots=True)
class InEnvironment:
    """An estimator that a process of another Python runs."""

    part: Part
    environment: Path
    """Folder of a virtual environment."""

    @classmethod
    def of(cls, part: Part, folder: str) -> "InEnvironment":
        """Return the estimator of a part.

        Parameters
        ----------
        part : its file and its name in it
        folder : of the environment, relative to the file

        Raises
        ------
        PartError
            If there is no such environment.
        """
        environment = part.file.parent / folder
        if not _python(environment).is_file():
            remedy = f"python -m venv {environment}, then install there what it needs"
            raise PartError(f"{part.file}: there is no environment {folder!r} beside it: {remedy}")
        return cls(part, environment)

    def estimate(self, experiment: ExperimentTables) -> tuple[float, float, float]:
        """Return the answer to one experiment.

        Raises
        ------
        NotEnoughDataError
            If the estimator says so.
        PartError
            If the estimator raises an error, or its process ends.
        """
        arrays = _columns("observations", experiment.observations) | _columns("jobs", experiment.jobs)
        (answer,) = self._answers(arrays | {"confidence": np.array(experiment.confidence)})
        change, low, high = answer.tolist()
        return change, low, high

    def estimate_many(self, tables: PotentialTables) -> tuple[Floats, Floats, Floats]:
        """Return the changes, lower and upper ends of R draws; NaN where there was too little data."""
        course = [name for name in tables.on if name in CHANGED]  # the others are those of the course without it
        arrays = _columns("before", tables.before) | _columns("off", tables.off) | _columns("jobs", tables.jobs)
        arrays |= _columns("on", tables.on[course])
        arrays |= {"machines": _plain(tables.machines.to_series()), "treated": tables.treated}
        change, low, high = self._answers(arrays | {"confidence": np.array(tables.confidence)}).T
        return change, low, high

    def _answers(self, arrays: Arrays) -> Floats:
        reply = self._worker.ask(arrays)
        if "error" in reply:
            raise PartError(str(reply["error"]))
        if "needed" in reply:
            raise NotEnoughDataError(int(reply["needed"]), int(reply["have"]), str(reply["what"]))
        return np.asarray(reply["answers"], dtype=np.float64)

    @property
    def _worker(self) -> "_Worker":
        return _worker(self.environment, self.part)


@lru_cache
def _worker(environment: Path, part: Part) -> "_Worker":
    """Return the process of a part, started once: libraries take seconds to import."""
    return _Worker(_python(environment), part)


class _Worker:
    """The process of another Python, and its pipes."""

    def __init__(self, python: Path, part: Part) -> None:
        self.file, self.log = part.file, tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process
        command: list[str | Path] = [python, "-I", Path(own_worker.__file__).absolute(), part.file, part.name]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log)
        weakref.finalize(self, _ended, self.process, self.log)

    def ask(self, arrays: Arrays) -> Arrays:
        """Return the answer to one message.

        Raises
        ------
        PartError
            If the process ended in place of an answer.
        """
        questions, replies = self.process.stdin, self.process.stdout
        if questions is None or replies is None:
            raise TypeError("a worker has pipes")
        try:
            own_worker.send(questions, arrays)
            reply = own_worker.received(replies)
        except (BrokenPipeError, struct.error, ValueError, EOFError, zipfile.BadZipFile):
            reply = None
        except BaseException:  # the answer would be taken for that to the next question
            self.process.kill()
            _worker.cache_clear()
            raise
        if reply is None:
            _worker.cache_clear()
            replies.close()  # a process that writes the rest of its reply would wait for a reader
            status = self.process.wait()
            self.log.seek(max(self.log.seek(0, io.SEEK_END) - _LAST, 0))
            wrote = self.log.read().decode(errors="replace").strip() or "nothing"
            raise PartError(f"{self.file}: its process ended with status {status}; it wrote: {wrote}")
        return reply


def _ended(process: "subprocess.Popen[bytes]", log: BinaryIO) -> None:
    """End a process that is not needed any more."""
    process.kill()
    for pipe in (process.stdin, process.stdout, log):
        if pipe is not None:
            pipe.close()
    process.wait()


def _python(environment: Path) -> Path:
    return environment / "bin" / "python"


def _columns(name: str, table: pd.DataFrame) -> dict[str, NDArray[Any]]:
    """Return the columns of a table under its name, and beside columns of texts which of them are missing."""
    columns = dict[str, NDArray[Any]]()
    for column in table:
        columns[f"{name}/{column}"] = _plain(table[column])
        if table[column].dtype.kind not in "biuf" and table[column].isna().any():
            columns[f"{own_worker.MISSING}{name}/{column}"] = table[column].isna().to_numpy()
    return columns


def _plain(column: "pd.Series[Any]") -> NDArray[Any]:
    """Return a column as an array without Python objects, which other versions could not read."""
    values = column.to_numpy()
    return values.astype(np.str_) if values.dtype.kind == "O" else values
