"""A profiler in the simulated fleet: programs inside the instances, and the collector that samples them."""
