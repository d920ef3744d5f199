"""Measurements to decisions: statistics, and later equivalence, capacity and diagnosis."""
