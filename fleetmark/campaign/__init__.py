"""Run a campaign: schedule it, start it, follow it, and evaluate its steps."""
