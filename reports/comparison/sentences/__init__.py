"""Sentences of the first screen."""
