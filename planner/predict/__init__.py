"""Predict the results of a machine from figures of stored machines."""
