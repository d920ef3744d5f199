"""A capacity plan as documents."""
