"""Parts of the planner's document: the keys of each, and their types."""
