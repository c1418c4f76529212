"""Where the pieces of a scorecard are worked on: processes of this machine, or a Dask cluster by its address."""

import re
from collections.abc import Callable, Generator
from concurrent.futures import Executor
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Protocol

from models.errors import WscError
from scenarios.files.options import refuse
from scenarios.runs.parallel import processes
from scenarios.runs.rundir import RunError, source_digest, versions

PROCESSES, DASK = "processes", "dask:"
_ADDRESS = re.compile(r"((tcp|tls|ucx|ws|wss)://)?[^/\s]+:[0-9]{1,5}(/\S*)?")
"""Host and port: without a port Dask makes a client that it then cannot close."""
_PATIENCE_S = 10
"""How long a scheduler is waited for."""


class ExecutorError(WscError):
    """Pieces cannot be worked on where they should be."""


@contextmanager
def executor(where: str = PROCESSES, workers: int | None = None) -> Generator[Executor]:
    """Yield what pieces run through.

    Parameters
    ----------
    where : ``processes``, or ``dask:ADDRESS`` with the address of a Dask scheduler
    workers : of ``processes``; one for each processor if not said

    Raises
    ------
    FaultsError
        If `where` is neither.
    ExecutorError
        If Dask is not installed, there is no scheduler, or its workers have other code or several threads.

    Examples
    --------
    >>> with executor("processes", workers=1) as pool:
    ...     pool.submit(abs, -2).result()
    2
    """
    checked(where)
    if where == PROCESSES:
        with processes(workers) as pool:
            yield pool
    else:
        with _cluster(where.removeprefix(DASK)) as pool:
            yield pool


def checked(where: str) -> str:
    """Return where pieces run if it can be understood.

    Raises
    ------
    FaultsError
        If not.

    Examples
    --------
    >>> checked("dask:tcp://10.0.0.1:8786")
    'dask:tcp://10.0.0.1:8786'
    """
    understood = where.startswith(DASK) and _ADDRESS.fullmatch(where.removeprefix(DASK))
    if where != PROCESSES and not understood:
        refuse("--executor", "should be processes, or dask: and a scheduler, such as dask:tcp://10.0.0.1:8786", where)
    return where


def made_by() -> dict[str, object]:
    """Return what decides an answer beside the question: the code and the versions of libraries."""
    import analysis
    import models
    import scenarios
    import sim

    return {"source": source_digest(models, sim, analysis, scenarios), "versions": versions()}


@contextmanager
def _cluster(address: str) -> Generator[Executor]:
    """Yield the executor of a Dask cluster whose workers would answer as this process does."""
    try:
        dask: Any = import_module("distributed")
    except ImportError:
        told = "dask is not installed: pip install 'dask[distributed]', here and where the workers run"
        raise ExecutorError(told) from None
    try:
        client = dask.Client(address, timeout=_PATIENCE_S, set_as_default=False)
    except (OSError, ValueError) as lost:
        raise ExecutorError(f"there is no Dask scheduler at {address}: {lost}") from None
    with client:
        _agree(client, address)
        try:
            yield client.get_executor()
        except dask.KilledWorker as lost:
            raise RunError(f"workers at {address} ended without an answer: is there enough memory?") from lost


class _Client(Protocol):
    """What is asked of a Dask client."""

    def nthreads(self) -> dict[str, int]: ...

    def run(self, function: Callable[[], object], on_error: str) -> dict[str, object]: ...


def _agree(client: _Client, address: str) -> None:
    """Refuse workers that are not there, that compute on several threads, or that have other code or versions."""
    threads = client.nthreads()
    if not threads:
        raise ExecutorError(f"the Dask scheduler at {address} has no workers")
    several = sorted(worker for worker, count in threads.items() if count > 1)
    if several:
        raise ExecutorError(f"Dask workers must have one thread each (--nthreads 1), but not so {', '.join(several)}")
    ours, answers = made_by(), client.run(made_by, on_error="return")
    other = sorted(worker for worker, answer in answers.items() if answer != ours)
    if other:
        raise ExecutorError(f"Dask workers must have the same code and versions, but not so {', '.join(other)}")
