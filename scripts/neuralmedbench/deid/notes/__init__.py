"""Identifiers in clinical notes, detected by patterns, by the patient's own values and by an optional model."""
