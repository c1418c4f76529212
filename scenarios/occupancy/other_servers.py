"""How a log was served, as far as that is known, and what other or faster servers would have made of it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from analysis.occupancy import bounds
from analysis.occupancy.catalogue import never_more_work, proved
from analysis.occupancy.curve import Curve
from analysis.occupancy.identification import Identified, identify
from analysis.occupancy.inversion import Reconstruction
from analysis.occupancy.law import law
from analysis.occupancy.logs.log import Cleaned
from analysis.occupancy.replay import Replay, explained, replay
from models.queues.policies import MOST_SLICES, POLICIES, PolicyName

OTHERWISE = (
    "a policy that you know is replayed without being identified, if the log does not contradict it: --policy fcfs"
)
_NAN = float("nan")
_HUGE = 100.0
"""An interval for fewer servers that begins at today's queueing and ends at so many response times says nothing."""


@dataclass(frozen=True, slots=True)
class Discipline:
    """How a log was served, as far as that is known."""

    servers: int
    policy: PolicyName | None = None
    quantum_s: float = 0.1
    replayed: bool = True
    """Whether the log may be replayed under the policy."""
    reconstruction: Reconstruction | None = None
    """What the policy makes of the log, if that is known already."""
    identified: Identified | None = None
    """The policy as it was found out, where it was to be and was."""
    misfits: float = _NAN
    """Share of the departures while somebody waited that contradict the policy."""
    notes: tuple[str, ...] = ()
    """Why there is no policy or no replay."""


@dataclass(frozen=True, slots=True)
class OtherServers:
    """What another number of servers would have made of a log."""

    bounds: bounds.Bounds
    bounds_say_nothing: bool
    """Whether the interval excludes nothing that was not plain before."""
    change_says_nothing: bool
    """The same of the bound on the change."""
    replay: Replay | None
    """Under the policy, where there is one."""

    def payload(self) -> dict[str, object]:
        """Return the row as ``--json`` has it."""
        empty = {"bounds_say_nothing": self.bounds_say_nothing, "change_says_nothing": self.change_says_nothing}
        return {**self.bounds.row(), **empty, **_replay_payload(self.replay)}


@dataclass(frozen=True, slots=True)
class OtherSpeed:
    """What as many servers of another speed would have made of a log; slower ones have no bounds."""

    speed: float
    queueing_s_low: float
    queueing_s_high: float
    bounds_say_nothing: bool
    note: str
    replay: Replay | None

    def payload(self) -> dict[str, object]:
        """Return the row as ``--json`` has it."""
        names = ("speed", "queueing_s_low", "queueing_s_high", "bounds_say_nothing", "note")
        return {**{name: getattr(self, name) for name in names}, **_replay_payload(self.replay)}


def settle(log: Cleaned, stated: Discipline, work_s: float, *, find_out: bool = False) -> Discipline:
    """Return how a log was served: as it is said to be, if the log does not contradict that, or as was found out.

    A policy that contradicts the log is no policy. One that merely cannot be replayed is still known.

    Parameters
    ----------
    log : requests
    stated : servers, quantum and, unless it is to be found out, perhaps a policy
    work_s : service time of all requests on the slowest servers that are asked about
    find_out : whether the policy is to be found out
    """
    bare = Discipline(stated.servers, None, stated.quantum_s)
    if stated.policy is None and not find_out:
        return bare
    if not log.paired:
        why = "departures belong to no arrivals: neither a policy nor a replay can be had, only bounds"
        return replace(bare, notes=(why,))
    if not find_out:
        return _tried(log, stated, work_s)
    identified = identify(
        log.arrival_s,
        log.departure_s,
        expected_servers=stated.servers,
        priority=log.priority,
        quantum_s=stated.quantum_s,
    )
    if identified.policy is None:
        return replace(bare, notes=(f"no policy identified: {identified.reason}", OTHERWISE))
    if identified.servers != stated.servers:
        policy, servers = identified.policy, identified.servers
        why = f"the log speaks for {servers} servers under {policy}, not {stated.servers}: no replay"
        return replace(bare, identified=identified, notes=(why,))
    return _tried(log, replace(stated, policy=identified.policy, identified=identified), work_s)


def hindrance(discipline: Discipline, classed: bool, work_s: float) -> tuple[str, str]:
    """Return why a policy can be replayed on no such log, after the option that would help; both empty if it can.

    Parameters
    ----------
    discipline : the policy, and on what
    classed : whether the log has classes of requests
    work_s : service time of all requests on the slowest servers that are asked about
    """
    if discipline.policy is None:
        return "", ""
    rules = POLICIES[discipline.policy]
    if rules.hidden and discipline.servers > 1:
        return "--policy", f"cannot be replayed on {discipline.servers} servers, only on 1: {rules.hidden}"
    if rules.order == "class" and not classed:
        return "--policy", "priority needs the class of each request: --priority COLUMN"
    if rules.sliced and work_s / discipline.quantum_s > MOST_SLICES:
        least = f"should be at least {1.001 * work_s / MOST_SLICES:.4g} s"
        return "--quantum", f"{least}, or {work_s:.6g} s of service are more than {MOST_SLICES} slices"
    return "", ""


