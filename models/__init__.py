"""Timeless descriptions: what machines, jobs and tables are, without a clock and without statistics."""
