"""Adapters: one module a data set, which turns the set's own files, lying where the user put them, into questions and answers."""
