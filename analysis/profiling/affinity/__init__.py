"""Which jobs should run on which platforms: cycles per instruction by job and platform, and the best assignment."""
