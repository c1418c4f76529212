"""A fleet as it is asked for: machines, jobs, features and load."""
