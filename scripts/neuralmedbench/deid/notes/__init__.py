"""Notes and records: identifiers found by patterns and the patient's own names, answers cut by section."""
