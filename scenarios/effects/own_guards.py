"""Guards that other people write: functions of plain tables, which look at an experiment beside ours."""

import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol, TypeGuard, cast, get_args

import numpy as np
import pandas as pd

from analysis.audit.about import About
from analysis.audit.case import Case, Guard, TooLittleError
from analysis.audit.findings import Finding, Severity
from analysis.audit.guards import GUARDS
from analysis.statistics import NotEnoughDataError
from models.code.parts import Part, PartError, blamed, name_problems, part
from scenarios.files.faults import Fault, FaultsError

_TAKES = ("observations", "jobs", "about")


class GuardFunction(Protocol):
    """What a guard of somebody's own is: a function of an experiment's tables that returns what it found."""

    def __call__(
        self, observations: pd.DataFrame, jobs: pd.DataFrame | None, about: About
    ) -> Finding | Iterable[Finding] | None:
        """Return what would make the answer false: a finding, several, or None.

        Parameters
        ----------
        observations : rows with a value and a weight above 0, each once: period, job, machine, weight, value, treated,
            file, and instance, shard, rack, domain, platform, present_s, cpu_s, exposure, mean_frequency_hz, clock_hz
            and cycles where the tables have them
        jobs : job, quota and perhaps instances of the whole fleet, if they are known
        about : what is said of the experiment; None where nothing is

        Raises
        ------
        NotEnoughDataError
            If there is too little to look at; it then does not count as checked, which a note says.
        """


@dataclass(frozen=True, slots=True)
class OwnGuard:
    """Somebody's guard; what it returns is checked, and its errors are its author's."""

    name: str
    """Under which it counts as checked."""
    look: GuardFunction
    part: Part | None = None
    """Its file; none of a function that is handed over, whose errors are raised as they are."""

    def of(self, jobs: pd.DataFrame | None) -> Guard:
        """Return it as a guard of cases of an experiment on a fleet with such jobs.

        It gets copies of the tables, so that it cannot change what is estimated.
        """

        def looked(case: Case) -> list[Finding] | str:
            rows, fleet = case.table.rows.copy(), None if jobs is None else jobs.copy()
            try:
                with _at_work(self.part):
                    returned = self.look(rows, fleet, case.about)
                    findings = list(returned) if _several(returned) else [returned]
            except NotEnoughDataError as error:
                raise TooLittleError(str(error)) from None
            return [] if returned is None else [self._sound(finding) for finding in findings]

        return looked

    def _sound(self, finding: object) -> Finding:
        """Return a finding with plain numbers.

        Raises
        ------
        PartError
            If it is no finding, or not all that one should be.
        """
        if not isinstance(finding, Finding):
            raise self._wrong(f"should return a wsc.Finding, a list of them or None, returned {_kind(finding)}")
        for name in ("code", "what", "remedy"):
            if not isinstance(text := getattr(finding, name), str):
                raise self._wrong(f"{name} of its finding should be text, is {_kind(text)}")
        if not finding.code.isidentifier():
            raise self._wrong(f"code of its finding should be a name such as {self.name}, is {finding.code!r}")
        if finding.code in GUARDS:
            raise self._wrong(f"code of its finding should be its own, {finding.code} is one of our guards")
        if finding.severity not in (known := get_args(Severity)):
            raise self._wrong(f"severity of its finding should be {' or '.join(known)}, is {finding.severity!r}")
        if not isinstance(finding.evidence, Mapping):
            raise self._wrong(f"evidence of its finding should be numbers by name, is {_kind(finding.evidence)}")
        for name, value in finding.evidence.items():
            if not isinstance(value, int | float | np.number) or not math.isfinite(value):
                raise self._wrong(f"evidence {name} of its finding should be a finite number, is {value!r}")
        evidence = {str(name): _plain(value) for name, value in finding.evidence.items()}
        return Finding(finding.code, finding.severity, finding.what, evidence, finding.remedy)

    def _wrong(self, problem: str) -> PartError:
        where = "" if self.part is None else f"{self.part.file}: "
        return PartError(f"{where}{self.name}: {problem}")


def own_guards(guards: Sequence[str | GuardFunction]) -> tuple[OwnGuard, ...]:
    """Return guards of somebody's own, loaded.

    Parameters
    ----------
    guards : functions, or where they are: ``file.py:name`` or ``package.module:name``

    Raises
    ------
    FaultsError
        With all that cannot be a guard, or has the name of another.
    PartError
        If a file cannot be run.

    Examples
    --------
    >>> def racks_alike(observations, jobs, about):
    ...     return None
    >>> [guard.name for guard in own_guards([racks_alike])]
    ['racks_alike']
    >>> own_guards(["nowhere.py:racks_alike"])
    Traceback (most recent call last):
    scenarios.files.faults.FaultsError: guards: nowhere.py:racks_alike: ...nowhere.py cannot be read: No such ...
    """
    loaded, named, problems = list[OwnGuard](), list[tuple[str, str]](), list[str]()
    for given in guards:
        try:
            guard = _guard(given)
        except PartError as error:
            problems.append(str(error))
            continue
        loaded.append(guard)
        named.append((str(given), guard.name))
    problems += [f"{named[number][0]}: {problem}" for number, problem in name_problems(named, GUARDS)]
    if problems:
        raise FaultsError([Fault("", 0, 0, "guards", problem) for problem in problems])
    return tuple(loaded)


def _guard(given: str | GuardFunction) -> OwnGuard:
    """Return a guard that is handed over, or that a file holds."""
    somebodys = part(given) if isinstance(given, str) else None
    with _at_work(somebodys):
        look = given if somebodys is None else somebodys.load()
    problem = f"{given}: should be a function of {', '.join(_TAKES)}"
    if isinstance(look, type) or not callable(look):
        raise PartError(f"{problem}, is {_kind(look)}")
    try:
        inspect.signature(look).bind(*_TAKES)
    except (TypeError, ValueError) as error:
        raise PartError(f"{problem}: {error}") from None
    name = somebodys.name if somebodys is not None else getattr(look, "__name__", type(look).__name__)
    if not name.isidentifier():
        raise PartError(f"{given}: should have a name, under which it counts as checked")
    return OwnGuard(name, cast(GuardFunction, look), somebodys)


def _at_work(somebodys: Part | None) -> AbstractContextManager[None]:
    """Say that errors are the part's, if it has a file."""
    return nullcontext() if somebodys is None else blamed(somebodys)


def _plain(value: float) -> float:
    return value if isinstance(value, int) else float(value)


def _several(returned: object) -> TypeGuard[Iterable[object]]:
    return isinstance(returned, Iterable) and not isinstance(returned, (str, Mapping, pd.DataFrame, pd.Series))


def _kind(value: object) -> str:
    """Return what a value is, in words."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
