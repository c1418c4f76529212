"""Foreign files become columns: bytes, cells and located faults, whatever the lens."""
