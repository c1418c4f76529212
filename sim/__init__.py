"""Time: the control plane, the epoch kernel and the recorders that turn a fleet's day into tables."""
