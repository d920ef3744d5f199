"""Report the review of a plan: what was delivered, what is outstanding, and how the plan changes."""
