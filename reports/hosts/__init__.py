"""Build the documents that show hosts."""
