"""The figures and tables of the occupancy laws (Rajan 2023), the printed numbers beside the functions."""
