"""Measurements to decisions: statistics, ratios and scores, predictions, bottlenecks, capacity plans."""
