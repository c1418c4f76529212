"""What all tests share: compiled code may be compiled inside the first example, so examples have no deadline."""

from hypothesis import settings

settings.register_profile("testbed", deadline=None)
settings.load_profile("testbed")

collect_ignore = ["interchange", "web"]
"""Scripts that need Node.js, a browser and other readers of profiles; `make web` and `make interop` run them."""
