"""Compute what a side costs: prices, the bills for the same work, and the figures behind a decision strip."""
