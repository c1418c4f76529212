"""Every estimator of a feature judged on fleets from all corners of a sweep."""
