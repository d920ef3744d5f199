"""Which hosts there are, how commands run on them, and what they are."""
