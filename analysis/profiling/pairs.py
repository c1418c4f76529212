"""Numbers of pairs of numbers."""

import numpy as np

from analysis.profiling.frames import AnyInts
from models.arrays import Bools, Ints

_FEWEST = 65_536
"""Pairs for which there is room at first."""
_SPREAD = 40_503
"""By how many chains pairs of a place with successive keys are apart, so that few are in the same."""
_BLOCK, _MIX = 16, 0x5851F42D4C957F2D
"""Bits of numbers whose chains follow one another; the others are multiplied (Knuth's MMIX), so that they tell too."""


class PairNumbers:
    """Pairs of a place and a key, each with a number from 0 on.

    They are in chains, as many as there is room for, each of pairs whose place and key say that they are in it. Frames
    of flame graphs number their pairs in compiled code (`counted_shares`), 1.4 s faster at 100 million rows; loading it
    takes a third of a second, for which exports and questions to call paths have no other use.

    Examples
    --------
    >>> pairs = PairNumbers()
    >>> pairs.of(np.array([2, 1, 2]), np.array([0, 0, 0])).tolist(), len(pairs)
    ([1, 0, 1], 2)
    >>> pairs.of(np.array([2, 2]), np.array([7, -1])).tolist(), pairs.place.tolist(), pairs.key.tolist()
    ([2, -1], [1, 2, 2], [0, 0, 7])
    """

    def __init__(self) -> None:
        self._last, self._before, self._key = np.zeros((3, _FEWEST), dtype=np.int32)
        """Last pair of each chain, and of each pair the one before: numbers plus 1, 0: there is none."""
        self._place = np.zeros(_FEWEST, dtype=np.int64)
        self._end = 1

    def __len__(self) -> int:
        return self._end - 1

    @property
    def place(self) -> Ints:
        """(Q,) of each pair."""
        return self._place[1 : self._end]

    @property
    def key(self) -> AnyInts:
        """(Q,) of each pair."""
        return self._key[1 : self._end]

    def of(self, place: AnyInts, key: AnyInts) -> AnyInts:
        """Return the numbers of pairs, new ones where there are none; −1 where the key is below 0.

        Parameters
        ----------
        place, key : (n,)
        """
        at = np.where(key < 0, 0, self._last[self._chains(place, key)])
        others = np.flatnonzero(self._differ(at, place, key))
        while len(others):
            at[others] = self._before[at[others]]
            others = others[self._differ(at[others], place[others], key[others])]
        new = np.flatnonzero((at == 0) & (key >= 0))
        if len(new):
            at[new] = self._add(place[new], key[new])
        return at - 1

    def _chains(self, place: AnyInts, key: AnyInts) -> Ints:
        number = place + key.astype(np.int64) * _SPREAD
        return (number + ((number >> _BLOCK) * _MIX >> 32)) & (len(self._last) - 1)

    def _differ(self, at: AnyInts, place: AnyInts, key: AnyInts) -> Bools:
        """Return where chains have not ended, and have another pair."""
        other: Bools = (self._place[at] != place) | (self._key[at] != key)
        return (at > 0) & other

    def _add(self, place: AnyInts, key: AnyInts) -> AnyInts:
        """Return the numbers plus 1 of pairs that are new."""
        order = np.lexsort((key, place))
        place, key = place[order], key[order]
        first = np.append(True, (place[1:] != place[:-1]) | (key[1:] != key[:-1]))
        at = np.empty(len(order), dtype=np.int32)
        at[order] = self._end + np.cumsum(first, dtype=np.int32) - 1
        begin, self._end = self._end, self._end + int(first.sum())
        while self._end > len(self._last):
            self._place = np.append(self._place, np.zeros_like(self._place))
            self._key = np.append(self._key, np.zeros_like(self._key))
            self._last, self._before = np.zeros((2, len(self._key)), dtype=np.int32)
            self._put_into_chains(1, begin)
        self._place[begin : self._end], self._key[begin : self._end] = place[first], key[first]
        self._put_into_chains(begin, self._end)
        return at

    def _put_into_chains(self, begin: int, end: int) -> None:
        """Put pairs into chains, those numbered from and to plus 1."""
        chain = self._chains(self._place[begin:end], self._key[begin:end])
        order = np.argsort(chain, kind="stable")
        chain, at = chain[order], (begin + order).astype(np.int32)
        first = np.append(True, chain[1:] != chain[:-1])[: len(chain)]
        self._before[at] = np.where(first, self._last[chain], np.append(0, at[:-1]))
        self._last[chain] = at  # of several, the last remains
