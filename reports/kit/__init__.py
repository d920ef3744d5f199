"""What documents are made with: workbooks, charts, pages, how figures are written, languages."""
