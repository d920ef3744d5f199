"""Measure what ``history`` dates, and its false alarms."""
