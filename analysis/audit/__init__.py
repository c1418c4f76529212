"""What would make the answer of an experiment false, found before anything is estimated."""
