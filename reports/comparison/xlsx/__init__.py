"""A comparison's workbook, tab by tab."""
