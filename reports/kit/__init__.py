"""Provide what documents are built with: workbooks, charts, pages, formats of figures, and languages."""
