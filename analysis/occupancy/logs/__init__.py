"""Request logs of real servers: read in their many formats, and cleaned, with all that was found reported."""
