"""The figures and tables of cross-platform prediction (Stewart et al. 2008), the printed numbers beside them."""
