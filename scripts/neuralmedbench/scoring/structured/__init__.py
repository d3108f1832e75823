"""Score answers in the JSONL form of NeuroVLM-Bench: as its published evaluator does, and corrected."""
