"""SPEC CPU's reports, of either edition: CSV, text, raw results and runcpu's log, read and checked."""
