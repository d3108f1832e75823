"""Adapters: one module per data set or family of sets, which converts its files to questions and answers."""
