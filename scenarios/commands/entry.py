"""Where `wsc` starts: Ctrl-C ends it in a plain line and status 130 at any moment, while modules are loaded as well."""

import signal

from scenarios.commands.interrupts import flush, leave


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
