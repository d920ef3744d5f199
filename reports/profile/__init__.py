"""A workload's profile as it is shown."""
