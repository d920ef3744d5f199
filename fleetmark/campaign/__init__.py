"""A campaign: what will run where, starting it, following it, and judging what ended."""
