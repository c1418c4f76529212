"""The figures and tables of Google-Wide Profiling (Ren et al. 2010), the printed numbers beside the functions."""
