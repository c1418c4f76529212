"""`wsc serve`: the pages of a profile on this machine alone, until Ctrl-C."""

import socket
from contextlib import suppress
from errno import EACCES, EADDRINUSE
from pathlib import Path

from scenarios.files.faults import Fault, FaultsError, shown

HOST = "127.0.0.1"
"""Reached from this machine alone."""
_WAITING = 1024


def serve(run: Path, port: int = 8000) -> None:
    """Serve a profile's pages until interrupted.

    Parameters
    ----------
    run : a run directory with profiles, or a folder with their tables
    port : 1..65535; 0 takes any free one

    Raises
    ------
    FaultsError
        If the port is taken or not allowed.
    ProfileError
        If the folder is no profile.

    Examples
    --------
    >>> serve(Path("runs/none"), 70_000)
    Traceback (most recent call last):
    scenarios.files.faults.FaultsError: --port: should be 0 to 65535, got 70000
    """
    listening = listen(port)
    try:
        import uvicorn

        from scenarios.web.application import application

        app = application(run)
        print(f"http://{HOST}:{listening.getsockname()[1]}/ (Ctrl-C ends it)", flush=True)
        config = uvicorn.Config(app, log_level="warning", server_header=False, ws="none", timeout_graceful_shutdown=3)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])
    finally:
        listening.close()


def listen(port: int) -> socket.socket:
    """Return a socket that listens on the loopback interface."""
    if not 0 <= port <= 65535:
        raise FaultsError([Fault("--port", 0, 0, "", "should be 0 to 65535", shown(port))])
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
        listening.listen(_WAITING)
    except OSError as error:
        listening.close()
        why = {EADDRINUSE: "is taken by another program", EACCES: "is not allowed to you"}
        problem = why.get(error.errno or 0, f"cannot be listened on: {error.strerror}")
        raise FaultsError([Fault("--port", 0, 0, "", problem, shown(port))]) from None
    return listening
