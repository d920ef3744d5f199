"""Predict the results of a machine from figures of machines on record."""
