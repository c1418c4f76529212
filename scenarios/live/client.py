"""A client that sends sessions of requests over HTTP and stamps them by the monotonic clock.

    python -m scenarios.live.client --cpus 0 --scheduler rr --parent PID < sessions.json

Sessions arrive in an open fashion; within one, the next request follows the answer after a time to think (semi-open,
Schroeder, Wierman and Harchol-Balter 2006). A session of one request is an open arrival. Standard library only.
"""

import argparse
import asyncio
import gc
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from scenarios.live.kernel import CLIENT, SCHEDULERS, die_with, schedule

_LEAD_S = 0.2
"""Between reading the sessions and the beginning of their clock."""


@dataclass(frozen=True, slots=True)
class Session:
    """One session: when it starts, what each request demands, and how long it thinks between them."""

    start_s: float
    demand_s: tuple[float, ...]
    think_s: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Stamp:
    """One request as the client saw it; `departure_s` is NaN when it was not answered well."""

    session: int
    demand_s: float
    arrival_s: float
    departure_s: float


async def ask(port: int, demand_s: float) -> bytes:
    """Return the whole answer to one request; empty if there was none.

    Parameters
    ----------
    port : of a server on the loopback interface
    demand_s : CPU seconds to ask for
    """
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return b""
    try:
        writer.write(f"GET /?cpu_s={demand_s!r} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        return await reader.read()
    except OSError:
        return b""
    finally:
        writer.close()


async def send(port: int, sessions: Sequence[Session], begin_s: float, until_s: float) -> list[Stamp]:
    """Send all sessions and return their requests in order of arrival.

    Parameters
    ----------
    port : of a server on the loopback interface
    sessions : in any order
    begin_s : time of the monotonic clock that the sessions' starts count from
    until_s : when sessions break off, from then on; answers are still waited for

    Returns
    -------
    list of Stamp
        Times in seconds of the monotonic clock.
    """
    stamps = list[Stamp]()

    async def live(number: int, session: Session) -> None:
        for demand_s, think_s in zip(session.demand_s, (*session.think_s, 0.0), strict=True):
            arrival_s = time.monotonic()
            if arrival_s >= begin_s + until_s:
                return
            reply = await ask(port, demand_s)
            departure_s = time.monotonic() if b" 200 " in reply[:16] else float("nan")
            stamps.append(Stamp(number, demand_s, arrival_s, departure_s))
            await asyncio.sleep(think_s)

    async with asyncio.TaskGroup() as living:
        for number, session in sorted(enumerate(sessions), key=lambda entry: entry[1].start_s):
            await asyncio.sleep(begin_s + session.start_s - time.monotonic())
            living.create_task(live(number, session))
    return sorted(stamps, key=lambda stamp: stamp.arrival_s)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a client as its arguments and its standard input say; it prints what it saw as one JSON value."""
    parser = argparse.ArgumentParser(description="A client that sends sessions of requests and stamps them.")
    parser.add_argument("--cpus", required=True, help="CPUs that it may run on, such as 0,1")
    parser.add_argument("--scheduler", choices=SCHEDULERS, default="other")
    parser.add_argument("--parent", type=int, required=True, help="process that it must not outlive")
    options = parser.parse_args(arguments)
    die_with(options.parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.sched_setaffinity(0, [int(cpu) for cpu in options.cpus.split(",")])
    schedule(options.scheduler, CLIENT)
    load = json.load(sys.stdin)
    sessions = [
        Session(entry["start_s"], tuple(entry["demand_s"]), tuple(entry["think_s"])) for entry in load["sessions"]
    ]
    gc.freeze()
    begin_s = time.monotonic() + _LEAD_S
    stamps = asyncio.run(send(load["port"], sessions, begin_s, load["until_s"]))
    print(json.dumps(columns(stamps)), flush=True)


def columns(stamps: Sequence[Stamp]) -> dict[str, list[float]]:
    """Return stamps by column."""
    return {
        name: [getattr(stamp, name) for stamp in stamps] for name in ("session", "demand_s", "arrival_s", "departure_s")
    }


if __name__ == "__main__":
    main()
