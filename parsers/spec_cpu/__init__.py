"""Parse SPEC CPU's reports of both editions: CSV, text, raw results and runcpu's log."""
