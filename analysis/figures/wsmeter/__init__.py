"""The figures and tables of WSMeter (Lee et al. 2018), the printed numbers beside the functions that draw them."""
