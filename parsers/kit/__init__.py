"""What parsers share: reading text and JSON, bounds, cut output, the marks of clients and of MLPerf logs."""
