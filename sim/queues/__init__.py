"""Requests at the servers of a queue: arrivals, demands, and what server and client see of them."""
