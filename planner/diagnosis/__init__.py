"""Find hosts, links and settings that differ from their peers: pure functions on arrays and frames."""
