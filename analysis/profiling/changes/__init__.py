"""Changes of functions' costs whose time is not known: series of counts, a scan, kinds of change and their causes."""
