"""The short form of a campaign: what is slow and why, what to doubt, and its brief."""
