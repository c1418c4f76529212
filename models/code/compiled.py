"""Compiled functions: Numba's `njit`, whose cache on disk is left unread where its index does not fit the code.

An index names the classes of the arguments. One that was written when a class still had another name cannot be
unpickled, and Numba would end in an AttributeError before it asks whether the source is as old as the index.
"""

from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any, Literal, TypeVar, cast

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

_F = TypeVar("_F", bound=Callable[..., Any])
_UNREADABLE = (AttributeError, EOFError, ImportError, IndexError, UnpicklingError)
"""What unpickling raises, says the manual of `pickle`."""


class _Index(IndexDataCacheFile):
    """The index of a cache: empty if it cannot be unpickled."""

    def _load_index(self) -> object:
        try:
            return super()._load_index()
        except _UNREADABLE:
            return {}


class _Cache(FunctionCache):
    """A function's cache with such an index."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _Index(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=self._impl.locator.get_source_stamp(),
        )


def njit(
    *,
    cache: bool = True,
    nogil: bool = False,
    error_model: Literal["python", "numpy"] = "python",
    inline: Literal["never", "always"] = "never",
) -> Callable[[_F], _F]:
    """Return a decorator that compiles a function, with options of `numba.njit`.

    Parameters
    ----------
    cache : whether what is compiled is kept on disk for the next process

    Examples
    --------
    >>> @njit(cache=False)
    ... def twice(x: float) -> float:
    ...     return 2.0 * x
    >>> twice(3.0)
    6.0
    """

    def compiled(function: _F) -> _F:
        dispatcher: Any = numba.njit(nogil=nogil, error_model=error_model, inline=inline)(function)
        if cache and dispatcher is not function:  # it is where NUMBA_DISABLE_JIT is set
            dispatcher._cache = _Cache(function)
        return cast(_F, dispatcher)

    return compiled
