"""What is known about demand: forecasts from past use, and correlations between workloads."""
