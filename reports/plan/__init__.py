"""A capacity plan as documents show it."""
