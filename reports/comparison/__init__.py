"""A comparison as documents show it."""
