"""What a worker of the live server does: read a request, burn the CPU time that it asks for, answer.

Standard library only, as the server.
"""

import os
import socket
import time
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

MOST_CPU_S = 60.0
"""The greatest demand of a request: a real-time process that burns for ever would take a CPU away from its owner."""
_LONGEST_HEAD, _PATIENCE_S, _SPIN_S = 8192, 10.0, 0.25


def demand(head: bytes) -> float | None:
    r"""Return the CPU seconds that a request asks for; None if it is no such request."""
    with suppress(ValueError, KeyError, IndexError):
        method, target, version = head.split(b"\r\n", 1)[0].decode("ascii").split(" ")
        cpu_s = float(parse_qs(urlsplit(target).query)["cpu_s"][0])
        if method == "GET" and version.startswith("HTTP/1.") and 0 <= cpu_s <= MOST_CPU_S:
            return cpu_s
    return None


def burn(until_s: float) -> float:
    """Burn CPU until this thread's CPU clock shows `until_s` seconds, and return what it shows then."""
    now_s = time.thread_time()
    while now_s < until_s:
        now_s = time.thread_time()
    return now_s


def spin(cpu: int) -> float:
    """Return how much CPU time this process gets on a CPU, over the time that it tries."""
    os.sched_setaffinity(0, [cpu])
    begin_s, burnt_s = time.monotonic(), time.thread_time()
    got_s = burn(burnt_s + _SPIN_S) - burnt_s
    return got_s / (time.monotonic() - begin_s)


def answer(connection: socket.socket, begin_s: float) -> None:
    """Read one request, burn what it asks for, answer with what was burnt, and close.

    Parameters
    ----------
    connection : a connected socket
    begin_s : what the thread's CPU clock showed when the request was taken; 0 for a process made for it
    """
    connection.settimeout(_PATIENCE_S)
    head = b""
    with connection, suppress(OSError):
        while b"\r\n\r\n" not in head and len(head) < _LONGEST_HEAD:
            piece = connection.recv(_LONGEST_HEAD)
            if not piece:
                return
            head += piece
        cpu_s = demand(head)
        status = "200 OK" if cpu_s is not None else "400 Bad Request"
        burnt_s = burn(begin_s + cpu_s) - begin_s if cpu_s is not None else 0.0
        body = f"{burnt_s:.9f}\n"
        reply = (
            f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        connection.sendall((reply + body).encode("ascii"))
