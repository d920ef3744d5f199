"""Read a capacity question from YAML, CSV sheets or a workbook, and report every fault with its place."""
