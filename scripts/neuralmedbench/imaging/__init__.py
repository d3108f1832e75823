"""From scanner files to the pictures that a model sees."""
