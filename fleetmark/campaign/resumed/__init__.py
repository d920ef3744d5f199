"""Resume a recorded campaign: check its author, and restore its credentials, jobs and outstanding steps."""
