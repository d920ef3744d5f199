"""Build the documents that show a campaign's results."""
