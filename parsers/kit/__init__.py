"""Provide shared functions for parsers: text and JSON, bounds, truncated output, marks of clients and MLPerf logs."""
