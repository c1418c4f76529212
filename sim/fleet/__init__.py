"""A day of a fleet: placement, turnover, interference, power and governors, epoch by epoch."""
