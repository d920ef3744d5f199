"""A diagnosis as documents: terminal, page, Markdown."""
