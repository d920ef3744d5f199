"""Find hosts, links and settings that differ from their peers, with pure functions on arrays and frames."""
