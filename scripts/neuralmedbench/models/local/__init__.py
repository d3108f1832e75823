"""Models with open weights that run in this process; only torch, transformers, numpy and pillow are imported, and no configuration code."""
