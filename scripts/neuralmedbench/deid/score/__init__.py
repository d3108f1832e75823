"""The score of a de-identification against planted answer keys."""
