"""The operational laws of parallel servers: queueing, utilisation and capacity from arrivals and departures alone."""
