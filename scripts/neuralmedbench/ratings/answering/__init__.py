"""Reader rounds: clinicians answer the questions themselves, blind, and their answers are imported like those of a model."""
