"""Queues of k servers: when requests leave, as pure functions of arrays drawn beforehand."""
