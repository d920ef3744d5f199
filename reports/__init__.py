"""Decisions to documents: for the terminal, HTML, PDF, workbooks, Markdown, JSON."""
