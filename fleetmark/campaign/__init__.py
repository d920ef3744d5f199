"""A campaign: scheduling it, starting it, following it, and judging its steps."""
