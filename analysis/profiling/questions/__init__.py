"""Common questions to the profile of a fleet, each answered by one documented function."""
