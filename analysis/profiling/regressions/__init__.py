"""Functions that became more expensive from one profile to the next, and what each change goes with."""
