"""Stacks as they are taken: return addresses, each list of them written once."""

import numpy as np
from numpy.typing import NDArray

from models.arrays import Ints
from models.profiling.call_paths import CallPaths
from sim.profiling.addresses import Addresses
from sim.recorder import Values

VARIANTS = 4
"""Old or new build × old or new kernel: the same path has other addresses in each."""


class Stacks:
    """The stacks met so far, numbered in the order in which they were first met.

    Parameters
    ----------
    addresses : where functions are
    paths : call paths of all programs
    program : (P,) program of each path

    Examples
    --------
    >>> from sim.profiling.images import example
    >>> of = example()
    >>> stacks = Stacks(of.addresses, of.programs.paths, np.zeros(of.programs.paths.probability.size, np.int64))
    >>> stacks.number(np.array([7, -1, 7]), *np.zeros((2, 3), np.int64))[0]
    array([ 0, -1,  0])
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
        there = path >= 0
        code = (path * VARIANTS + 2 * new_build + new_kernel)[there]
        unique, first = np.unique(code, return_index=True)
        fresh = self._number[unique] < 0
        fresh_codes = unique[fresh][np.argsort(first[fresh], kind="stable")]
        self._number[fresh_codes] = self._met + np.arange(fresh_codes.size)
        self._met += fresh_codes.size
        number = np.full(path.size, -1)
        number[there] = self._number[code]
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
