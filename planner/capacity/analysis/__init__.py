"""Analyses of a solved plan, or of a question without one."""
