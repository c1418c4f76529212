"""The statistician: reads plain tables, never simulates, never sees the truth."""
