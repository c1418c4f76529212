"""WSMeter (Lee et al. 2018): a fleet's change from a sample of its instances, planned and estimated."""
