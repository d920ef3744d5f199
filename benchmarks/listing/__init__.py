"""Measure lists and pages of a large record."""
