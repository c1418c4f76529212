"""Every figure and table of the papers: one function each from tables to a drawing, the printed numbers beside it."""
