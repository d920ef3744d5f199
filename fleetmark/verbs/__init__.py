"""Implement the verbs of the command line. Each verb combines the other packages, and prints or writes the result."""
