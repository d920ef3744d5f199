"""A capacity plan's workbook, tab by tab."""
