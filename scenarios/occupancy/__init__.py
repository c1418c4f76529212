"""The occupancy laws on runs of queues and on request logs of one's own."""
