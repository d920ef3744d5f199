"""The formats of a document. They depend on its exhibits only, not on campaigns, comparisons or plans."""
