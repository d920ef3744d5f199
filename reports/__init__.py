"""Decisions to documents: terminal tables, HTML, and later PDF and XLSX."""
