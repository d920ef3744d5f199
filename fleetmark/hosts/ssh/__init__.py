"""SSH to a host: its target, the log-in, and the connection."""
