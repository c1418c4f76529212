"""The change that a feature makes to a fleet, estimated from machines that have it: designs, estimators, variances."""
