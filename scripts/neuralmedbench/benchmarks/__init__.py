"""Adapters: a data set's own files become items and gold."""
