"""Do counters, profile, requests and predictions agree on a run?"""
