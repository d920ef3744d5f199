"""Build the documents of a capacity plan."""
