"""Turn decisions into documents for the terminal, HTML, PDF, workbooks, Markdown and JSON."""
