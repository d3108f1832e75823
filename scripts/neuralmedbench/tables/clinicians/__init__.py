"""Clinicians' ratings, and agreement between raters."""
