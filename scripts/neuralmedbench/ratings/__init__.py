"""Clinician ratings: strict import."""
