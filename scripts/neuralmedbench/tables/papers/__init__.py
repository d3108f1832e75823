"""Published tables beside our results."""
