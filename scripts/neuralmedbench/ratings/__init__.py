"""Clinicians' ratings: strict import of what a person carried in as a file."""
