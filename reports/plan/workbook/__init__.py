"""The workbook of a capacity plan, tab by tab."""
