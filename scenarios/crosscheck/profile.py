"""What the profile says beside counters, WSMeter, the monitor and the stays; and whether all of it is there."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from analysis.crosscheck import profile as compared
from analysis.crosscheck.check import Check
from models.profiling.world import ProfileWorld
from scenarios.crosscheck.counters import by_events, sampled
from scenarios.runs.execution import reopen
from scenarios.runs.rundir import Run

if TYPE_CHECKING:
    from analysis.profiling.database import Database
    from analysis.profiling.query import Where

_FLEET: "Where" = (("collection", ("fleet",)),)
_NEEDED = ("samples", "visits", "processes", "locations", "rates")
_MISSES = "llc_misses"


def checks(run: Run) -> Iterator[Check]:
    """Yield whether the profile agrees with what else is known of the fleet, and is whole.

    Parameters
    ----------
    run : a finished run; nothing is said of one without a profile
    """
    if not all(run.has(name) for name in _NEEDED):
        return
    from analysis.profiling.database import Database

    with Database([run.path]) as database:
        if all(run.has(name) for name in ("counters", "instances", "jobs")):
            yield from _rates(run, database)
        if run.has("monitor"):
            yield from filter(None, [_core_seconds(run, database)])
    yield from _visits(run)
    taken = run.table("samples", ["process", "event", "count"])
    whole = run.table("visits")
    whole = whole[whole["collection"] == "fleet"]
    yield compared.visits_with_samples(whole, run.table("processes"), taken, run.table("rates"))
    if run.has("raw_samples"):
        yield compared.symbolised(run.table("raw_samples", ["process", "event", "count"]), taken)


def _rates(run: Run, database: "Database") -> Iterator[Check]:
    """Yield what is known of each job's cycles, and of its misses, per instruction."""
    from analysis.profiling.query import Query

    counters, instances, jobs = (run.table(name) for name in ("counters", "instances", "jobs"))
    events = ["cycles", "instructions", *({_MISSES} & set(database.events()))]
    clustered = {event: database.clustered(Query(event, ("application",), _FLEET), "visit") for event in events}
    by_profile = compared.profiled(clustered["cycles"], clustered["instructions"], jobs)
    results = [
        compared.within("profile_counters", by_profile, compared.counted(counters, instances)),
        compared.alike("profile_wsmeter", by_profile, sampled(run, counters, instances)),
    ]
    if _MISSES in clustered:
        misses = compared.profiled(clustered[_MISSES], clustered["instructions"], jobs)
        counted = compared.counted(counters.assign(cycles=counters[_MISSES]), instances)
        results.append(compared.within("profile_misses", misses, counted))
    yield from (check for check in results if check is not None)


def _core_seconds(run: Run, database: "Database") -> Check | None:
    from analysis.profiling.query import Query

    table = database.table("visits")
    cycles = database.query(Query(by=("visit",), where=_FLEET))
    by_visit = cycles.assign(visit=cycles["visit"].astype(np.int64))
    world = reopen(run.path)[0]
    machine_epochs = world.fleet.machines * world.epochs if isinstance(world, ProfileWorld) else None
    return compared.seconds(table[table["collection"] == "fleet"], by_visit, run.table("monitor"), machine_epochs)


def _visits(run: Run) -> Iterator[Check]:
    """Yield whether visits are where and when the collector's rounds and the stays on machines put them."""
    table, world = run.table("visits"), reopen(run.path)[0]
    if isinstance(world, ProfileWorld) and run.has("machines"):
        collector = world.profiling.collector
        per_round = len(run.table("machines", ["machine"])) / collector.one_in
        fleet = table[table["collection"] == "fleet"]
        yield compared.rounds(fleet, collector.round_s, world.horizon_s, per_round)
    if run.has("instances"):
        processes, instances = run.table("processes", ["visit", "residence"]), run.table("instances")
        yield compared.residents(table, processes, instances, during=by_events(run))
