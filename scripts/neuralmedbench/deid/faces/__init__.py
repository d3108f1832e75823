"""Faces: what of a face a scan shows, and its removal in native space."""
