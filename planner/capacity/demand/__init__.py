"""Model demand: forecasts from past use, and correlations between workloads."""
