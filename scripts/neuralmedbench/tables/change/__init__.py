"""What changed: revisions, repeats, drift."""
