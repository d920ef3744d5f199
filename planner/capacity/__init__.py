"""From a question to what to buy, where and when: the model, its solution, checks on it, and how sure it is."""
