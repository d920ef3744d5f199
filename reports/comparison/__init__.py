"""Build the documents that show a comparison."""
