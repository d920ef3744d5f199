"""Read a capacity question from YAML, CSV sheets or a workbook, and report every error with its place."""
