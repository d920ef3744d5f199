"""What is known of demand: forecasts of past use, and correlations between workloads."""
