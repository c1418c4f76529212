"""Hits: where samples fell, down to the instruction and the call path, equal ones counted together."""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

from models.arrays import Floats, Ints
from models.profiling.programs import Programs
from sim.profiling.addresses import MOST_INSTRUCTIONS, Addresses
from sim.profiling.choices import Draws, Lists
from sim.profiling.noise import mixed, uniforms

Whole = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """Rows of samples: process, event, line, instruction in it, call path (−1: no stack) and how many.

    Examples
    --------
    >>> one = Hits(*[np.array([i], np.int32) for i in range(6)])
    >>> Hits.together([one, one]).count
    array([5, 5], dtype=int32)
    """

    process: Whole
    event: Whole
    line: Whole
    instruction: Whole
    path: Whole
    count: Whole

    @classmethod
    def together(cls, parts: list[Self]) -> Self:
        """Return all rows by process; those of one process stay in the order of the parts."""
        nothing = [np.zeros(0, np.int32)]
        order = np.argsort(np.concatenate([part.process for part in parts] or nothing), kind="stable")
        names = [field.name for field in fields(cls)]
        return cls(*(np.concatenate([getattr(part, n) for part in parts] or nothing)[order] for n in names))


class Locator:
    """Draws the line, the instruction and the call path of samples of functions.

    Parameters
    ----------
    programs : call paths
    addresses : lines of functions, and instructions of lines

    Examples
    --------
    >>> from sim.profiling.images import example
    >>> of = example()
    >>> found = Locator(of.programs, of.addresses).on_main(np.array([4, 5]), 0, 3, np.array([8, 9]))
    >>> found.count, of.addresses.code.name[Locator(of.programs, of.addresses).function_of_line[found.line[0]]]
    (array([8, 9], dtype=int32), 'main')
    """

    def __init__(self, programs: Programs, addresses: Addresses) -> None:
        code, paths = addresses.code, programs.paths
        self._programs, self._addresses = programs, addresses
        self._lines = Lists.of(code.line_start, code.line_weight)
        self._paths = Lists.of(paths.start, paths.probability)
        self.function_of_line = np.repeat(np.arange(code.count), np.diff(code.line_start))

    def locate(self, draws: Draws, process: Ints, events: Ints, functions: Ints, program: int | None = None) -> Hits:
        """Return where samples fell.

        Parameters
        ----------
        draws : samples, of cells row × events + event
        process : (R,) process of each row
        events : (K,) number of each event
        functions : (F,) numbers in the code
        program : whose call paths are taken; None: stacks are not
        """
        line = self._lines.pick(functions[draws.function], _draw(draws, 1))
        instruction = np.floor(_draw(draws, 2) * self._addresses.instructions[line]).astype(np.int64)
        path, first = np.zeros(line.size, np.int64), 0
        if program is not None:
            entry = int(self._programs.start[program])
            first = int(self._programs.paths.start[entry])
            path = self._paths.pick(entry + draws.function, _draw(draws, 3)) - first
        paths, lines = int(path.max(initial=0)) + 1, self.function_of_line.size
        code = ((draws.cell * paths + path) * lines + line) * MOST_INSTRUCTIONS + instruction
        code, count = np.unique(code, return_counts=True)
        code, instruction = np.divmod(code, MOST_INSTRUCTIONS)
        code, line = np.divmod(code, lines)
        cell, path = np.divmod(code, paths)
        row, event = np.divmod(cell, events.size)
        path = np.full(path.size, -1) if program is None else path + first
        return Hits(*(x.astype(np.int32) for x in (process[row], events[event], line, instruction, path, count)))

    def on_main(self, process: Ints, event: int, program: int, count: Ints) -> Hits:
        """Return one row for each process of a program: so many of something, at the first line of `main`.

        Parameters
        ----------
        process, count : (R,) arrays
        event, program : numbers
        """
        entry = int(self._programs.start[program])
        line = int(self._addresses.code.line_start[self._programs.function[entry]])
        same = [np.full(process.size, x) for x in (event, line, 0, int(self._programs.paths.start[entry]))]
        return Hits(*(x.astype(np.int32) for x in (process, *same, count)))


def _draw(draws: Draws, what: int) -> Floats:
    """Return one more draw in 0..1 for each sample, another for each `what`."""
    return uniforms(mixed(draws.key, np.array(what, np.uint64)))
