"""The rows of the papers: what each is made from, and what is held against the printed numbers."""
