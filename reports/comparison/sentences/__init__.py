"""Write the sentences of the first screen."""
