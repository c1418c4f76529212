"""What experiments on a fleet say, drawn: the change, its course look by look, and the machines that designs need."""
