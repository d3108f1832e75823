"""Clinical reading: accuracy by target condition, confusion of diagnoses, and missed time-critical diagnoses."""
