"""Models with open weights that compute in this process; it imports torch, transformers, numpy and pillow, and nothing that reads a yaml."""
