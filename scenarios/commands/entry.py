"""Where `wsc` starts, and Ctrl-C: it ends the command in a plain line and status 130, while modules are loaded too.

It raises KeyboardInterrupt while there is work to tidy up, and ends the process at once otherwise.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it: 128 and the signal's number."""
_came = list[int]()
"""Signals that came while a command was at work."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Let an interrupt raise KeyboardInterrupt meanwhile, so that work is tidied up; a second one ends the process."""
    if signal.getsignal(signal.SIGINT) is not leave:
        yield
        return
    signal.signal(signal.SIGINT, _raise)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, leave)


def interrupted() -> bool:
    """Return whether an interrupt came, whatever became of it: a library may have made another error of it."""
    return bool(_came)


def leave(_signal: int, _frame: FrameType | None) -> None:
    """End the process without any of Python's own farewells: a handler of signals."""
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


def _raise(number: int, frame: FrameType | None) -> None:
    if _came:
        leave(number, frame)
    _came.append(number)
    raise KeyboardInterrupt


def flush() -> None:
    """Write out what was printed; end at once where nobody reads it any more."""
    try:
        sys.stdout.flush()
    except OSError:
        os._exit(1)


def main() -> None:
    """Run the command `wsc`.

    Until a command's own work begins, and after it, there is nothing to be tidied up: an interrupt then ends the
    process at once. Otherwise whatever is being imported could turn it into an error of its own. Where interrupts are
    ignored, as in the background, they stay so.
    """
    heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heeded:
        signal.signal(signal.SIGINT, leave)
    from scenarios.commands.app import app

    try:
        app()
    finally:
        if heeded:
            flush()
            signal.signal(signal.SIGINT, leave)
