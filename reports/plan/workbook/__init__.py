"""Build the workbook of a capacity plan, tab by tab."""
