"""File formats: reading and writing what the stages hand to each other."""
