"""Runs as directories: made, kept, found again and verified."""
