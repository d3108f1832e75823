"""Graders that ask a model: requests, parsing of replies, and the resulting grades."""
