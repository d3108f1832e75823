"""Figures: each is drawn from one table."""
