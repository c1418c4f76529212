"""The estimators of a fleet-wide effect, a module each: parameter objects that answer draws and experiments."""
