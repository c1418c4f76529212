"""Hits: where samples fell, down to the instruction and the call path, equal ones counted once."""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

from models.arrays import Floats, Ints
from models.profiling.call_paths import CallPaths
from models.profiling.programs import ProgramArrays
from sim.profiling.addresses import MOST_INSTRUCTIONS, Addresses
from sim.profiling.draws import Draws, Lists, mixed, uniforms
from sim.recorder import Values

Whole = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """Rows of samples: process, event, line, instruction in it, call path (−1: no stack) and how many.

    Examples
    --------
    >>> hits = Hits(*[np.array([i], np.int32) for i in range(6)])
    >>> Hits.together([hits, hits]).count
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
    """

    def __init__(self, programs: ProgramArrays, addresses: Addresses) -> None:
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


VARIANTS = 4
"""Old or new build × old or new kernel: the same path has other addresses in each."""


class Stacks:
    """The stacks met so far, numbered in the order in which they were first met.

    Parameters
    ----------
    addresses : where functions are
    paths : call paths of all programs
    program : (P,) program of each path
    """

    def __init__(self, addresses: Addresses, paths: CallPaths, program: Ints) -> None:
        self._addresses, self._paths, self._program = addresses, paths, program
        self._number = np.full(program.size * VARIANTS, -1)
        self._met = 0

    def number(
        self, path: Ints | NDArray[np.int32], new_build: Ints, new_kernel: Ints
    ) -> tuple[Ints, dict[str, Values]]:
        """Return the number of each sample's stack, and the rows of `raw_stacks` for those not met before.

        Parameters
        ----------
        path, new_build, new_kernel : (n,) arrays; a path of −1 is no stack, and so is its number
        """
        has_stack = path >= 0
        code = (path * VARIANTS + 2 * new_build + new_kernel)[has_stack]
        unique, first = np.unique(code, return_index=True)
        fresh = self._number[unique] < 0
        fresh_codes = unique[fresh][np.argsort(first[fresh], kind="stable")]
        self._number[fresh_codes] = self._met + np.arange(fresh_codes.size)
        self._met += fresh_codes.size
        number = np.full(path.size, -1)
        number[has_stack] = self._number[code]
        return number, self._rows(fresh_codes)

    def _rows(self, code: Ints) -> dict[str, Values]:
        """Return every frame of some stacks: where the sampled function begins, then where each call returns to."""
        paths = self._paths
        path, variant = np.divmod(code, VARIANTS)
        depths = paths.frame_start[path + 1] - paths.frame_start[path]
        owner = np.repeat(np.arange(code.size), depths)
        depth = np.arange(owner.size) - np.repeat(np.cumsum(depths) - depths, depths)
        at = paths.frame_start[path][owner] + depth
        function = paths.frame[at]
        build = self._addresses.build_of(function, variant[owner] // 2, variant[owner] % 2)
        address = self._addresses.start_of(build, function, self._program[path][owner])
        called = paths.frame[np.where(depth > 0, at - 1, at)]
        address += np.where(depth > 0, self._addresses.call_site(function, called), 0)
        return {"stack": self._number[code][owner], "depth": depth, "build": build, "address": address}
