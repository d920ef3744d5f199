"""Define the parts of the planner's document: the keys of each part, and their types."""
