"""Documents that are lists: what is on record, what can be run, what was read; a module per subject."""
