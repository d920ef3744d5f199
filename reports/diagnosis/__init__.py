"""Build the documents of a diagnosis for the terminal, HTML and Markdown."""
