"""The stage: scenario files in, run directories out; the only place where simulation and analysis meet."""
