"""WSMeter on runs of fleets and on measurements of one's own."""
