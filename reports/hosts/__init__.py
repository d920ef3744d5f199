"""Hosts as documents show them."""
