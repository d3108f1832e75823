"""Answers in the JSONL form of NeuroVLM-Bench: read, scored as its published evaluator scores them, and scored without its flaws."""
