"""What a site asks of a model, and whether it is met."""
