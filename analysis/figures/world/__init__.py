"""Figures of this world: what its calibration, its mechanisms and its estimators are held against."""
