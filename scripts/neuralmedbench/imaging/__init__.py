"""Normalise de-identified scans, and cut the pictures that models are sent.

Doors
-----
alter: alter_pictures
export: ABOUT, export_case
gather: gather_slices
normalise: normalise
review_pieces: REVIEW, write_case_pieces, write_chosen_pieces
scans: VOLUMES
slices: cut_slices, with_slices
views: ViewService, list_views
"""
