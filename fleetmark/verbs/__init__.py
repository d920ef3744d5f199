"""The verbs of the command line: each brings the others together, and shows or writes what comes of it."""
