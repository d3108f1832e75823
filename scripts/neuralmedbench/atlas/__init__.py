"""The packaged average head (MNI152): its anatomy, and fits of it to scans.

Doors
-----
adjust: is_best_here, polish_fit, shape_gain, transfer_fit
anatomy: face_regions, template_file
fit: GRID_MM, brain_depth, fit_quality, fit_template, template_points
matching: MIN_COVERED, Pose, Target, agreement, climb, coarse_head, make_target, refine, rigid
"""
