"""An internet service on several platforms: its mix over time, its machines, its requests served and counted."""
