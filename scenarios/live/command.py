"""`wsc live`: the Occupancy Law tried on this machine, a real server's utilisation and queueing beside the kernel's."""

import gzip
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from scenarios.live.gate import before, during, reasons
from scenarios.live.load import DEMAND_S, REQUESTS_PER_SESSION, THINK_S, sessions
from scenarios.live.run import LiveError, Place, Wish, observe, place
from scenarios.live.summary import summary, tables
from scenarios.runs.rundir import make_folder
from scenarios.runs.unfinished import whole
from scenarios.views.output import Progress, dumps

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

REQUESTS, CPU, SUMMARY = "requests.csv.gz", "cpu.csv", "summary.json"
_LONGEST_INTERVAL_S, _INTERVALS, _SHOWN = 20.0, 10, 12


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a live measurement."""

    servers: int
    """CPUs of the server."""
    length_s: float
    """Seconds in which requests are sent."""
    seed: int
    scheduler: Wish = "auto"
    pool: int = 0
    """Workers made beforehand; 0: one for each request."""


def live(asked: Asked, out: Path, tell: Progress) -> dict[str, Any]:
    """Serve sessions on this machine for a while, and set the law beside the kernel's accounts.

    Parameters
    ----------
    asked : how many CPUs, how long, under which scheduler
    out : folder for requests.csv.gz, cpu.csv and summary.json; written in the end, the summary last
    tell : progress

    Returns
    -------
    dict
        The payload of `--json`, which is also the summary.

    Raises
    ------
    LiveError
        If this machine cannot do it, or server or client fails.
    """
    where = place(asked.servers, asked.scheduler, asked.pool)
    make_folder(out)
    load = sessions(asked.seed, asked.length_s, asked.servers)
    if not load:
        raise LiveError(f"with seed {asked.seed} no session starts in {asked.length_s:g} s; more --minutes will do")
    looked, every_s = before(where.server_cpus), interval_s(asked.length_s)
    observed = observe(load, asked.length_s, where, every_s, lambda share: tell("serving", share))
    then = during(observed, where)
    why = reasons(looked, then, where.scheduler)
    requests, cpu = tables(observed, asked.servers)
    settings = {"seed": asked.seed, "length_s": asked.length_s, "interval_s": every_s, "demand_s": DEMAND_S}
    payload = {
        "kind": "live",
        "quiet": not why,
        "reasons": why,
        "before": asdict(looked),
        "during": asdict(then),
        "machine": machine(where),
        "settings": settings | {"think_s": THINK_S, "requests_per_session": REQUESTS_PER_SESSION},
        **summary(requests, cpu, asked.servers),
    }
    (out / SUMMARY).unlink(missing_ok=True)
    write_log(out / REQUESTS, requests)
    with whole(out / CPU) as partial:
        cpu.to_csv(partial, index=False, lineterminator="\n")
    with whole(out / SUMMARY) as partial:
        partial.write_text(f"{dumps(payload)}\n", encoding="utf-8")
    return payload


def interval_s(length_s: float) -> float:
    """Return the length of the intervals: a tenth of the run, 20 s at most.

    Examples
    --------
    >>> interval_s(120.0), interval_s(1920.0)
    (12.0, 20.0)
    """
    return min(_LONGEST_INTERVAL_S, length_s / _INTERVALS)


def machine(where: Place) -> dict[str, Any]:
    """Return what the measurement was made on: no names of hosts, users or folders.

    Examples
    --------
    >>> machine(Place((1,), (0,), "other"))["client_shares_cpu"]
    False
    """
    return {
        "cpus": os.cpu_count(),
        "kernel": f"{platform.system()} {platform.release().partition('-')[0]}",
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "scheduler": where.scheduler,
        "server_cpus": where.server_cpus,
        "client_cpus": where.client_cpus,
        "client_shares_cpu": where.shared,
        "pool": where.pool,
    }


def write_log(file: Path, requests: pd.DataFrame) -> None:
    """Write a log as gzipped CSV, the same bytes for the same log.

    Parameters
    ----------
    file : where
    requests : any columns

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_log(Path(folder) / "log.csv.gz", pd.DataFrame({"arrival_s": [0.5]}))
    ...     pd.read_csv(Path(folder) / "log.csv.gz")
       arrival_s
    0        0.5
    """
    with whole(file) as partial:
        partial.write_bytes(gzip.compress(requests.to_csv(index=False, lineterminator="\n").encode("ascii"), mtime=0))


def show(payload: Mapping[str, Any], console: "Console") -> None:
    """Print the law beside the kernel for people."""
    show_where(payload, console)
    kernel = payload["kernel"]
    console.print(
        f"{payload['requests']} requests in {payload['length_s']:.1f} s, {payload['failed']} without an answer"
    )
    totals = plain_table("over all", "law", "kernel")
    totals.add_row("utilisation", f"{payload['utilisation']:.2%}", f"{kernel['utilisation']:.2%}")
    totals.add_row("service time", f"{payload['service_time_s']:.2f} s", f"{kernel['cpu_s']:.2f} s")
    totals.add_row("queueing time", f"{payload['queueing_time_s']:.2f} s", f"{kernel['run_queue_wait_s']:.2f} s")
    console.print(totals)
    rows = plain_table("from", "to", "utilisation by the law", "by the kernel", "queueing by the law", "by the kernel")
    every = -(-len(payload["intervals"]) // _SHOWN)
    for row in payload["intervals"][::every]:
        spans = f"{row['start_s']:.1f} s", f"{row['end_s']:.1f} s"
        shares = f"{row['utilisation']:.2%}", f"{row['kernel_utilisation']:.2%}"
        rows.add_row(*spans, *shares, f"{row['queueing_time_s']:.2f} s", f"{row['run_queue_wait_s']:.2f} s")
    console.print(rows)
    if payload["machine"]["pool"]:
        console.print("A pool's requests also wait to be accepted: the kernel's figure of queueing lacks that.")
    wrong = plain_table("error of utilisation", "median", "97th percentile", "greatest")
    for name, unit in (("raw", " points"), ("normalised", "%")):
        spread = payload["errors"][name]
        wrong.add_row(name, *(f"{100 * spread[each]:.2f}{unit}" for each in ("median", "p97", "max")))
    console.print(wrong)


def plain_table(*headings: str) -> "Table":
    """Return an empty table as the live commands print them.

    Examples
    --------
    >>> [column.header for column in plain_table("law", "kernel").columns]
    ['law', 'kernel']
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(*headings, box=SIMPLE_HEAD, padding=(0, 2, 0, 0), show_edge=False)


def show_where(payload: Mapping[str, Any], console: "Console") -> None:
    """Print the machine, the scheduler in force and whether it was quiet."""
    machine = payload["machine"]
    server, client = (", ".join(map(str, machine[f"{name}_cpus"])) for name in ("server", "client"))
    console.print(f"server on CPU {server}, client on CPU {client} of {machine['cpus']}, under {machine['scheduler']}")
    if not payload["quiet"]:
        console.print("not quiet: the machine was too busy for these numbers to judge the law")
        for reason in payload["reasons"]:
            console.print(f"  {reason}", markup=False, soft_wrap=True)
