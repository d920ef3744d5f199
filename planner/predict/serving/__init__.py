"""Predict how fast a chip serves a language model, with a roofline per operator and a model of batch queueing."""
