"""Faces: locate them in a scan, and remove them in native space."""
