"""The packaged average head (MNI152): its anatomy, and fits of it to scans.

Doors
-----
anatomy: face_regions, template_file
fit: GRID_MM, SEARCH_GRID_MM, SMALL_SCALE, brain_depth, fit_in_pose, fit_quality, fit_template, is_best_here, polish_fit, scale_of, shape_gain, template_points, transfer_fit
matching: MIN_COVERED, Pose, Target, agreement, climb, coarse_head, make_target, refine, rigid
"""
