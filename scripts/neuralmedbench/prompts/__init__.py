"""Items become the requests that a model is sent."""
