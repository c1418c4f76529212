"""Functions as code: how ours are compiled, and how those that other people name are loaded."""
