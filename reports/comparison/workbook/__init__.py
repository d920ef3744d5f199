"""Build the tables of a comparison's workbook, whose formulas compute every result from the measurements."""
