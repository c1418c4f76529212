"""The truth about functions: what they do over the horizon, whether a profiler looks or not."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from models.arrays import Floats, Ints
from sim.profiling.functions import CYCLES, EVENTS, INSTRUCTIONS, row_weights, summed
from sim.profiling.rows import CounterRows, RunningSoftware, by_program

CHUNK = 1_000_000
"""Rows × functions that are worked on at a time."""


@dataclass(slots=True)
class ProfileTruth:
    """What functions do over the horizon, profiled or not, summed as the fleet's blocks come."""

    software: RunningSoftware
    sums: dict[tuple[int, int, int, int], Floats] = field(default_factory=dict)
    """(functions, events) by program, data centre, platform and build (0 or 1)."""

    def add(self, rows: CounterRows, totals: Floats) -> None:
        """Add counter rows of any programs.

        Parameters
        ----------
        rows : N rows
        totals : (N, 5) as `spread` takes them
        """
        for program, which in by_program(rows):
            entries = self.software.programs.entries(program)
            step = max(1, CHUNK // (entries.stop - entries.start))
            for at in range(0, which.size, step):
                chosen = which[at : at + step]
                self._add(program, rows.take(chosen), totals[chosen])

    def _add(self, program: int, rows: CounterRows, totals: Floats) -> None:
        """Add rows of one program, group by group."""
        places = self.software.places
        shape = len(places.datacentres), len(places.platforms), 2
        cell = np.ravel_multi_index((rows.datacentre, rows.platform, rows.build), shape)
        weights = row_weights(self.software, rows)
        for number in np.unique(cell).tolist():
            here = cell == number
            sums = summed(self.software.programs, rows.take(here), weights[here], totals[here])
            datacentre, platform, build = (int(i) for i in np.unravel_index(number, shape))
            group = program, datacentre, platform, build
            self.sums[group] = self.sums.get(group, 0.0) + sums

    def functions(self) -> dict[str, NDArray[Any] | pa.Array]:
        """Return the columns of table `truth_functions`: one row per program, place, platform, build and function."""
        programs, builds = self.software.programs, self.software.builds
        groups = sorted(self.sums)
        function = [programs.functions(program) for program, *_ in groups]
        count = [of_group.size for of_group in function]
        every = np.concatenate([np.zeros(0, np.int64), *function])
        sums = np.concatenate([np.zeros((0, len(EVENTS))), *(self.sums[group] for group in groups)])
        build = [builds.of_image[programs.image_of_program[program], new] for program, _, _, new in groups]
        return {
            **self._groups(groups, count),
            "build": np.repeat(np.array(build, np.int64), count),
            "image": texts(programs.images, programs.code.image[every]),
            "function": texts(programs.code.name, every),
            **{event: np.ascontiguousarray(sums[:, i]) for i, event in enumerate(EVENTS)},
        }

    def cpi(self) -> dict[str, NDArray[Any] | pa.Array]:
        """Return the columns of table `truth_cpi`: one row per program and platform."""
        sums: dict[tuple[int, int], Floats] = {}
        for program, datacentre, platform, build in sorted(self.sums):
            row = self.sums[program, datacentre, platform, build].sum(axis=0)
            sums[program, platform] = sums.get((program, platform), 0.0) + row
        pairs = sorted(sums)
        table = np.array([sums[pair] for pair in pairs]).reshape(-1, len(EVENTS))
        return {
            "application": texts(self.software.programs.names, [program for program, _ in pairs]),
            "platform": texts(self.software.places.platforms, [platform for _, platform in pairs]),
            "cycles": np.ascontiguousarray(table[:, CYCLES]),
            "instructions": np.ascontiguousarray(table[:, INSTRUCTIONS]),
        }

    def _groups(self, groups: list[tuple[int, int, int, int]], count: list[int]) -> dict[str, pa.Array]:
        """Return what the groups share, once for each of their functions."""
        names = self.software.programs.names, self.software.places.datacentres, self.software.places.platforms
        index = np.repeat(np.array(groups, np.int64).reshape(-1, 4), count, axis=0).T
        columns = ("application", "datacentre", "platform")
        return {column: texts(words, index[i]) for i, (column, words) in enumerate(zip(columns, names, strict=True))}


def texts(words: Sequence[str], index: Ints | Sequence[int]) -> pa.DictionaryArray:
    """Return a column of texts by their numbers; equal texts are one entry of its dictionary."""
    number = {word: i for i, word in enumerate(dict.fromkeys(words))}
    of_word = np.array([number[word] for word in words], np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(of_word[np.asarray(index, np.int64)]), pa.array(list(number)))