def caveats(discipline: Discipline, to: Sequence[int], factors: Sequence[float]) -> Iterator[str]:
    """Yield what the bounds for other or faster servers rest on, where they are no theorem for the policy.

    Parameters
    ----------
    discipline : the policy, if it is known
    to : numbers of servers that bounds are told for
    factors : the same of speeds
    """
    more, fast = any(servers != discipline.servers for servers in to), any(factor > 1 for factor in factors)
    if not (more or fast):
        return
    if discipline.policy is None:
        changes = " or ".join(name for name, wanted in (("more", more), ("faster", fast)) if wanted)
        yield f"no policy known: the bounds assume that {changes} servers never delay completions"
    elif not proved(discipline.policy, "expansion"):
        yield (
            f"under {discipline.policy} the bounds, the change as well as the interval, usually hold, but there are "
            "loads for which they do not"
        )


def capacity(log: Cleaned, present: Curve, discipline: Discipline, to: Iterable[int]) -> tuple[OtherServers, ...]:
    """Return bounds on queueing, and the replay where there is a policy, for each number of servers.

    Parameters
    ----------
    log : requests
    present : their occupancy
    discipline : how they were served
    to : other numbers of servers
    """
    matched = (log.arrival_s, log.departure_s) if log.paired else None
    now = law(present, discipline.servers)
    return tuple(
        OtherServers(
            row,
            *_empty(row, now.queueing_time_s, now.response_time_s),
            _replayed(log, discipline, row.to, 1.0),
        )
        for row in bounds.others(present, discipline.servers, to, matched, per_job=_per_job(discipline))
    )


def speeds(log: Cleaned, present: Curve, discipline: Discipline, factors: Iterable[float]) -> tuple[OtherSpeed, ...]:
    """Return bounds on queueing, and the replay where there is a policy, with as many servers of each other speed.

    Parameters
    ----------
    log : requests
    present : their occupancy
    discipline : how they were served
    factors : other speeds, in that of the log's servers
    """
    fcfs = discipline.policy is not None and proved(discipline.policy, "speed")
    rows = []
    for factor in factors:
        if 0 < factor < 1:
            note = "bounds are about servers that are not slower"
            within = (_NAN, _NAN, True, note)
        else:
            row = bounds.faster(present, discipline.servers, factor, per_job=_per_job(discipline), fcfs=fcfs)
            empty = factor > 1 and row.queueing_s > 0 and row.queueing_high_s >= row.queueing_s * (1 - 1e-9)
            within = (row.queueing_low_s, row.queueing_high_s, empty, row.note)
        rows.append(OtherSpeed(factor, *within, _replayed(log, discipline, discipline.servers, factor)))
    return tuple(rows)


def _tried(log: Cleaned, stated: Discipline, work_s: float) -> Discipline:
    """Return what becomes of a policy when the log is explained by it."""
    policy = stated.policy
    if policy is None:
        return stated
    _, why = hindrance(stated, log.priority is not None, work_s)
    if why:
        return replace(stated, replayed=False, notes=(f"no replay under {policy}: {why}",))
    trial = explained(
        policy, log.arrival_s, log.departure_s, stated.servers, priority=log.priority, quantum_s=stated.quantum_s
    )
    if trial.reason:
        return replace(stated, policy=None, misfits=trial.misfits, notes=(f"no replay under {policy}: {trial.reason}",))
    cut = f"the replay serves {log.unfinished:,} requests that had not left only what they had got by then"
    notes = (cut,) if log.unfinished else ()
    return replace(stated, reconstruction=trial.reconstruction, misfits=trial.misfits, notes=notes)


def _empty(row: bounds.Bounds, queueing_s: float, response_s: float) -> tuple[bool, bool]:
    """Return whether an interval, and a change, exclude nothing: more servers do not add queueing, fewer take none."""
    off_s = 1e-9 * response_s
    waits, unmoved = queueing_s > 0, abs(row.change_s_paper_bound) <= off_s
    if row.to > row.servers:
        return waits and row.queueing_high_s >= queueing_s - off_s, waits and unmoved
    fewer = row.to < row.servers
    loose = row.queueing_low_s <= queueing_s + off_s and row.queueing_high_s >= _HUGE * response_s
    return fewer and loose, fewer and unmoved


def _per_job(discipline: Discipline) -> bool:
    """Return whether other servers surely have no more work left."""
    return discipline.policy is not None and never_more_work(discipline.policy)


def _replayed(log: Cleaned, discipline: Discipline, to: int, speed: float) -> Replay | None:
    if discipline.policy is None or not discipline.replayed:
        return None
    return replay(
        discipline.policy,
        log.arrival_s,
        log.departure_s,
        discipline.servers,
        to,
        speed=speed,
        priority=log.priority,
        quantum_s=discipline.quantum_s,
        reconstruction=discipline.reconstruction,
    )


def _replay_payload(replayed: Replay | None) -> dict[str, float]:
    if replayed is None:
        return dict.fromkeys(("replay_s", "replay_low", "replay_high"), _NAN)
    return {"replay_s": replayed.queueing_s, "replay_low": replayed.low_s, "replay_high": replayed.high_s}
