"""Estimators of a feature judged on simulated fleets: the sweep, its fleets and their truth, and the scorecard."""
