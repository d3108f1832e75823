"""Answers that are kept, and what is put together from them."""
