"""Call paths: how the functions of a program are reached from `main`."""

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints

DEEPER = 0.5
"""Chance that a function is called by a function that another one called."""
THROUGH_LIBRARY = 0.3
"""Chance that the kernel is entered from a shared library."""
OWN, LIBRARY, KERNEL = range(3)


@dataclass(frozen=True, slots=True, eq=False)
class CallPaths:
    """Paths to each of E entries, in two levels of lists.

    Those of entry e are paths `start[e]` to `start[e + 1]`, with `probability` summing to 1; path p is made of the
    functions `frame[frame_start[p]:frame_start[p + 1]]`, the one that runs first and `main` last.
    """

    start: Ints
    probability: Floats
    frame_start: Ints
    frame: Ints

    def of(self, entry: int) -> list[tuple[tuple[int, ...], float]]:
        """Return the paths to an entry, each with its probability.

        Examples
        --------
        >>> only = CallPaths(np.array([0, 1]), np.ones(1), np.array([0, 2]), np.array([5, 3]))
        >>> [(path, float(share)) for path, share in only.of(0)]
        [((5, 3), 1.0)]
        """
        return [
            (tuple(int(f) for f in self.frame[self.frame_start[p] : self.frame_start[p + 1]]), self.probability[p])
            for p in range(int(self.start[entry]), int(self.start[entry + 1]))
        ]


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """What paths of one program are made of: global numbers of its functions, `main` first, then those that handle
    requests; then those of libraries and those of the kernel, the entry of system calls first.
    """

    own: Ints
    handlers: int
    libraries: Ints
    kernel: Ints

    @property
    def all(self) -> Ints:
        """All its functions, in the order of its entries."""
        return np.concatenate([self.own, self.libraries, self.kernel])


def call_paths(members: Members, median: int, rng: np.random.Generator) -> CallPaths:
    """Return paths to every function of a program: from `main` over a handler and own code to libraries and the kernel.

    Own functions call only those that stand after them, so there are no cycles.

    Parameters
    ----------
    members : the program's functions
    median : paths that lead to a function, at the median
    rng : of the draws
    """
    own, entries = members.own.size, members.all.size
    count = np.clip(np.rint(median * np.exp(0.5 * rng.standard_normal(entries))), 1, 50).astype(np.int64)
    count[: 1 + members.handlers] = 1
    start = np.concatenate([[0], np.cumsum(count)])
    leaf = np.repeat(np.arange(entries), count)
    kind = np.where(leaf < own, OWN, np.where(leaf < own + members.libraries.size, LIBRARY, KERNEL))
    frames = _frames(members, leaf, kind, rng)
    exists = frames >= 0
    weight = np.exp(rng.standard_normal(leaf.size))
    return CallPaths(
        start=start,
        probability=weight / np.repeat(np.add.reduceat(weight, start[:-1]), count),
        frame_start=np.concatenate([[0], np.cumsum(exists.sum(axis=1))]),
        frame=frames[exists],
    )


def joined(parts: list[CallPaths]) -> CallPaths:
    """Return the paths of several programs, one after the other."""
    return CallPaths(
        start=_starts([part.start for part in parts]),
        probability=np.concatenate([part.probability for part in parts]),
        frame_start=_starts([part.frame_start for part in parts]),
        frame=np.concatenate([part.frame for part in parts]),
    )


def _starts(parts: list[Ints]) -> Ints:
    return np.concatenate([[0], np.cumsum(np.concatenate([np.diff(part) for part in parts]))])


def _frames(members: Members, leaf: Ints, kind: Ints, rng: np.random.Generator) -> Ints:
    """Return (paths, 6) functions from the one that runs to `main`, −1 where a path has none."""
    own, first = members.own, 1 + members.handlers
    uniform = rng.random((leaf.size, 5))
    below = np.where(kind == OWN, np.maximum(leaf, first), own.size)
    near = first + np.floor(uniform[:, 0] * (below - first)).astype(np.int64)
    far = first + np.floor(uniform[:, 1] * (near - first)).astype(np.int64)
    handler = 1 + np.floor(uniform[:, 2] * members.handlers).astype(np.int64)
    deep = leaf >= first
    calls_near = (near < below) & deep & ((kind != OWN) | (uniform[:, 3] < DEEPER))
    calls_far = calls_near & (far < near) & (uniform[:, 4] < DEEPER)
    frames = np.full((leaf.size, 7), -1)
    frames[:, 0] = members.all[leaf]
    inside = (kind == KERNEL) & (leaf > leaf[kind == KERNEL].min(initial=leaf.size))
    frames[inside, 1] = members.kernel[0]
    if members.libraries.size:
        lent = (kind == KERNEL) & (rng.random(leaf.size) < THROUGH_LIBRARY)
        frames[lent, 2] = rng.choice(members.libraries, int(lent.sum()))
    frames[calls_near, 3] = own[near[calls_near]]
    frames[calls_far, 4] = own[far[calls_far]]
    frames[deep, 5] = own[handler[deep]]
    frames[leaf > 0, 6] = own[0]
    return frames
