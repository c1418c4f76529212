"""Interference of your own: prefetchers hold back while the neighbours keep memory busy."""


def held_back(
    neighbour_utilisation: float,
    neighbour_bandwidth: float,
    neighbour_cache: float,
    sibling_busy: float,
    misses_per_instruction: float,
    smt_slowdown: float,
) -> float:
    """Return an instance's speed: it falls with the neighbours' share of the memory bandwidth, by a fifth at most."""
    return 1.0 - 0.2 * min(1.0, neighbour_bandwidth)
