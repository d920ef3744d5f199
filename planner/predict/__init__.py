"""Predict what a machine would show, from figures of machines on record."""
