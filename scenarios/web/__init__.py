"""Pages over a profile database (Ren et al. 2010, "User interfaces"): server-side HTML, read-only, loopback."""
