"""Cross-platform prediction: what a service would do on platforms where it never ran (Stewart et al. 2008)."""
