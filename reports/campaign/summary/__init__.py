"""Summarise a campaign: what is slow and why, which figures are doubtful, and a brief."""
