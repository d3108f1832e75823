"""De-identification by itself: a folder of scans in, one that identifies nobody out, without the workflow."""
