"""Services on several platforms as they are asked for: applications and what their operations cost."""
