"""From de-identified scans to the pictures that a model sees.

Doors
-----
choose: LAYOUTS, POLICIES, SlicePolicy
export: ABOUT, export_case
gather: gather_slices
normalise: NormaliseSettings, VOLUMES, normalise
review_pieces: REVIEW, write_case_pieces, write_chosen_pieces
slices: cut_slices
windows: CT_WINDOWS
"""
