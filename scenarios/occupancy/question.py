"""What is asked of a request log."""

from dataclasses import dataclass

from analysis.occupancy.objective import Objective
from models.queues.policies import PolicyName
from scenarios.occupancy.slices import LogSlice


@dataclass(frozen=True, slots=True)
class OccupancyQuery:
    """What is asked of a log."""

    servers: int
    """Servers that the log was made with."""
    to: tuple[int, ...] = ()
    """Other numbers of servers."""
    speed: tuple[float, ...] = ()
    """Other speeds, in that of the log's servers."""
    interval_s: float | None = None
    """Length of the intervals; None: the shortest handy one of which there are not too many."""
    policy: PolicyName | None = None
    """Policy that the log is replayed under; None: bounds only."""
    identify: bool = False
    """Whether the policy is to be found out."""
    quantum_s: float = 0.1
    alert: float | None = None
    """Queueing over service time from which an interval is told."""
    objective: Objective | None = None
    """A percentile of response time and its bound."""
    load: float = 1.0
    """The load that the objective is asked for, as a multiple of the recorded one."""
    hourly: bool = False
    """Whether the objective is asked about for each hour of the day or week, too."""
    scalability: bool = False
    """Whether contention and coherence are fitted to the completion rates."""
    network_delay_s: float | None = None
    """What of each response time is not the servers'; None: nothing."""
    rows: LogSlice | None = None
    """Which of the log's rows count, and the classes that are compared; None: all rows, one class."""

    def of_other_servers(self) -> dict[str, str]:
        """Return options that ask about other servers or another load, with their values; those not given are empty."""
        return {
            "--to": ",".join(map(str, self.to)),
            "--speed": ",".join(f"{speed:g}" for speed in self.speed),
            "--policy": "auto" if self.identify else self.policy or "",
            "--slo": "" if self.objective is None else self.objective.name,
        }
