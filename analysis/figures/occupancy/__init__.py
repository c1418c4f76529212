"""The figures and tables of the operational laws (Kelly et al. 2008), the printed numbers beside the functions."""
