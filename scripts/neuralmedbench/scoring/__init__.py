"""Responses become predictions, grades and scores."""
