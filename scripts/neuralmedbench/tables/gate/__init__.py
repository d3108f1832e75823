"""The update gate: the verdict on a new revision of a model, the account of looks, and how many patients a margin needs."""
