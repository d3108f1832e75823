"""Adapters: one module for each data set, which turns its own files into questions and answers."""
