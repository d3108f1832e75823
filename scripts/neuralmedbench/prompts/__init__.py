"""Prompts: turn items into requests, after a check that the audit covers every picture.

Doors
-----
assemble: CaseMaterial, assemble
coverage: check_altered, check_asked, check_pictures, check_scans, check_view
"""
