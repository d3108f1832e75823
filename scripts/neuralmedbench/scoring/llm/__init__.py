"""Graders that ask a model: what they are asked, how their answers are read, and the grades that come of it."""
