"""Functions that parsers share: text and JSON, bounds, truncated output, the marks of clients, and MLPerf logs."""
