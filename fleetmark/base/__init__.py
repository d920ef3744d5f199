"""Provide errors, measurements, facts, units and messages for all other packages. Import none of them."""
