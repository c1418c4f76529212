"""What the fields of a scenario must satisfy together, a module for each kind."""
