"""Frontiers in reports: which points there are on record, and the section that shows and compares them."""
