"""Predict the serving of a language model by a chip: a roofline by operator, with batch queueing on top."""
