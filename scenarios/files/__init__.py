"""Scenario files are read: YAML, what they extend, their schema and their faults."""
