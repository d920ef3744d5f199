"""Reach a host over SSH: its target, the log-in, and the connection."""
