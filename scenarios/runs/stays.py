"""Logs of services that a fleet's run served: the requests of one stay, or a service's intervals on one platform."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from analysis.crosscheck.upgrade import log_of
from analysis.occupancy.logs.log import Log
from models.platforms import Platform
from scenarios.files.faults import Fault, FaultsError
from scenarios.files.options import refuse
from scenarios.runs.rundir import Run, epoch_length_s, open_run
from scenarios.views.numbers import plural

if TYPE_CHECKING:
    from analysis.crossplatform.evidence import ServiceLog

_NEEDED = ("stay_requests", "instance_epochs", "instances", "jobs", "epochs")
_EVENTS = ("instructions", "l1_misses", "l2_misses")


@dataclass(frozen=True, slots=True, eq=False)
class StayRequests:
    """What one instance of a service was asked while it was on one machine, by its own servers."""

    log: Log
    servers: int
    residence: int
    refused: int = 0
    """Requests that found it full; they are not in the log."""


def is_served(path: Path) -> bool:
    """Return whether a path is the folder of a run of a fleet that served the requests of services.

    Examples
    --------
    >>> is_served(Path("nowhere"))
    False
    """
    return path.is_dir() and (path / "manifest.json").is_file() and _has(open_run(path))


def log_of_run(path: Path, service: str | None, residence: int | None, servers: int | None) -> StayRequests | None:
    """Return the stay that is asked about, of the folder of a run with services; None of any other log.

    Parameters
    ----------
    path : a log, or the folder of a run
    service, residence : as for `stay_of`; of such a run only
    servers : that the log is said to be made with; the stay knows it

    Raises
    ------
    FaultsError
        As `stay_of`; if these options are about no such run, or the servers are not the stay's.

    Examples
    --------
    >>> log_of_run(Path("log.csv"), None, None, 4) is None
    True
    """
    if not is_served(path):
        for option, given in (("--service", service), ("--stay", residence)):
            if given is not None:
                refuse(option, "is about the folder of a fleet's run that served requests", str(given))
        return None
    stay = stay_of(path, service, residence)
    if servers is not None and servers != stay.servers:
        refuse("--servers", f"should be {stay.servers}, the vCPUs of stay {stay.residence}", str(servers))
    return stay


def stay_of(path: Path, service: str | None = None, residence: int | None = None) -> StayRequests:
    """Return the requests of one stay: the one that is named, or of a service, or of all, the one with most requests.

    Parameters
    ----------
    path : folder of a run with services that are served
    service : a name; any of them if it is left out
    residence : number of a stay
    """
    run = open_run(path)
    stays = _stays(run, service)
    requests = run.table("stay_requests")
    counts = requests.groupby("residence").size().reindex(stays.index).dropna().astype(int)
    if residence is not None and residence not in counts.index:
        busy = ", ".join(map(str, counts.index[:10].tolist()))
        refuse("--stay", f"should be a stay with requests, such as {busy}", str(residence))
    if not len(counts):
        raise FaultsError([Fault(str(path), 0, 0, "stay_requests", "should hold requests of the service", "none")])
    chosen = int(counts.index[int(counts.to_numpy().argmax())]) if residence is None else residence
    stay = stays.loc[[chosen]].iloc[0]
    columns = [name for name in ("arrival_s", "departure_s", "type", "request") if name in requests]
    table = requests.loc[requests["residence"] == chosen, columns].reset_index(drop=True)
    which = f"the one with the most requests of {len(counts)}" if residence is None else f"one of {len(counts)}"
    notes = [f"stay {chosen} of {stay['name']} on machine {stay['machine']}, {stay['platform']}: {which}"]
    away = run.table("stay_unserved", ["residence"])["residence"] if run.has("stay_unserved") else pd.Series([])
    if refused := int((away == chosen).sum()):
        notes.append(f"{plural(refused, 'more request')} found it full: figures are of those that were served")
    return StayRequests(Log(table, tuple(notes)), round(float(stay["quota_vcpu"])), chosen, refused)


def log_on(path: Path, service: str | None, platform: Platform) -> tuple["ServiceLog", str]:
    """Return a service's log on a platform, of as many of its stays there as one machine holds, and a note on them.

    Parameters
    ----------
    path : folder of a run with services that are served, and a profile of them
    service : a name; it may be left out if there is one only
    platform : where it ran

    Raises
    ------
    FaultsError
        If there is no such service, it had no stay there, or nothing says how often it missed its caches.
    """
    run = open_run(path)
    names = sorted(_stays(run, None)["name"].unique())
    if service is None and len(names) > 1:
        raise FaultsError([Fault("--service", 0, 0, "", f"is needed, since the run served {', '.join(names)}")])
    stays = _stays(run, service)
    hosted = stays[stays["platform"].astype(str) == platform.name].sort_index()
    if hosted.empty:
        ran = ", ".join(sorted(stays["platform"].astype(str).unique())) or "nowhere"
        refuse("--from", f"should be a platform that the service had a stay on: {ran}", platform.name)
    name = str(hosted["name"].iloc[0])
    fit = hosted[hosted["quota_vcpu"].cumsum() <= platform.vcpus]
    log = logged(run, fit.index, platform, name)
    if log is None:
        problem = f"no profile says how often {name} missed its caches on {platform.name}"
        raise FaultsError([Fault(str(path), 0, 0, "samples", problem)])
    shared = "which is taken for a machine's log" if len(fit) == 1 else "as if one machine held them"
    note = f"log of {len(fit)} of {len(hosted)} stays of {name} there, {fit['quota_vcpu'].sum():g} vCPUs, {shared}"
    return log, f"{note}; responses are those of each stay's own servers"


def logged(run: Run, stays: "pd.Index[int]", platform: Platform, name: str) -> "ServiceLog | None":
    """Return the log of some stays of a service on a platform, as if they shared one machine.

    None without a profile.

    Parameters
    ----------
    run : with the requests, epochs and profile of the service
    stays : numbers of the residences
    platform : that they were on
    name : of the service
    """
    from analysis.profiling.database import Database
    from analysis.profiling.query import Query

    if not (len(stays) and run.has("samples")):
        return None
    where = (("collection", ("fleet",)), ("application", (name,)), ("platform", (platform.name,)))
    with Database([run.path]) as database:
        if not set(_EVENTS) <= set(database.events()):
            return None
        counted = {event: float(database.total(Query(event, (), where))[1]) for event in _EVENTS}
    if not counted["instructions"] > 0:
        return None
    misses = pd.Series(counted) / counted["instructions"]
    requests, epochs = (run.table(table) for table in ("stay_requests", "instance_epochs"))
    asked_of, accounts = (part[part["residence"].isin(stays)] for part in (requests, epochs))
    return log_of(asked_of, accounts, misses, platform, epoch_length_s(run))


def _has(run: Run) -> bool:
    return all(run.has(name) for name in _NEEDED)


def _stays(run: Run, service: str | None) -> pd.DataFrame:
    """Return the stays of services that are served, or of one of them, by residence."""
    jobs = run.table("jobs", ["job", "name"])
    stays = run.table("instances").merge(jobs, on="job").set_index("residence")
    served = stays[stays.index.isin(run.table("instance_epochs", ["residence"])["residence"])]
    if service is None:
        return served
    stays_of = served[served["name"] == service]
    if stays_of.empty:
        refuse("--service", f"should be one of {', '.join(sorted(served['name'].unique())) or 'none'}", service)
    return stays_of
