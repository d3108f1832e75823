"""Clinicians' ratings: rounds that are frozen for raters, and strict import of what a person carried in as a file."""
