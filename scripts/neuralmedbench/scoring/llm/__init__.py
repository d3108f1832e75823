"""Graders that ask a model: their requests, how their replies are read, and the resulting grades."""
