"""Where `wsc` starts, and Ctrl-C: it ends the command in a plain line and status 130, while modules are loaded too.

It raises KeyboardInterrupt while there is work to tidy up, and ends the process at once otherwise. So does SIGTERM, by
which `kill`, `timeout` and containers end processes; its status is 143.
"""

import errno
import gc
import os
import re
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

SIGNALLED = 128
"""Exit status after a signal, as shells have it, less the signal's number."""
_HEEDED = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
"""Signals that end a command, and their handlers where nobody ignores them."""
UNREAD = 141
"""Exit status where nobody reads the output any more, as shells have it: 128 and the number of SIGPIPE."""
GARBAGE = (50_000, 10, 10)
"""New objects beyond which Python looks for cycles among them. Libraries load half a million objects that are never
garbage; with the usual 700 a command spends up to a tenth of its time looking through them."""
_came = list[int]()
"""Signals that came while a command was at work."""


@contextmanager
def interruptible() -> Generator[None]:
    """Let an interrupt raise KeyboardInterrupt meanwhile, so that work is tidied up; a second one ends the process."""
    heeded = [number for number in _HEEDED if signal.getsignal(number) is leave]
    for number in heeded:
        signal.signal(number, _raise)
    try:
        yield
    finally:
        for number in heeded:
            signal.signal(number, leave)


def interrupted() -> bool:
    """Return whether an interrupt came, whatever became of it: a library may have made another error of it."""
    return bool(_came)


def status() -> int:
    """Return the exit status after the interrupt that came."""
    return SIGNALLED + (_came[0] if _came else signal.SIGINT)


def leave(number: int, _frame: FrameType | None) -> None:
    """End the process without any of Python's own farewells: a handler of signals."""
    os.write(2, b"interrupted\n")
    os._exit(SIGNALLED + number)


def _raise(number: int, frame: FrameType | None) -> None:
    if _came:
        leave(number, frame)
    _came.append(number)
    raise KeyboardInterrupt


def flush() -> None:
    """Write out what was printed; end at once where that cannot be."""
    try:
        sys.stdout.flush()
    except OSError as error:
        _unwritten(error)


def _unwritten(error: OSError) -> None:
    """End the process, as Python itself would try to write again: nobody reads any more, or there is no room."""
    if isinstance(error, BrokenPipeError):
        os._exit(UNREAD)
    os.write(2, f"{error.strerror or error}\n".encode())
    os._exit(2)


_OPTION = re.compile(r"--[\w-]+=")
"""What an option begins with whose value may have several lines."""


def _is_comment(text: str) -> bool:
    """Return whether an argument is a query that begins with a comment: no option has a blank or a line end there."""
    name, line_end, _ = text.partition("\n")
    return name.startswith("--") and (name[2:3].isspace() or bool(line_end and not _OPTION.match(name)))


def main() -> None:
    """Run the command `wsc`.

    Until a command's own work begins, and after it, there is nothing to be tidied up: an interrupt then ends the
    process at once. Otherwise whatever is being imported could turn it into an error of its own. Where interrupts are
    ignored, as in the background, they stay so.
    """
    gc.set_threshold(*GARBAGE)
    heeded = [number for number, handler in _HEEDED.items() if signal.getsignal(number) is handler]
    for number in heeded:
        signal.signal(number, leave)
    for name in ("stdout", "stderr"):  # whoever closed one wants to read nothing
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  # as long as the process
    from scenarios.commands.app import app

    sys.argv[1:] = [f" {text}" if _is_comment(text) else text for text in sys.argv[1:]]
    try:
        app()
    except SystemExit as ending:  # libraries end with 1, which is an answer of some commands
        raise SystemExit(UNREAD) if isinstance(ending.__context__, BrokenPipeError) else ending from None
    except OSError as error:  # of help: commands are guarded
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise
        _unwritten(error)
    finally:
        flush()
        for number in heeded:
            signal.signal(number, leave)
