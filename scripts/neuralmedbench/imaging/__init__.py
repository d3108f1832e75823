"""From de-identified scans to the pictures that a model sees."""
