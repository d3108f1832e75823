"""The packaged average head (MNI152): its anatomy, and fits of it to scans.

Doors
-----
anatomy: face_regions, template_file
fit: GRID_MM, brain_depth, fit_quality, fit_template, is_best_here, polish_fit, shape_gain, template_points, transfer_fit
matching: MIN_COVERED, Pose, Target, agreement, climb, coarse_head, make_target, refine, rigid
"""
