"""Cross-platform prediction on scenarios and on the logs of services of one's own."""
