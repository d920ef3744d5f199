"""Analyse a solved plan, or a question that has no plan."""
