"""Planted errors: answers with a known error, made by rule from references, and what a grader makes of them."""
