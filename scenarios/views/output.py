"""What a command says: one JSON value on stdout, or text for people; progress on stderr for those who watch."""

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from scenarios.views.conclusion import Conclusion

Progress = Callable[[str, float], None]
"""Called with what is being done and the share of it that is done."""


def dumps(value: object) -> str:
    """Return a value as JSON; NaN and infinities become null, numbers of numpy plain numbers.

    Examples
    --------
    >>> print(dumps({"change": 0.07, "low": float("nan"), "sizes": (25, 50)}))
    {
     "change": 0.07,
     "low": null,
     "sizes": [
      25,
      50
     ]
    }
    """
    return json.dumps(_plain(value), indent=1, ensure_ascii=False, allow_nan=False)


def line(value: object) -> str:
    """Return a value as one line of JSON, otherwise as `dumps` does.

    Examples
    --------
    >>> line({"kind": "alert", "ratio": float("inf")})
    '{"kind": "alert", "ratio": null}'
    """
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)


@contextmanager
def progress(quiet: bool = False) -> Iterator[Progress]:
    """Yield a function to be called with what is being done and the share done; it draws a bar on stderr.

    It draws nothing when `quiet`, or when stderr is no terminal.

    Examples
    --------
    >>> with progress(quiet=True) as tell:
    ...     tell("simulating", 0.5)
    """
    if quiet or not sys.stderr.isatty():
        yield _say_nothing
        return
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def tell(what: str, share: float) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=1.0)
            bars.update(tasks[what], completed=share)

        yield tell


def _say_nothing(_what: str, _share: float) -> None:
    """Be the progress of a command that nobody watches."""


def _plain(value: object) -> object:
    if isinstance(value, Conclusion):
        return _plain(value.payload())
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
