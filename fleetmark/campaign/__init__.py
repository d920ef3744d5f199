"""Run a campaign: schedule it, start it, follow it, and judge its steps."""
