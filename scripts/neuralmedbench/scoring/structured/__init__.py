"""Answers in the JSONL form of NeuroVLM-Bench, scored as its published evaluator does and scored without its flaws."""
