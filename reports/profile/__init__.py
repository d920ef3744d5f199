"""Build the document of a workload's profile."""
