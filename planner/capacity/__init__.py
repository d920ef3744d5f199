"""Plan capacity: the model of a question, its solution, checks of the plan, and its uncertainty."""
