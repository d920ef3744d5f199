"""Report the review of a plan: what was delivered, what is owed, and how the plan changes."""
