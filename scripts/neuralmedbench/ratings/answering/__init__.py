"""Reader rounds: clinicians answer the questions themselves, blinded, and their answers are imported like those of a model."""
