"""Score the de-identification of phantoms against their answer keys."""
