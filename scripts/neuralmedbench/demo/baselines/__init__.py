"""Baseline models that run inside the command without a key, GPU or download. They are not vision-language models."""
