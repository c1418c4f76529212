"""Progress in a notebook: bars under the cell that works, which are taken away at the end."""

import sys
from collections.abc import Mapping
from html import escape
from importlib import import_module
from threading import Lock
from time import monotonic
from typing import Protocol

_BETWEEN_S = 0.2
"""Least time between two drawings."""


class _Display(Protocol):
    """What IPython has shown and can change."""

    def update(self, shown: Mapping[str, str], *, raw: bool) -> None: ...


def in_notebook() -> bool:
    """Return whether a notebook runs this process.

    Examples
    --------
    >>> in_notebook()
    False
    """
    if "IPython" not in sys.modules:
        return False
    from rich.console import Console

    return Console().is_jupyter


class NotebookBars:
    """Bars in a notebook, each with what is being done and the share done."""

    def __init__(self) -> None:
        self._shares: dict[str, float] = {}
        self._display: _Display | None = None
        self._drawn_s = 0.0
        self._lock = Lock()

    def start(self) -> None:
        """Draw the bars from now on."""
        with self._lock:
            self._display = import_module("IPython.display").display(self._shown(), raw=True, display_id=True)

    def tell(self, what: str, share: float) -> None:
        """Set the share that is done; a bar of 0 only says that work is going on."""
        with self._lock:
            self._shares[what] = share
            if self._display is not None and monotonic() > self._drawn_s + _BETWEEN_S:
                self._display.update(self._shown(), raw=True)
                self._drawn_s = monotonic()

    def stop(self) -> None:
        """Take the bars away."""
        with self._lock:
            if self._display is not None:
                self._display.update({"text/html": "", "text/plain": ""}, raw=True)
                self._display = None

    def _shown(self) -> dict[str, str]:
        """Return the bars as HTML and as text."""
        bars = [
            f"<div><progress{f' value={share:.3f}' if share else ''} max=1></progress> {escape(what)}</div>"
            for what, share in self._shares.items()
        ]
        texts = [f"{what} {share:.0%}" if share else what for what, share in self._shares.items()]
        return {"text/html": "".join(bars), "text/plain": "\n".join(texts)}
