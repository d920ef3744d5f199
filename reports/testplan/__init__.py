"""A test plan: what a run would do, on which hosts, how long it takes and what it needs; from a dry run."""
