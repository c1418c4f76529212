"""A queue policy of your own: the earliest deadline first."""


def earliest_deadline(arrival_s: float, demand_s: float, remaining_s: float, priority: float) -> float:
    """Return when a request should be answered: after half a second and twice its demand."""
    return arrival_s + 0.5 + 2.0 * demand_s


earliest_deadline.preemptive = True
