"""A campaign's results as documents show them."""
