"""A governor of your own: the clock at which the machine is 80% busy; slower if instances wait for memory."""


def schedutil(utilisation: float, stalled: float, limit_hz: float, min_hz: float, max_hz: float) -> float:
    """Return the clock at which the machine would be 80% busy, a tenth less for instances that wait for memory."""
    clock_hz = max_hz * utilisation / 0.8 * (1.0 - 0.1 * stalled)
    return max(min_hz, min(limit_hz, clock_hz))
