"""Turn measurements into decisions: statistics, ratios and scores, predictions, bottlenecks, capacity plans."""
