"""What is published about a benchmark beside its numbers: cards, reporting checklists, Croissant metadata."""
