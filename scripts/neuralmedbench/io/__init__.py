"""Reading and writing: files appear whole or not at all."""
